//! The agent's own survival on a node that has no memory left.
//!
//! None of it is needed to run, and all of it may be forbidden: a failure is logged and ignored.

use std::io;
use std::path::Path;

use plimsoll_core::cgroup::Version;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::cgroup::{
    AGENT_OOM_SCORE_ADJ, Layout, parse_own_cgroup, write_oom_score_adj,
};

/// What is done for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Whether the kernel's OOM killer is to take it last.
    pub last_to_be_killed: bool,
    /// Whether code stays in memory once it has run ([`KeptCode`](super::code::KeptCode)).
    pub keep_code: bool,
    /// What its cgroup keeps whatever others need (`memory.min`, cgroup v2 only).
    pub memory_min: Option<Bytes>,
}

impl Protection {
    /// The agent is a process as any other.
    pub const NONE: Protection = Protection {
        last_to_be_killed: false,
        keep_code: false,
        memory_min: None,
    };
}

impl Default for Protection {
    /// All of it. What the agent does not use is not kept from others, so that the minimum may be
    /// more than it needs.
    fn default() -> Protection {
        Protection {
            last_to_be_killed: true,
            keep_code: true,
            memory_min: Some(Bytes(64 << 20)),
        }
    }
}

/// Does what can be done at once; returns what could not, in words for the log. Code is another
/// matter: [`KeptCode`](super::code::KeptCode).
pub fn protect_agent(wanted: Protection, mount_root: &Path, layout: &Layout) -> Vec<String> {
    let mut problems = Vec::new();
    let mut note = |what: &str, done: io::Result<()>| {
        if let Err(error) = done {
            problems.push(format!("{what}: {error}"));
        }
    };
    if wanted.last_to_be_killed {
        let own = std::process::id();
        let done = write_oom_score_adj(&mount_root.join("proc"), own, AGENT_OOM_SCORE_ADJ);
        note("the OOM killer may take the agent", done);
    }
    if let Some(kept) = wanted
        .memory_min
        .filter(|_| layout.version() == Version::V2)
    {
        let done = keep_memory(kept, mount_root, layout);
        note("no memory is kept for the agent", done);
    }
    problems
}

fn keep_memory(kept: Bytes, mount_root: &Path, layout: &Layout) -> io::Result<()> {
    let text = std::fs::read_to_string(mount_root.join("proc/self/cgroup"))?;
    let own = parse_own_cgroup(&text, layout.version());
    let own = own.filter(|own| own.as_str() != "/");
    let directory = own.and_then(|own| layout.directory("memory", &own));
    let directory = directory.ok_or_else(|| io::Error::other("it has no cgroup of its own"))?;
    std::fs::write(directory.join("memory.min"), kept.0.to_string())
}
