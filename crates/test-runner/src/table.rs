//! How tests share the machine: one table.
//!
//! Most tests own their resources (folders, ports, cgroups, bridges and address ranges with names
//! of their own), so they run in any order and beside each other. A row says how many run in one
//! process, how much of the machine a process takes, and how long a test may take.

use std::time::Duration;

use crate::tier::Tier;

/// How many tests run in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// One.
    Own,
    /// Up to so many, one after the other. For tests of milliseconds, where starting a process and
    /// reading its tables would take longer than the test. A process that fails or hangs costs
    /// nothing: the failed test is known, and the others run in a new one.
    Batch(usize),
    /// All that are selected, in so many threads: tests that use something that the process starts
    /// once.
    Together(u32),
}

/// How much of the machine a process takes while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Waits for other programs most of the time: two for each core.
    Waits,
    /// Computes: one for each core.
    Computes,
    /// Nothing runs beside it: it measures times, or needs all cores.
    Alone,
}

/// Places on this machine; see [`Load::places`].
pub(crate) fn places() -> usize {
    2 * cores()
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Load {
    /// How many of [all places](places) a thread takes.
    pub(crate) fn places(self) -> usize {
        match self {
            Load::Waits => 1,
            Load::Computes => 2,
            Load::Alone => places(),
        }
    }
}

/// How a test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionMode {
    pub(crate) process: Process,
    pub(crate) load: Load,
    pub(crate) seconds: u32,
    /// Runs only if a filter contains its name: it takes too long for every run.
    pub(crate) only_by_name: bool,
}

impl ExecutionMode {
    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

const fn mode(process: Process, load: Load, seconds: u32) -> ExecutionMode {
    ExecutionMode {
        process,
        load,
        seconds,
        only_by_name: false,
    }
}

/// The mode of tests without a row. Limits are far above the time of any test on a busy machine,
/// and short enough to wait for.
const fn usual(tier: Tier) -> ExecutionMode {
    match tier {
        Tier::Fuzz => mode(Process::Own, Load::Computes, 1800),
        Tier::Unit => mode(Process::Batch(100), Load::Computes, 60),
        Tier::Tools => mode(Process::Own, Load::Waits, 180),
        Tier::Root => mode(Process::Own, Load::Computes, 300),
        // A machine has two emulated cpus that are idle half of the time.
        Tier::Vm => mode(Process::Own, Load::Computes, 1800),
    }
}

/// Tests of an executable and a tier whose names begin alike, and how they are run.
type Row = (&'static str, Tier, &'static str, ExecutionMode);

/// The first row that fits counts.
const ROWS: [Row; 22] = {
    use Load::{Alone, Computes, Waits};
    use Process::{Batch, Own, Together};
    use Tier::{Root, Tools, Unit, Vm};
    [
        // Each file of vectors is a test; the program prints its counts while it starts.
        ("core/vectors", Unit, "", mode(Own, Computes, 120)),
        ("apiserver/vectors", Unit, "", mode(Own, Computes, 120)),
        // Hundreds of random inputs for each law.
        ("core/properties", Unit, "", mode(Batch(8), Computes, 120)),
        (
            "apiserver/properties",
            Unit,
            "",
            mode(Batch(8), Computes, 120),
        ),
        // Each kills or starves a store again and again, for seconds.
        (
            "apiserver/store_durability",
            Unit,
            "",
            mode(Own, Computes, 300),
        ),
        ("plimsoll/crash", Unit, "", mode(Own, Computes, 600)),
        // Load on both cores; etcd elects another leader where it gets no turn for a second.
        ("plimsoll/crash", Root, "faults::", mode(Own, Alone, 180)),
        // It measures waits while others take all that they can get.
        (
            "apiserver/server",
            Unit,
            "fairness::administrator_",
            mode(Own, Alone, 300),
        ),
        // Servers inside of the test's process, and clients that wait for them.
        ("apiserver/server", Unit, "", mode(Batch(8), Computes, 120)),
        // They have runners of their own, and a compiler.
        (
            "test-runner/runner",
            Unit,
            "",
            mode(Batch(100), Computes, 180),
        ),
        // One server for all sessions, which have namespaces of their own; kubectl takes the time.
        ("plimsoll/kubectl", Tools, "", mode(Together(4), Waits, 180)),
        // Heartbeats of fake nodes must arrive in time.
        (
            "plimsoll/flows",
            Tools,
            "silent_node::",
            mode(Own, Alone, 180),
        ),
        // Chaos kills servers for two minutes; the others wait for kubectl.
        ("plimsoll/flows", Tools, "", mode(Own, Waits, 300)),
        // One containerd and one embedded runtime for all cases, which have pods, cgroups and
        // folders of their own. Cases that take the runtime down wait for the others to end.
        ("node/runtime", Root, "", mode(Together(2), Computes, 180)),
        // The whole contract on containerd in an emulated machine takes a quarter of an hour.
        (
            "node/runtime",
            Vm,
            "vm/cri",
            ExecutionMode {
                only_by_name: true,
                ..mode(Own, Computes, 3600)
            },
        ),
        // Memory that runs out against an agent that looks; one writes into the kernel's log, which
        // all agents read.
        ("node/lib", Root, "eviction::", mode(Own, Alone, 120)),
        // Stories wait for the node's periods; each has a machine of its own to run out of.
        ("plimsoll/stories", Root, "", mode(Own, Waits, 300)),
        // Nodes that run short: what counts is which pod goes first, and how soon.
        ("plimsoll/node", Root, "pressure::", mode(Own, Alone, 300)),
        // Hostile pods fill all the space they get, on two nodes one after the other.
        ("plimsoll/node", Root, "hostile::", mode(Own, Computes, 600)),
        // On an emulated machine that is busy, a quarter of an hour each.
        (
            "plimsoll/node",
            Vm,
            "vm::hostile_containers_of_containerd",
            ExecutionMode {
                only_by_name: true,
                ..mode(Own, Computes, 3600)
            },
        ),
        // Times from shortage to death in a machine that needs both cores.
        ("plimsoll/trial", Vm, "", mode(Own, Alone, 1800)),
        // A node that is polled several times a second.
        ("plimsoll/soak", Root, "", mode(Own, Alone, 900)),
    ]
};

/// How a test of an executable is run.
pub(crate) fn mode_of(executable: &str, tier: Tier, test: &str) -> ExecutionMode {
    let row = ROWS.iter().find(|(of, of_tier, prefix, _)| {
        *of == executable && *of_tier == tier && test.starts_with(prefix)
    });
    row.map_or(usual(tier), |(_, _, _, mode)| *mode)
}

/// An executable that tries random inputs, and how many.
struct Fuzzed {
    executable: &'static str,
    /// In a run of everything; 0: as many as in tier unit.
    in_full_run: u32,
    /// In a run of tier fuzz.
    in_fuzz: u32,
}

const FUZZED: [Fuzzed; 3] = [
    Fuzzed {
        executable: "core/fuzz",
        in_full_run: 200_000,
        in_fuzz: 1_000_000,
    },
    // The API server's readers work on whole objects: fewer inputs, each of many parts.
    Fuzzed {
        executable: "apiserver/fuzz",
        in_full_run: 0,
        in_fuzz: 50_000,
    },
    // The indexed scheduler against the plain one, on that many random streams of events.
    Fuzzed {
        executable: "core/indexed",
        in_full_run: 20_000,
        in_fuzz: 100_000,
    },
];

/// Which runs choose the number of inputs by a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// proptest's default; nothing is of tier fuzz.
    Usual,
    InFullRun,
    InFuzz,
}

