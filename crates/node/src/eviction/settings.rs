//! The settings of the eviction shell.

use std::path::PathBuf;

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::eviction;
use plimsoll_core::resources::Bytes;

/// The settings of the eviction shell, fixed for its life.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the engine is set up.
    pub engine: eviction::Settings,
    /// What `/proc` is below; `/` but in tests.
    pub mount_root: PathBuf,
    /// The cgroup whose memory is the machine's: the root, unless a cgroup plays the machine.
    pub machine: CgroupPath,
    /// The memory of the machine; the kernel's figure if `None`.
    pub capacity: Option<Bytes>,
    /// What wakes the eviction thread.
    pub waking: Waking,
    /// Where records of decisions are kept; nowhere but in memory if `None`.
    pub decisions_dir: Option<PathBuf>,
    /// How many of them.
    pub kept_decisions: usize,
}

/// What wakes the eviction thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waking {
    /// The kernel, and a timer that runs the faster the nearer a line is.
    #[default]
    Events,
    /// A timer of ten seconds, as upstream's; for comparison.
    PollOnly,
}

impl Settings {
    /// The default number of kept records.
    pub const KEPT_DECISIONS: usize = 64;

    /// The whole machine, watched by events.
    pub fn new(engine: eviction::Settings) -> Settings {
        Settings {
            engine,
            mount_root: PathBuf::from("/"),
            machine: plimsoll_core::cgroup::CgroupName::ROOT
                .to_path(plimsoll_core::cgroup::Driver::Cgroupfs),
            capacity: None,
            waking: Waking::Events,
            decisions_dir: None,
            kept_decisions: Settings::KEPT_DECISIONS,
        }
    }
}
