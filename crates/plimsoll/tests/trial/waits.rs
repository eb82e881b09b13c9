//! What a process waited for, according to the kernel.
//!
//! A pod that is late need not be short of memory: one with a cpu limit that has used its share waits
//! for the next period, and in an emulated machine everything that takes the host's cpu is charged to
//! the processes of the guest.

use crate::mem_info::{Reread, number_after};

const ROOT: &str = "/sys/fs/cgroup";

/// All of it since the process was started, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// For its own cpu limit.
    pub(crate) throttled: i64,
    /// For memory: to be reclaimed, or to be read again.
    pub(crate) memory: i64,
}

impl Waits {
    /// From then until now.
    pub(crate) fn since(self, then: Waits) -> Waits {
        Waits {
            throttled: self.throttled - then.throttled,
            memory: self.memory - then.memory,
        }
    }
}

/// The files of its cgroups with that information.
pub(crate) struct Causes {
    /// A limit stands at the container and at the pod.
    limits: Vec<Reread>,
    memory: Reread,
}

impl Causes {
    /// Of the cgroups that the process is in.
    pub(crate) fn of(pid: i32) -> Causes {
        let of = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let container = format!("{ROOT}{}", of.trim().trim_start_matches("0::"));
        let pod = container.rsplit_once('/').unwrap().0;
        let open = |folder: &str, name: &str| {
            let path = format!("{folder}/{name}");
            Reread::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        Causes {
            limits: vec![open(&container, "cpu.stat"), open(pod, "cpu.stat")],
            memory: open(&container, "memory.pressure"),
        }
    }

    pub(crate) fn read(&mut self) -> Waits {
        let throttled = self.limits.iter_mut();
        let throttled = throttled.filter_map(|file| number_after(file.read(), "throttled_usec "));
        Waits {
            throttled: throttled.max().unwrap_or_default(),
            // The first line is about some of its threads, of which there is one.
            memory: number_after(self.memory.read(), "total=").unwrap_or_default(),
        }
    }
}
