//! Process identifiers that are never reused.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process that cannot be mistaken for a later one with the same number, not even after the
/// machine has been restarted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessId {
    pub(super) pid: i32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
    boot: String,
}

impl ProcessId {
    /// The process that has the number at the moment.
    pub(super) fn of(pid: i32) -> io::Result<ProcessId> {
        Ok(ProcessId {
            pid,
            start_ticks: read_stat(pid)?.start_ticks,
            boot: read_boot()?,
        })
    }

    /// Whether it still runs. A zombie does not.
    pub(super) fn is_alive(&self) -> bool {
        read_boot().is_ok_and(|boot| boot == self.boot)
            && read_stat(self.pid)
                .is_ok_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_zombie)
    }

    /// A descriptor of the process that is readable once it has ended; `None` if it has.
    pub(super) fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            // The number is looked at after it was pinned, so that it cannot change hands.
            Ok(fd) => Ok(self.is_alive().then_some(fd)),
            // The second is what the kernel says of a process that is being reaped at this moment.
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal if the process still runs.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(fd) = self.open()? else {
            return Ok(());
        };
        match pidfd_send_signal(fd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

struct Stat {
    start_ticks: u64,
    is_zombie: bool,
}

fn read_stat(pid: i32) -> io::Result<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_stat(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The name in parentheses may itself hold spaces and parentheses, so that fields are counted
/// from the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Stat {
        // Field 22 of the line; the state is field 3.
        start_ticks: fields.nth(18)?.parse().ok()?,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

fn read_boot() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_until_it_ends() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let id = ProcessId::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(id.is_alive());
        let later = ProcessId {
            start_ticks: id.start_ticks + 1,
            ..id.clone()
        };
        assert!(!later.is_alive());
        assert!(later.open().unwrap().is_none());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!id.is_alive());
        id.signal(Signal::KILL).unwrap();
    }

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = parse_stat(&format!("42 (a) b (c) {tail}")).unwrap();
        assert_eq!((stat.start_ticks, stat.is_zombie), (4711, false));
        assert!(parse_stat("42 (x").is_none());
    }
}
