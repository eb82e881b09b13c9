//! Waiting for a condition, and reporting what is waited for.

use std::time::{Duration, Instant};

use crate::vm::slowness;

/// Far more than anything here takes; machines that run tests are busy.
const TIMEOUT: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// After so long the log names what is waited for, and again each time it has taken twice as long:
/// the log of a test that is killed then has it.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// Polls `look` until it returns a value; an error is what it saw instead.
///
/// # Panics
///
/// If there is none in time, with what was waited for and the last error.
pub fn until<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    until_within(TIMEOUT, what, look)
}

/// As [`until`], with another deadline, which is put off where everything is slow.
///
/// # Panics
///
/// As [`until`] does.
#[expect(clippy::print_stderr, reason = "it goes to the log of the test")]
pub fn until_within<T>(
    timeout: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> T {
    let begun = Instant::now();
    let timeout = timeout * slowness();
    let mut say_after = SAY_AFTER * slowness();
    loop {
        let seen = match look() {
            Ok(seen) => return seen,
            Err(seen) => seen,
        };
        let elapsed = begun.elapsed();
        if elapsed > timeout {
            let seconds = elapsed.as_secs_f64();
            panic!("waited {seconds:.1} s until {what}; last seen:\n{seen}");
        }
        if elapsed > say_after {
            eprintln!("waiting until {what}, for {} s by now", elapsed.as_secs());
            say_after *= 2;
        }
        std::thread::sleep(LOOK_EVERY * slowness());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn panics_with_condition_and_last_error() {
        let moment = Duration::from_millis(1);
        let mut looks = 0;
        let panic = catch_unwind(move || {
            until_within::<()>(moment, "pigs fly", || {
                looks += 1;
                Err(format!("not ready, look {looks}"))
            });
        });
        let message = panic.unwrap_err().downcast::<String>().unwrap();
        assert!(message.starts_with("waited 0."), "{message}");
        let end = " s until pigs fly; last seen:\nnot ready, look 2";
        assert!(message.ends_with(end), "{message}");
    }

    #[test]
    fn returns_the_value_of_the_last_look() {
        let mut looks = 0;
        let seen = until("the third look", || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err(String::new())
            }
        });
        assert_eq!(seen, 3);
    }
}
