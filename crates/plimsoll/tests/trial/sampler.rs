//! The sampler: takes a sample every 20 ms, whatever else runs.
//!
//! It has a thread with real-time priority and locked memory, so that it still samples when no other process
//! runs. The kernel reports exits of processes.

use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::mem_info::{MemInfo, Reread, number_after};
use crate::outcome::unix_nanos;
use crate::waits::{Causes, Waits};

const EVERY: Duration = Duration::from_millis(20);
/// The counter of kills is in a long file, which is read less often.
const LOOKS_PER_COUNT: usize = 5;
/// Longer than any trial.
const MOST: usize = 240 * 50;

/// What was seen at a time. Memory is in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// In nanoseconds since 1970.
    pub(crate) at: i64,
    /// What is left of the node by a kubelet's signal.
    pub(crate) left: i64,
    /// What is left to all pods together.
    pub(crate) left_to_pods: i64,
    /// What the kernel says it could hand out.
    pub(crate) available: i64,
    /// How many processes the kernel has killed for want of memory since it was booted.
    pub(crate) oom_kills: i64,
    /// What the Guaranteed pod has waited for since it was started.
    pub(crate) waits: Waits,
}

/// That a process ended.
#[derive(Clone, Debug)]
pub(crate) struct Death {
    pub(crate) at: i64,
    pub(crate) name: String,
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) samples: Vec<Sample>,
    pub(crate) deaths: Vec<Death>,
}

/// A process to be watched.
struct Watched {
    name: String,
    process: OwnedFd,
}

/// Samples until it is stopped.
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    watch: Sender<Watched>,
    thread: JoinHandle<Recording>,
}

impl Sampler {
    /// Looks at the machine, and at what the keeper waits for if there is one.
    pub(crate) fn start(keeper: Option<i32>) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let (watch, watched) = channel();
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || look(&until, &watched, keeper));
        Sampler {
            stop,
            watch,
            thread,
        }
    }

    /// Notes when the process ends.
    pub(crate) fn watch(&self, name: &str, pid: i32) {
        let pid = Pid::from_raw(pid).unwrap();
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            let name = name.to_owned();
            self.watch.send(Watched { name, process }).unwrap();
        }
    }

    pub(crate) fn stop(self) -> Recording {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// The files that a look reads.
struct Sources {
    node: Reread,
    kills: Reread,
    usage: Reread,
    stat: Reread,
    limit: Reread,
    waits: Option<Causes>,
}

impl Sources {
    fn open(keeper: Option<i32>) -> Sources {
        let open = |path: &str| Reread::open(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        Sources {
            node: open("/proc/meminfo"),
            kills: open("/proc/vmstat"),
            usage: open("/sys/fs/cgroup/kubepods/memory.current"),
            stat: open("/sys/fs/cgroup/kubepods/memory.stat"),
            limit: open("/sys/fs/cgroup/kubepods/memory.max"),
            waits: keeper.map(Causes::of),
        }
    }

    fn look(&mut self, before: Sample, counts: bool) -> Sample {
        let memory = MemInfo::parse(self.node.read());
        let limit = number_after(self.limit.read(), "").unwrap_or(i64::MAX);
        let usage = number_after(self.usage.read(), "").unwrap_or_default();
        let inactive = number_after(self.stat.read(), "\ninactive_file ").unwrap_or_default();
        let oom_kills = match counts {
            true => number_after(self.kills.read(), "\noom_kill ").unwrap_or_default(),
            false => before.oom_kills,
        };
        Sample {
            at: unix_nanos(),
            left: memory.left(),
            left_to_pods: (limit - (usage - inactive)) / 1024,
            available: memory.available,
            oom_kills,
            waits: self.waits.as_mut().map(Causes::read).unwrap_or_default(),
        }
    }
}

fn look(stop: &AtomicBool, watch: &Receiver<Watched>, keeper: Option<i32>) -> Recording {
    let mut sources = Sources::open(keeper);
    become_urgent();
    let mut recording = Recording {
        // Written to, so that it is there when there is nothing left.
        samples: vec![
            Sample {
                at: 1,
                ..Sample::default()
            };
            MOST
        ],
        deaths: Vec::with_capacity(16),
    };
    let mut watched: Vec<Watched> = Vec::with_capacity(16);
    let (mut count, mut last) = (0, Sample::default());
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) && count < MOST {
        watched.extend(watch.try_iter());
        last = sources.look(last, count % LOOKS_PER_COUNT == 0);
        recording.samples[count] = last;
        count += 1;
        due = (due + EVERY).max(Instant::now() + EVERY / 4);
        wait_for_deaths(&mut watched, due, &mut recording.deaths);
    }
    recording.samples.truncate(count);
    let last = sources.look(last, true);
    recording.samples.push(last);
    recording
}

/// Waits until the next sample. Records processes that exit meanwhile at once.
fn wait_for_deaths(watched: &mut Vec<Watched>, due: Instant, deaths: &mut Vec<Death>) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let mut polled: Vec<PollFd<'_>> = watched
            .iter()
            .map(|watched| PollFd::new(&watched.process, PollFlags::IN))
            .collect();
        let left = Timespec::try_from(left).ok();
        let _ = poll(&mut polled, left.as_ref());
        let at = unix_nanos();
        let ended: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        drop(polled);
        let mut ended = ended.into_iter();
        watched.retain(|watched| {
            let is_over = ended.next().unwrap_or_default();
            if is_over {
                let name = watched.name.clone();
                deaths.push(Death { at, name });
            }
            !is_over
        });
    }
}

/// Real-time priority, which `chrt` gives a thread by its id.
pub(crate) fn become_urgent() {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let given = Command::new("chrt").args(["-f", "-p", "10", &own]).output();
    let given = given.unwrap();
    assert!(given.status.success(), "{given:?}");
}
