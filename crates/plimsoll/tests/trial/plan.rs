//! The list of trials.

use std::time::Duration;

/// The hard line, in MiB.
pub(crate) const LINE_MIB: i64 = 300;

/// Rates of hogs, in MiB per second.
const RATES: [u32; 4] = [10, 50, 100, 200];

/// How the node is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Whether 300 MiB are reserved for the system and the agent, so that the pods' own cgroup has a
    /// line too, which is crossed first.
    pub(crate) is_reserved: bool,
    /// Whether the agent checks only every ten seconds.
    pub(crate) is_poll_only: bool,
    /// Where `memory.available` comes from.
    pub(crate) memory_signal: &'static str,
    /// How long the node is under pressure after it was; does not touch the time to evict.
    pub(crate) transition: Duration,
}

/// What takes the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// A process that takes it.
    Hog {
        /// In MiB per second.
        rate: u32,
        /// Whether it exits on SIGTERM.
        is_polite: bool,
    },
    /// The page cache of a process that reads a large file again and again.
    Reader,
    /// No load: what bystanders wait for without a hog is caused by the machine.
    None,
}

impl Load {
    /// The name of its pod and of its program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Load::Hog { .. } => "hog",
            Load::Reader => "reader",
            Load::None => "none",
        }
    }
}

/// A trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) setup: Setup,
    pub(crate) load: Load,
}

impl Trial {
    /// Whether the limits apply: a pod takes memory, and the kernel wakes the agent.
    pub(crate) fn is_measured(&self) -> bool {
        !self.setup.is_poll_only && self.load != Load::None
    }

    /// What it is called in the table.
    pub(crate) fn label(&self) -> String {
        let config = if self.setup.is_reserved { "B" } else { "A" };
        let load = match self.load {
            Load::Hog { rate, is_polite } => {
                let manners = if is_polite { ", polite" } else { "" };
                format!("{rate} MiB/s{manners}")
            }
            Load::Reader => format!("page cache, {}", self.setup.memory_signal),
            Load::None => "none".to_owned(),
        };
        let poll = match self.setup.is_poll_only {
            true => ", --poll-only",
            false => "",
        };
        format!("{config}, {load}{poll}")
    }
}

/// All trials on one node, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) setup: Setup,
    pub(crate) loads: Vec<Load>,
}

const fn stubborn(rate: u32) -> Load {
    Load::Hog {
        rate,
        is_polite: false,
    }
}

const fn polite(rate: u32) -> Load {
    Load::Hog {
        rate,
        is_polite: true,
    }
}

/// The set by its name: `short`, `page-cache`, or how many hogs are to be evicted at least by an agent
/// that the kernel wakes. Beside them there are some with one that polls, a quarter as many of each.
pub(crate) fn stages(name: &str) -> Vec<Stage> {
    let events = Setup {
        is_reserved: false,
        is_poll_only: false,
        memory_signal: "workingSet",
        transition: Duration::from_secs(2),
    };
    let reserved = Setup {
        is_reserved: true,
        ..events
    };
    let poll = Setup {
        is_poll_only: true,
        ..events
    };
    let kernels = Setup {
        memory_signal: "memAvailable",
        ..events
    };
    let stage = |setup, loads: &[Load]| Stage {
        setup,
        loads: loads.to_vec(),
    };
    if name == "short" {
        return vec![
            stage(events, &[stubborn(100), polite(200)]),
            stage(reserved, &[stubborn(100)]),
            stage(poll, &[stubborn(200)]),
        ];
    }
    let caches = [
        stage(kernels, &[Load::Reader]),
        stage(events, &[Load::Reader]),
    ];
    if name == "page-cache" {
        return caches.to_vec();
    }
    let count: usize = name
        .parse()
        .expect("short, page-cache, or a number of trials");
    let mut plain: Vec<Load> = RATES.map(stubborn).to_vec();
    plain.push(polite(100));
    let rounds = count.div_ceil(plain.len() + RATES.len());
    let rates = RATES.map(stubborn);
    plain = plain.repeat(rounds);
    plain.insert(0, Load::None);
    let hogs = [
        stage(poll, &rates.repeat(rounds.div_ceil(4))),
        stage(reserved, &rates.repeat(rounds)),
        stage(events, &plain),
    ];
    hogs.into_iter().chain(caches).collect()
}
