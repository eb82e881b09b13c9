//! What a node has left on the machine, by kind and name, and how it is printed.

use std::collections::{BTreeMap, BTreeSet};

/// What an agent makes, in the order in which it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A process that uses the data directory.
    Process,
    /// A pod of which something runs.
    Pod,
    /// A pod of which nothing runs any more.
    EndedPod,
    /// A mounted file system: a volume, the root of a container.
    Mount,
    /// A cgroup, whatever trees it is in.
    Cgroup,
    /// The machine's side of the network card of a pod.
    NetworkCard,
    /// The bridge that joins pods.
    Bridge,
    /// The nftables table that translates addresses of pods.
    Table,
    /// The logs of a pod.
    Logs,
    /// A link to the log of a container.
    LogLink,
    /// A kernel setting that agents have changed.
    Sysctl,
    /// The data directory.
    Data,
}

/// How a kind is written.
struct Words {
    verb: &'static str,
    past: &'static str,
    one: &'static str,
    many: &'static str,
    /// Whether names say more than their number.
    is_named: bool,
}

/// More names than this are counted.
const MOST_NAMED: usize = 8;

impl Kind {
    fn words(self) -> Words {
        let removed = |one, many, is_named| Words {
            verb: "remove",
            past: "removed",
            one,
            many,
            is_named,
        };
        match self {
            Kind::Process => Words {
                verb: "end",
                past: "ended",
                one: "",
                many: "processes",
                is_named: true,
            },
            Kind::Pod => Words {
                verb: "stop",
                past: "stopped",
                one: "pod",
                many: "pods",
                is_named: true,
            },
            Kind::EndedPod => removed("ended pod", "ended pods", true),
            Kind::Mount => Words {
                verb: "unmount",
                past: "unmounted",
                one: "",
                many: "file systems",
                is_named: false,
            },
            Kind::Cgroup => removed("cgroup", "cgroups", false),
            Kind::NetworkCard => removed("network card", "network cards", false),
            Kind::Bridge => removed("bridge", "bridges", true),
            Kind::Table => removed("nftables table ip", "nftables tables ip", true),
            Kind::Logs => removed("logs", "log directories", false),
            Kind::LogLink => removed("link", "links to logs", false),
            Kind::Sysctl => Words {
                verb: "put back",
                past: "put back",
                one: "sysctl",
                many: "sysctls",
                is_named: true,
            },
            Kind::Data => removed("the data in", "data directories", true),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(BTreeMap<Kind, BTreeSet<String>>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, kind: Kind, name: impl Into<String>) {
        self.0.entry(kind).or_default().insert(name.into());
    }

    /// Adds several.
    pub fn extend<N: Into<String>>(&mut self, kind: Kind, names: impl IntoIterator<Item = N>) {
        for name in names {
            self.add(kind, name);
        }
    }

    /// The names of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.0.get(&kind).into_iter().flatten().map(String::as_str)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is here and not there.
    pub fn without(&self, other: &Findings) -> Findings {
        let mut left = Findings::default();
        for (kind, names) in &self.0 {
            let others = other.0.get(kind);
            let is_other = |name: &&String| others.is_some_and(|others| others.contains(*name));
            left.extend(*kind, names.iter().filter(|name| !is_other(name)).cloned());
        }
        left
    }

    /// What would be done about it, a line for each kind.
    pub fn intentions(&self) -> Vec<String> {
        self.lines(|words| format!("would {}", words.verb))
    }

    /// What was done about it, a line for each kind.
    pub fn deeds(&self) -> Vec<String> {
        self.lines(|words| words.past.to_owned())
    }

    /// What could not be done about it, a line for each kind.
    pub fn failures(&self) -> Vec<String> {
        self.lines(|words| format!("could not {}", words.verb))
    }

    fn lines(&self, doing: impl Fn(&Words) -> String) -> Vec<String> {
        let lines = self.0.iter().map(|(kind, names)| {
            let words = kind.words();
            format!("{} {}", doing(&words), objects(&words, names))
        });
        lines.collect()
    }
}

fn objects(words: &Words, names: &BTreeSet<String>) -> String {
    let list = || {
        names
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (names.len(), words.one) {
        (1, "") => list(),
        (1, one) => format!("{one} {}", list()),
        (count, _) if words.is_named && count <= MOST_NAMED => {
            format!("{count} {}: {}", words.many, list())
        }
        (count, _) => format!("{count} {}", words.many),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        let mut findings = Findings::default();
        findings.add(Kind::Bridge, "plimsoll0");
        findings.add(Kind::Process, "plimsoll up (pid 7)");
        findings.extend(Kind::Pod, ["default/a", "default/b"]);
        findings.extend(Kind::Mount, (0..12).map(|number| format!("/m{number}")));
        findings.add(Kind::Sysctl, "vm.panic_on_oom = 1");
        findings
    }

    #[test]
    fn writes_one_line_for_each_kind_in_order_of_removal() {
        assert_eq!(
            findings().deeds(),
            [
                "ended plimsoll up (pid 7)",
                "stopped 2 pods: default/a, default/b",
                "unmounted 12 file systems",
                "removed bridge plimsoll0",
                "put back sysctl vm.panic_on_oom = 1",
            ]
        );
        assert_eq!(findings().intentions()[3], "would remove bridge plimsoll0");
        assert_eq!(
            findings().failures()[0],
            "could not end plimsoll up (pid 7)"
        );
    }

    #[test]
    fn removed_findings_are_the_difference() {
        let mut after = Findings::default();
        after.add(Kind::Pod, "default/b");
        let gone = findings().without(&after);
        assert_eq!(gone.of(Kind::Pod).collect::<Vec<_>>(), ["default/a"]);
        assert!(findings().without(&findings()).is_empty());
    }
}