/// How many random inputs an executable's tests try if they are of tier fuzz in such a run.
pub(crate) fn inputs_of(executable: &str, inputs: Inputs) -> Option<u32> {
    let fuzzed = FUZZED.iter().find(|row| row.executable == executable)?;
    let count = match inputs {
        Inputs::Usual => 0,
        Inputs::InFullRun => fuzzed.in_full_run,
        Inputs::InFuzz => fuzzed.in_fuzz,
    };
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        let pressure = mode_of("plimsoll/node", Tier::Root, "pressure::restart::x");
        assert_eq!(pressure.load, Load::Alone);
        let other = mode_of("plimsoll/node", Tier::Root, "streams::x");
        assert_eq!(other, usual(Tier::Root));
        let cheap = mode_of("node/lib", Tier::Unit, "eviction::tests::x");
        assert_eq!(cheap, usual(Tier::Unit));
        assert!(mode_of("node/runtime", Tier::Vm, "vm/cri").only_by_name);
        assert!(!mode_of("node/runtime", Tier::Vm, "vm/embedded").only_by_name);
    }

    #[test]
    fn every_row_is_about_an_executable_that_exists() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let rows = ROWS.iter().map(|(executable, ..)| *executable);
        let fuzzed = FUZZED.iter().map(|row| row.executable);
        for executable in rows.chain(fuzzed) {
            let (of, target) = executable.split_once('/').unwrap();
            let tests = crates.join(of).join("tests");
            let exists = match target {
                "lib" => crates.join(of).join("src/lib.rs").exists(),
                _ => tests.join(target).is_dir() || tests.join(format!("{target}.rs")).exists(),
            };
            assert!(
                exists,
                "the table has a row for {executable}, which is not there"
            );
        }
    }

    #[test]
    fn only_some_executables_are_fuzzed() {
        assert_eq!(inputs_of("core/fuzz", Inputs::InFullRun), Some(200_000));
        assert_eq!(inputs_of("apiserver/fuzz", Inputs::InFullRun), None);
        assert_eq!(inputs_of("apiserver/fuzz", Inputs::InFuzz), Some(50_000));
        assert_eq!(inputs_of("core/fuzz", Inputs::Usual), None);
        assert_eq!(inputs_of("core/lib", Inputs::InFuzz), None);
    }
}
