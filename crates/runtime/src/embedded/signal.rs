//! Signals by name and number.

use rustix::process::Signal;

/// Names and numbers, without `SIG`.
const NAMES: [(&str, i32); 31] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

/// The number of a signal that an image names (`SIGTERM`, `TERM`, `15`); SIGTERM if it names none
/// or one that does not exist.
pub(super) fn number(text: &str) -> i32 {
    let upper = text.trim().to_ascii_uppercase();
    if let Ok(number) = upper.parse::<i32>() {
        return if (1..=64).contains(&number) {
            number
        } else {
            libc::SIGTERM
        };
    }
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(offset) = bare.strip_prefix("RTMIN") {
        let offset = offset.trim_start_matches('+').parse().unwrap_or(0);
        let number = RTMIN.saturating_add(offset);
        return if number <= RTMAX {
            number
        } else {
            libc::SIGTERM
        };
    }
    let found = NAMES.iter().find(|(name, _)| *name == bare);
    found.map_or(libc::SIGTERM, |(_, number)| *number)
}

/// The first and the last real-time signal that programs may use; the two before them are the C
/// library's own.
const RTMIN: i32 = 34;
const RTMAX: i32 = 64;

/// A signal by its number; SIGTERM if there is none.
#[expect(unsafe_code, reason = "no safe crate makes real-time signals")]
pub(super) fn from_number(number: i32) -> Signal {
    if (RTMIN..=RTMAX).contains(&number) {
        // SAFETY: it is a signal of the kernel's, and not one that the C library uses itself.
        return unsafe { Signal::from_raw_unchecked(number) };
    }
    Signal::from_named_raw(number).unwrap_or(Signal::TERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_name_and_number() {
        for (text, want) in [
            ("", 15),
            ("SIGTERM", 15),
            ("term", 15),
            ("SIGQUIT", 3),
            ("9", 9),
            ("SIGRTMIN+3", 37),
            ("RTMIN", 34),
            ("RTMIN+99", 15),
            ("SIGNOTHING", 15),
            ("99", 15),
        ] {
            assert_eq!(number(text), want, "{text}");
            assert_eq!(from_number(want).as_raw(), want, "{text}");
        }
        assert_eq!(from_number(32), Signal::TERM);
    }
}
