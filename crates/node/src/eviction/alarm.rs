//! How the kernel wakes the shell.
//!
//! With cgroup v2 by stalls for want of memory (PSI) of the machine and of all pods, and when the
//! limit of all pods is hit. With cgroup v1 when usage passes a mark, which is moved as page cache
//! that does not count comes and goes. The timer runs in any case, so that an alarm that cannot be set up only costs time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::cgroup::{CgroupPath, Version};
use plimsoll_core::eviction::Engine;
use plimsoll_core::threshold::Signal;
use plimsoll_runtime::cgroup::Layout;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::gauge::Look;
use super::settings::Settings;

/// Some task stood still for 20 ms within half a second, the shortest span there is.
const STALL: &[u8] = b"some 20000 500000\0";
/// By how much a mark may be off before it is moved.
const SLACK: i64 = 2 << 20;

/// The kernel's alarms.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    stalls: Vec<File>,
    /// Changes when the limit of all pods is hit or a process is killed for it.
    events: Option<File>,
    marks: Vec<Mark>,
}

/// An alarm of cgroup v1 on the usage of a cgroup.
#[derive(Debug)]
struct Mark {
    signal: Signal,
    directory: PathBuf,
    usage: File,
    armed: Option<(i64, OwnedFd)>,
}

impl Alarms {
    pub(super) fn new(settings: &Settings, layout: &Layout, kubepods: &CgroupPath) -> Alarms {
        let directory = |cgroup| layout.directory("memory", cgroup).unwrap_or_default();
        let (machine, pods) = (directory(&settings.machine), directory(kubepods));
        match layout.version() {
            Version::V1 => {
                let marks = [
                    (Signal::MemoryAvailable, machine),
                    (Signal::AllocatableMemoryAvailable, pods),
                ];
                let marks = marks.into_iter().filter_map(|(signal, directory)| {
                    let usage = File::open(directory.join("memory.usage_in_bytes"));
                    Some(Mark {
                        signal,
                        usage: usage.ok()?,
                        directory,
                        armed: None,
                    })
                });
                Alarms {
                    marks: marks.collect(),
                    ..Alarms::default()
                }
            }
            Version::V2 => {
                let whole = settings.mount_root.join("proc/pressure/memory");
                let machine = match settings.machine.as_str() {
                    "/" => whole,
                    _ => machine.join("memory.pressure"),
                };
                let stalls = [machine, pods.join("memory.pressure")];
                let stalls = stalls.iter().filter_map(|path| {
                    let opened = open_stall(path);
                    let problem = |error: &io::Error| {
                        tracing::warn!(path = %path.display(), %error, "failed to set up notification of memory stalls");
                    };
                    opened.inspect_err(problem).ok()
                });
                Alarms {
                    stalls: stalls.collect(),
                    events: File::open(pods.join("memory.events")).ok(),
                    marks: Vec::new(),
                }
            }
        }
    }

    /// Moves the marks to where the first threshold of each signal is now.
    pub(super) fn aim(&mut self, look: &Look, engine: &Engine) {
        for mark in &mut self.marks {
            let (memory, inactive) = match mark.signal {
                Signal::MemoryAvailable => (Some(&look.machine), look.machine_inactive),
                _ => (look.pods.as_ref(), look.pods_inactive),
            };
            let (Some(memory), Some(line)) = (memory, engine.first_memory_threshold(mark.signal))
            else {
                continue;
            };
            let capacity = memory.available.0 + memory.working_set.0;
            mark.move_to(capacity - line + inactive);
        }
    }

    /// Waits until the kernel or another thread signals, or the time is over.
    pub(super) fn wait(&mut self, bell: BorrowedFd<'_>, timeout: Duration) {
        let stalls = self
            .stalls
            .iter()
            .map(|file| (file.as_fd(), PollFlags::PRI));
        let events = self
            .events
            .iter()
            .map(|file| (file.as_fd(), PollFlags::PRI));
        let marks = self.marks.iter().filter_map(|mark| {
            let (_, event) = mark.armed.as_ref()?;
            Some((event.as_fd(), PollFlags::IN))
        });
        let all = std::iter::once((bell, PollFlags::IN)).chain(stalls);
        let all = all.chain(events).chain(marks);
        let mut watched: Vec<PollFd<'_>> = all
            .map(|(file, flags)| PollFd::from_borrowed_fd(file, flags))
            .collect();
        let timeout = Timespec::try_from(timeout).ok();
        // Interrupted or not, the memory is looked at next.
        let _ = poll(&mut watched, timeout.as_ref());
        let is_gone = |found: &PollFd<'_>| found.revents().contains(PollFlags::ERR);
        let gone: Vec<bool> = watched[1..=self.stalls.len()].iter().map(is_gone).collect();
        let rang = watched[0].revents().contains(PollFlags::IN);
        drop(watched);
        if rang {
            drain(bell);
        }
        for mark in &self.marks {
            if let Some((_, event)) = &mark.armed {
                drain(event.as_fd());
            }
        }
        if let Some(events) = &self.events {
            // Until it is read it rings again and again.
            let _ = events.read_at(&mut [0; 512], 0);
        }
        // An alarm on a cgroup that is gone would ring for ever.
        let mut gone = gone.into_iter();
        self.stalls.retain(|_| !gone.next().unwrap_or_default());
    }
}

impl Mark {
    fn move_to(&mut self, usage: i64) {
        let is_near = |(at, _): &(i64, OwnedFd)| (at - usage).abs() <= SLACK;
        if usage <= 0 || self.armed.as_ref().is_some_and(is_near) {
            return;
        }
        match self.arm(usage) {
            Ok(event) => self.armed = Some((usage, event)),
            Err(error) => {
                let directory = self.directory.display();
                tracing::debug!(%directory, %error, "failed to set up notification of memory usage");
            }
        }
    }

    fn arm(&self, usage: i64) -> io::Result<OwnedFd> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (ring, file) = (event.as_raw_fd(), self.usage.as_raw_fd());
        let control = self.directory.join("cgroup.event_control");
        let mut control = OpenOptions::new().write(true).open(control)?;
        control.write_all(format!("{ring} {file} {usage}").as_bytes())?;
        Ok(event)
    }
}

fn open_stall(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(i32::try_from(nonblocking).unwrap_or_default());
    let mut file = options.open(path)?;
    file.write_all(STALL)?;
    Ok(file)
}

/// Takes the rings off a bell that does not block.
fn drain(bell: BorrowedFd<'_>) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}
