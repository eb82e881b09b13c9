//! The database panics if a page of its file is corrupt. That is an error of the file, not a bug of
//! the program.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is caught and becomes an error of the store: a panic hook need
/// not report it.
pub fn catches_panics() -> bool {
    CATCHES.get()
}

/// Runs something that may panic on a damaged file.
///
/// Its state after a panic is only used again if the database still agrees: the store reopens the
/// file after a failed write, and every later call is caught as well.
pub(super) fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CATCHES.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHES.set(outer);
    result.map_err(|payload| message(payload.as_ref()))
}

/// Runs something of which a panic is a fault of this program: the panic hook reports it.
pub(super) fn survive_panic(run: impl FnOnce()) -> Result<(), String> {
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
    fn panic_becomes_an_error_and_is_marked_as_caught() {
        assert_eq!(catch_panic(|| 1), Ok(1));
        let nested = catch_panic(|| {
            assert!(catches_panics());
            let inner = catch_panic(|| -> u8 { panic!("a page") });
            assert_eq!(inner, Err("a page".to_owned()));
            catches_panics()
        });
        assert_eq!(nested, Ok(true));
        assert!(!catches_panics());
    }
}
