//! The kernel's own kills, from its log.
//!
//! The runtime reports a container that was killed at its own limit. A kill for want of
//! memory on the whole machine is reported as a warning event of the node. Matches v1.36
//! pkg/kubelet/oom/oom_watcher_linux.go.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

/// The reason of the event.
pub const SYSTEM_OOM: &str = "SystemOOM";
/// Where the kernel's log is, below the mount root.
pub const KERNEL_LOG: &str = "dev/kmsg";

/// A record of the log is shorter.
const RECORD_BYTES: usize = 8192;
/// How often the reader checks whether to stop.
const STOP_WITHIN: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Follows the kernel's log from here on and hands over the message of each event, until asked to
/// stop. Blocks; fails most often because the log may not be read.
pub fn follow_kernel_log(
    path: &Path,
    stop: &CancellationToken,
    mut report: impl FnMut(String),
) -> io::Result<()> {
    let log = open_at_end(path)?;
    let mut record = [0; RECORD_BYTES];
    while !stop.is_cancelled() {
        match rustix::io::read(&log, &mut record) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                let text = String::from_utf8_lossy(&record[..length]);
                if let Some(message) = parse_record(&text) {
                    report(message);
                }
            }
            Err(Errno::AGAIN) => {
                let mut watched = [PollFd::new(&log, PollFlags::IN)];
                match poll(&mut watched, Some(&STOP_WITHIN)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            // Records were overwritten before they were read; the next one is there.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn open_at_end(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(i32::try_from(nonblocking).unwrap_or_default());
    let mut file = options.open(path)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// The event that a record of the log is about, if it is one:
///   4,1234,5678,-;Out of memory: Killed process 42 (hog) total-vm:…
/// A limit's own kill begins with `Memory cgroup out of memory`.
fn parse_record(record: &str) -> Option<String> {
    let (_, message) = record.split_once(';')?;
    if !message.starts_with("Out of memory") {
        return None;
    }
    let (_, victim) = message.split_once("Killed process ")?;
    let (pid, rest) = victim.split_once(" (")?;
    let pid: u32 = pid.parse().ok()?;
    let (name, _) = rest.rsplit_once(')')?;
    Some(format!(
        "System OOM encountered, victim process: {name}, pid: {pid}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kills_for_the_whole_machine_are_events() {
        let tail = "total-vm:1kB, anon-rss:1kB, UID:0 pgtables:44kB oom_score_adj:1000\n";
        for (record, expected) in [
            (
                format!("3,9,1,-;Out of memory: Killed process 42 (hog) {tail}"),
                Some("System OOM encountered, victim process: hog, pid: 42"),
            ),
            (
                format!("3,9,1,-;Out of memory: Killed process 7 (a (b)) {tail}"),
                Some("System OOM encountered, victim process: a (b), pid: 7"),
            ),
            (
                format!("3,9,1,-;Memory cgroup out of memory: Killed process 42 (hog) {tail}"),
                None,
            ),
            ("6,9,1,-;eth0: link becomes ready\n".to_owned(), None),
            ("no record".to_owned(), None),
        ] {
            assert_eq!(parse_record(&record).as_deref(), expected, "{record}");
        }
    }

    #[test]
    #[ignore = "tier: root"]
    fn the_log_is_followed_from_its_end() {
        let log = Path::new("/").join(KERNEL_LOG);
        let record = "Out of memory: Killed process 4242 (plimsoll-test) total-vm:1kB";
        let stop = CancellationToken::new();
        let mut messages = Vec::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while !stop.is_cancelled() {
                    std::fs::write(&log, record).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
            });
            let followed = follow_kernel_log(&log, &stop, |message| {
                messages.push(message);
                stop.cancel();
            });
            followed.unwrap();
            writer.join().unwrap();
        });
        let expected = "System OOM encountered, victim process: plimsoll-test, pid: 4242";
        assert_eq!(messages, [expected]);
    }
}
