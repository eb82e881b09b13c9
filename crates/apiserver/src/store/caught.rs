//! The database panics where a page of its file holds what it never writes. That is an error of the
//! file, not of the program.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is caught and becomes an error of the store: a panic hook need not
/// report it.
pub fn catches_panics() -> bool {
    CATCHES.get()
}

/// Runs something that may panic on a damaged file.
///
/// What it leaves behind is only used again if the database still agrees: the store opens the file
/// anew after a failed write, and every later call is caught as well.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CATCHES.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHES.set(outer);
    result.map_err(|payload| message(payload.as_ref()))
}

/// Runs something of which a panic is a fault of this program: the panic hook reports it.
pub(super) fn survived(run: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_is_known_to_be_one() {
        assert_eq!(caught(|| 1), Ok(1));
        let nested = caught(|| {
            assert!(catches_panics());
            let inner = caught(|| -> u8 { panic!("a page") });
            assert_eq!(inner, Err("a page".to_owned()));
            catches_panics()
        });
        assert_eq!(nested, Ok(true));
        assert!(!catches_panics());
    }
}
