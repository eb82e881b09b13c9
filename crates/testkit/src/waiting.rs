//! Waiting for what is about to happen.

use std::time::{Duration, Instant};

use crate::vm::slowness;

/// Far more than anything here takes; machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks until there is something to see. `look` gives that, or what it sees instead.
pub fn until<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    until_within(PATIENCE, what, look)
}

/// As [`until`], with another deadline, which is put off where everything is slow.
pub fn until_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + patience * slowness();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(seen) if Instant::now() > deadline => {
                panic!("waited in vain until {what}; last seen:\n{seen}")
            }
            Err(_) => std::thread::sleep(LOOK_EVERY * slowness()),
        }
    }
}
