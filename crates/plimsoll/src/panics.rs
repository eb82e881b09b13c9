//! Panics: internal errors of the program.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use plimsoll_apiserver::store::catches_panics;

use crate::exit::Exit;
use crate::failure;

/// Runs a command. A panic, also in a task that the command waits for, exits as an internal error.
pub(crate) fn guarded(command: impl FnOnce() -> ExitCode) -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    // Unwind safe: after a panic the process only exits.
    catch_unwind(AssertUnwindSafe(command)).unwrap_or(Exit::Internal.into())
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message")
}

fn report_panic(panic: &PanicHookInfo<'_>) {
    if catches_panics() {
        return;
    }
    let text = message(panic.payload());
    let place = panic
        .location()
        .map_or(String::new(), |at| format!(" ({at})"));
    // Enabled by RUST_BACKTRACE.
    let backtrace = Backtrace::capture();
    let backtrace = match backtrace.status() {
        BacktraceStatus::Captured => vec![backtrace.to_string()],
        _ => Vec::new(),
    };
    failure::print(
        &[format!("internal error: {text}{place}")],
        &backtrace,
        &[format!(
            "please report this at {}/issues, with the command and the output of \"plimsoll version\"",
            env!("CARGO_PKG_REPOSITORY")
        )],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ExitCode` cannot be compared, only shown.
    fn shown(code: ExitCode) -> String {
        format!("{code:?}")
    }

    #[test]
    fn a_panic_exits_with_code_70() {
        let code = guarded(|| panic!("a test of panics"));
        assert_eq!(shown(code), shown(ExitCode::from(70)));
        assert_eq!(
            shown(guarded(|| Exit::Failed.into())),
            shown(ExitCode::from(1))
        );
    }
}
