//! The agent's own survival on a node that has no memory left.
//!
//! None of it is needed to run, and all of it may be forbidden: what fails is told, and left.

use std::io;
use std::ops::Range;
use std::path::Path;

use plimsoll_core::cgroup::Version;
use plimsoll_core::resources::Bytes;
use rustix::mm::{Advice, MlockFlags, madvise, mlock_with};

use crate::cgroup::{AGENT_OOM_SCORE_ADJ, Layout, parse_own_cgroup, write_oom_score_adj};

/// What is done for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Whether the kernel's OOM killer is to take it last.
    pub last_to_be_killed: bool,
    /// Whether code stays in memory once it has run ([`keep_code`]).
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
/// matter: [`keep_code`].
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

/// Keeps every page of the program and its libraries once it is used from now on. Without swap,
/// code is all that a node under pressure takes from a process, to be read again from a disk that
/// everybody else waits for too.
///
/// To be called when the agent has started: code that only its start needed, half of what is
/// present then, is let go first. `mlockall` would do for more than is good: all of the binary
/// would have to be present, stacks would take their full size, and what the allocator gives back
/// would stay.
pub fn keep_code(mount_root: &Path) -> io::Result<()> {
    let maps = std::fs::read_to_string(mount_root.join("proc/self/maps"))?;
    for mapping in files_in(&maps) {
        if mapping.is_code {
            let_go(&mapping.range)?;
        }
        lock_once_used(&mapping.range)?;
    }
    Ok(())
}

/// A part of a file that is mapped and not written to.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    is_code: bool,
}

/// Where files are mapped that are not written to, by the text of `/proc/self/maps`:
///   55d0c0a00000-55d0c1200000 r-xp 00200000 fe:00 1234   /usr/bin/plimsoll
fn files_in(maps: &str) -> impl Iterator<Item = Mapping> + '_ {
    maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let range = address(start)?..address(end)?;
        let is_code = rights.contains('x');
        (is_file && !rights.contains('w')).then_some(Mapping { range, is_code })
    })
}

#[expect(unsafe_code, reason = "madvise takes an address")]
fn let_go(code: &Range<usize>) -> io::Result<()> {
    let start = std::ptr::without_provenance_mut(code.start);
    // SAFETY: the pages are of a file and were never written to (code is mapped without the right
    // to), so that they come back from the file as they were. What was relocated is elsewhere.
    unsafe { madvise(start, code.len(), Advice::LinuxDontNeed)? };
    Ok(())
}

#[expect(unsafe_code, reason = "mlock2 takes an address")]
fn lock_once_used(range: &Range<usize>) -> io::Result<()> {
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
    fn what_is_kept_is_mapped_from_files_and_not_written_to() {
        let maps = "1000-3000 r--p 00000000 fe:00 12 /usr/bin/agent\n\
            3000-5000 r-xp 00002000 fe:00 12 /usr/bin/agent\n\
            5000-6000 rw-p 00004000 fe:00 12 /usr/bin/agent\n\
            6000-7000 rw-p 00000000 00:00 0 [heap]\n\
            8000-9000 r-xp 00000000 00:00 0 [vdso]\n\
            9000-a000 r--p 00000000 00:00 0\n";
        let found: Vec<_> = files_in(maps).collect();
        let of = |range, is_code| Mapping { range, is_code };
        assert_eq!(found, [of(0x1000..0x3000, false), of(0x3000..0x5000, true)]);
    }

    #[test]
    #[ignore = "tier: root"]
    fn keeping_the_code_makes_nothing_present_that_was_not() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
            pages * 4096
        };
        let before = resident();
        keep_code(Path::new("/")).unwrap();
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
