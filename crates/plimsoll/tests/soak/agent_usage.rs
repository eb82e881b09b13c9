//! Resource usage of the agent.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

/// How much an agent may take beyond what it took when it was warm: some, and some for each pod that
/// its API server has not forgotten yet. Measured: see docs/performance.md.
const MORE_MEBIBYTES: u64 = 16;
const MORE_KIBIBYTES_PER_POD: u64 = 448;
/// And how many more descriptors: connections that clients keep open come and go.
const MORE_DESCRIPTORS: usize = 6;

/// Of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentUsage {
    /// Its own memory; code that has run is kept in memory by intent.
    pub(crate) memory_mebibytes: u64,
    pub(crate) threads: u64,
    /// How many of each kind, or of each file.
    pub(crate) descriptors: BTreeMap<String, usize>,
}

impl AgentUsage {
    pub(crate) fn of(process: u32) -> AgentUsage {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|rest| rest.split_whitespace().next());
            word.and_then(|word| word.parse::<u64>().ok())
                .unwrap_or_default()
        };
        let mut descriptors = BTreeMap::new();
        let entries = fs::read_dir(format!("/proc/{process}/fd"));
        for entry in entries.into_iter().flatten().flatten() {
            let Ok(link) = fs::read_link(entry.path()) else {
                continue;
            };
            let link = link.to_string_lossy().into_owned();
            // Numbers of sockets and pipes carry no information.
            let kind = link.split(":[").next().unwrap_or_default().to_owned();
            *descriptors.entry(kind).or_default() += 1;
        }
        AgentUsage {
            memory_mebibytes: number("RssAnon:") / 1024,
            threads: number("Threads:"),
            descriptors,
        }
    }

    fn open(&self) -> usize {
        self.descriptors.values().sum()
    }

    /// Whether it holds the same files as before. Clients come and go at any time.
    pub(crate) fn is_at_rest(&self, before: &AgentUsage) -> bool {
        let held = |usage: &AgentUsage| {
            let mut held = usage.descriptors.clone();
            held.remove("socket");
            held
        };
        held(self) == held(before)
    }

    /// Whether that is hardly more than another, of an agent that remembers so many pods more.
    pub(crate) fn is_like(&self, warm: &AgentUsage, pods: usize) -> bool {
        let remembered = pods as u64 * MORE_KIBIBYTES_PER_POD / 1024;
        self.memory_mebibytes <= warm.memory_mebibytes + MORE_MEBIBYTES + remembered
            && self.open() <= warm.open() + MORE_DESCRIPTORS
    }

    /// Of which descriptors there are more.
    pub(crate) fn more_descriptors(&self, warm: &AgentUsage) -> Vec<String> {
        let more = self.descriptors.iter().filter_map(|(kind, count)| {
            let known = warm.descriptors.get(kind).copied().unwrap_or_default();
            (*count > known).then(|| format!("descriptor {kind}: {known} became {count}"))
        });
        more.collect()
    }

    /// How that is more than another.
    pub(crate) fn beyond(&self, warm: &AgentUsage) -> String {
        let more = self.more_descriptors(warm).join("\n");
        format!("{warm} became {self}\n{more}")
    }
}

impl fmt::Display for AgentUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, threads) = (self.memory_mebibytes, self.threads);
        write!(
            f,
            "{memory} MiB, {} descriptors, {threads} threads",
            self.open()
        )
    }
}
