//! The agent's own survival on a node that has no memory left.
//!
//! None of it is needed to run, and all of it may be forbidden: what fails is told, and left.

use std::io;
use std::ops::Range;
use std::path::Path;

use plimsoll_core::cgroup::Version;
use plimsoll_core::resources::Bytes;
use rustix::mm::{MlockFlags, mlock_with};

use crate::cgroup::{AGENT_OOM_SCORE_ADJ, Layout, parse_own_cgroup, write_oom_score_adj};

/// What is done for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Whether the kernel's OOM killer is to take it last.
    pub last_to_be_killed: bool,
    /// Whether code that has run once stays in memory.
    pub lock_code: bool,
    /// What its cgroup keeps whatever others need (`memory.min`, cgroup v2 only).
    pub memory_min: Option<Bytes>,
}

impl Protection {
    /// The agent is a process as any other.
    pub const NONE: Protection = Protection {
        last_to_be_killed: false,
        lock_code: false,
        memory_min: None,
    };
}

impl Default for Protection {
    /// All of it. What the agent does not use is not kept from others, so that the minimum may be
    /// more than it needs.
    fn default() -> Protection {
        Protection {
            last_to_be_killed: true,
            lock_code: true,
            memory_min: Some(Bytes(64 << 20)),
        }
    }
}

/// Does what can be done; returns what could not, in words for the log.
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
    if wanted.lock_code {
        note("the agent's code may be dropped", lock_code(mount_root));
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

/// Keeps every page of the program and its libraries once it was used. Without swap, code is all
/// that a node under pressure takes from a process, to be read again from a disk that everybody
/// else waits for too.
///
/// `mlockall` would do for more than is good: all of the binary would have to be present, stacks
/// would take their full size, and what the allocator gives back would stay.
fn lock_code(mount_root: &Path) -> io::Result<()> {
    let maps = std::fs::read_to_string(mount_root.join("proc/self/maps"))?;
    code_in(&maps).try_for_each(lock_once_used)
}

/// Where files are mapped that are not written to, by the text of `/proc/self/maps`:
///   55d0c0a00000-55d0c1200000 r-xp 00200000 fe:00 1234   /usr/bin/plimsoll
fn code_in(maps: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        (is_file && !rights.contains('w')).then_some(address(start)?..address(end)?)
    })
}

#[expect(unsafe_code, reason = "mlock2 takes an address")]
fn lock_once_used(range: Range<usize>) -> io::Result<()> {
    let start = std::ptr::without_provenance_mut(range.start);
    // SAFETY: nothing is read or written through the address, and no page changes; a range that is
    // not mapped any more is an error.
    unsafe { mlock_with(start, range.len(), MlockFlags::ONFAULT)? };
    Ok(())
}

fn keep_memory(kept: Bytes, mount_root: &Path, layout: &Layout) -> io::Result<()> {
    let text = std::fs::read_to_string(mount_root.join("proc/self/cgroup"))?;
    let own = parse_own_cgroup(&text, layout.version());
    let own = own.filter(|own| own.as_str() != "/");
    let directory = own.and_then(|own| layout.directory("memory", &own));
    let directory = directory.ok_or_else(|| io::Error::other("it has no cgroup of its own"))?;
    std::fs::write(directory.join("memory.min"), kept.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_mapped_from_files_and_not_written_to() {
        let maps = "1000-3000 r--p 00000000 fe:00 12 /usr/bin/agent\n\
            3000-5000 r-xp 00002000 fe:00 12 /usr/bin/agent\n\
            5000-6000 rw-p 00004000 fe:00 12 /usr/bin/agent\n\
            6000-7000 rw-p 00000000 00:00 0 [heap]\n\
            8000-9000 r-xp 00000000 00:00 0 [vdso]\n\
            9000-a000 r--p 00000000 00:00 0\n";
        let found: Vec<_> = code_in(maps).collect();
        assert_eq!(found, [0x1000..0x3000, 0x3000..0x5000]);
    }

    #[test]
    #[ignore = "tier: root"]
    fn locking_the_code_makes_nothing_present_that_was_not() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
            pages * 4096
        };
        let before = resident();
        lock_code(Path::new("/")).unwrap();
        let locked = std::fs::read_to_string("/proc/self/status").unwrap();
        let locked = locked.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let kib: u64 = locked
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        assert!(kib > 1024, "{kib} KiB");
        assert!(
            resident() < before + (4 << 20),
            "{before} then {}",
            resident()
        );
    }
}
