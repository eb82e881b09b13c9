//! Names of signals, for `kill` and `trap`.

use crate::sys;

/// Signals that end a program which does nothing about them, and that a container gets.
pub(crate) const ENDING: [i32; 8] = [
    sys::SIGHUP,
    sys::SIGINT,
    sys::SIGQUIT,
    sys::SIGUSR1,
    sys::SIGUSR2,
    sys::SIGPIPE,
    sys::SIGALRM,
    sys::SIGTERM,
];

/// In the order of their numbers, from 1 on; the same on x86-64 and arm64.
pub(crate) const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS",
];

/// The number of `TERM`, `SIGTERM` or `15`.
pub(crate) fn number(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(number) = text.parse::<i32>() {
        return (0..=sys::LAST_SIGNAL).contains(&number).then_some(number);
    }
    let text = text.to_ascii_uppercase();
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    let place = NAMES.iter().position(|known| *known == name)?;
    i32::try_from(place + 1).ok()
}

pub(crate) fn name(number: i32) -> Option<&'static str> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(place).copied()
}
