//! The agent's code: in memory as far as it is used, and there to stay.
//!
//! Without swap, code is all that a node under pressure takes from a process, to be read again from
//! a disk that all other processes wait for too. So what is used is locked. What was used once, by the
//! start of the agent or of pods, is most of what would be locked then, and is unlocked again.
//!
//! The kernel does not work with single pages: around each that is used, it maps (and
//! locks) those 64 KiB of the mapping that are in its cache. Code and constants are therefore made
//! many small mappings, which it does not look beyond.
//!
//! To let code go and to find out what of it is used holds the agent up, so that is done only while
//! memory is far from every line.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plimsoll_core::eviction::record::distances::{DistanceRecord, LinesRecord};
use plimsoll_core::threshold::Signal;
use rustix::io::Errno;
use rustix::mm::{Advice, MlockFlags, madvise, mlock_with, munlock};

/// What the kernel maps at once.
const PIECE: usize = 16 << 10;

/// What may come in use before it is worth asking again which of it is still in use.
const GROWN: u64 = 2 << 20;

/// Keeps the pages of the program and its libraries that are used.
///
/// `mlockall` would do for more than is good: all of the binary would have to be present, stacks
/// would take their full size, and what the allocator gives back would stay.
#[derive(Debug)]
pub struct KeptCode {
    mount_root: PathBuf,
    kept: Vec<Mapping>,
    /// Whether anything was unlocked yet.
    is_tidy: bool,
    /// How much was in use some time after the rest was unlocked.
    settled: Option<u64>,
}

impl KeptCode {
    /// Keeps what is used and what will be, on a machine whose files are below `mount_root`.
    pub fn keep(mount_root: PathBuf) -> io::Result<KeptCode> {
        let maps = std::fs::read_to_string(mount_root.join("proc/self/smaps"))?;
        let kept = files_in(&maps);
        for mapping in &kept {
            lock_once_used(&mapping.range)?;
        }
        Ok(KeptCode {
            mount_root,
            kept,
            is_tidy: false,
            settled: None,
        })
    }

    /// Lets go what is not in use, if it became much since the last time. To be called now and then;
    /// what is in use comes back by itself, at the price of a page fault each and, as long as memory
    /// is not short, without a disk. Returns whether something was unlocked: what is rarely used and
    /// must be there has to be used then.
    pub fn tidy(&mut self) -> io::Result<bool> {
        self.tidy_when_present(present(&self.mount_root)?)
    }

    fn tidy_when_present(&mut self, present: u64) -> io::Result<bool> {
        if self.is_tidy {
            let settled = *self.settled.get_or_insert(present);
            if present < settled + GROWN {
                return Ok(false);
            }
        } else {
            // Not before: a start is sooner over with large pieces.
            for mapping in self.kept.iter().filter(|mapping| mapping.is_as_in_file) {
                split(&mapping.range)?;
            }
        }
        self.is_tidy = true;
        self.settled = None;
        for mapping in self.kept.iter().filter(|mapping| mapping.is_as_in_file) {
            let_go(&mapping.range)?;
        }
        Ok(true)
    }
}

/// Whether memory is far from every line, by what was seen last: a twentieth of it is between, and
/// no threshold is being approached.
#[must_use]
pub fn is_calm(seen: &LinesRecord) -> bool {
    const SOON: i64 = 30_000_000_000;
    let signals = [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable];
    let is_memory = |line: &&DistanceRecord| {
        let mut signals = signals.iter();
        signals.any(|signal| signal.as_str() == line.signal)
    };
    let is_far = |line: &DistanceRecord| {
        let is_soon = line.reached_in_nanos.is_some_and(|left| left < SOON);
        !is_soon && line.available - line.line >= line.capacity / 20
    };
    seen.at.is_some() && seen.items.iter().filter(is_memory).all(is_far)
}

/// How many bytes of files are mapped and present: the third number of `/proc/self/statm`, in
/// pages.
fn present(mount_root: &Path) -> io::Result<u64> {
    let text = std::fs::read_to_string(mount_root.join("proc/self/statm"))?;
    let pages = text.split_whitespace().nth(2);
    let pages = pages.and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other(format!("statm is {text:?}")))?;
    Ok(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// A part of a file that is mapped and not written to.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    /// Whether no page of it was changed. The linker has changed some before it forbade it.
    is_as_in_file: bool,
}

/// Where files are mapped that are not written to, by the text of `/proc/self/smaps`:
///   55d0c0a00000-55d0c1200000 r-xp 00200000 fe:00 1234   /usr/bin/plimsoll
///   Anonymous:             0 kB
fn files_in(maps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    let mut is_wanted = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if let Some(range) = address_range(first) {
            let rights = words.next().unwrap_or_default();
            let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
            is_wanted = is_file && !rights.contains('w');
            if is_wanted {
                found.push(Mapping {
                    range,
                    is_as_in_file: false,
                });
            }
        } else if is_wanted
            && first == "Anonymous:"
            && let Some(mapping) = found.last_mut()
        {
            mapping.is_as_in_file = words.next() == Some("0");
        }
    }
    found
}

fn address_range(text: &str) -> Option<Range<usize>> {
    let (start, end) = text.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Makes many mappings of one. Those whose attributes differ stay apart; whether a page is in a core
/// dump is one without further meaning here, since pages as in their file never are.
#[expect(unsafe_code, reason = "madvise takes an address")]
fn split(code: &Range<usize>) -> io::Result<()> {
    for start in code.clone().step_by(2 * PIECE) {
        let length = PIECE.min(code.end - start);
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: no page changes.
        unsafe { madvise(start, length, Advice::LinuxDontDump)? };
    }
    Ok(())
}

/// Lets pages go that may be locked, which they are again once they are used.
#[expect(unsafe_code, reason = "madvise takes an address")]
fn let_go(code: &Range<usize>) -> io::Result<()> {
    let start = std::ptr::without_provenance_mut(code.start);
    // SAFETY: the pages are of a file and none of them was ever changed, so that they come back from
    // the file as they were.
    match unsafe { madvise(start, code.len(), Advice::LinuxDontneedLocked) } {
        Err(Errno::INVAL) => {}
        done => return Ok(done?),
    }
    // Before Linux 5.18 locked pages stay.
    // SAFETY: as in `lock_once_used`.
    unsafe { munlock(start, code.len())? };
    // SAFETY: as above.
    unsafe { madvise(start, code.len(), Advice::LinuxDontNeed)? };
    lock_once_used(code)
}

#[expect(unsafe_code, reason = "mlock2 takes an address")]
fn lock_once_used(range: &Range<usize>) -> io::Result<()> {
    let start = std::ptr::without_provenance_mut(range.start);
    // SAFETY: nothing is read or written through the address, and no page changes; a range that is
    // not mapped any more is an error.
    unsafe { mlock_with(start, range.len(), MlockFlags::ONFAULT)? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unmodified_file_mappings_are_kept() {
        let maps = "1000-3000 r--p 00000000 fe:00 12 /usr/bin/agent\n\
            Rss: 8 kB\n\
            Anonymous:             0 kB\n\
            VmFlags: rd mr mw me\n\
            3000-5000 r-xp 00002000 fe:00 12 /usr/bin/agent\n\
            Anonymous:             0 kB\n\
            5000-6000 r--p 00004000 fe:00 12 /usr/bin/agent\n\
            Anonymous:             4 kB\n\
            6000-7000 rw-p 00005000 fe:00 12 /usr/bin/agent\n\
            Anonymous:             0 kB\n\
            7000-8000 rw-p 00000000 00:00 0 [heap]\n\
            8000-9000 r-xp 00000000 00:00 0 [vdso]\n\
            9000-a000 r--p 00000000 00:00 0\n";
        let of = |range, is_as_in_file| Mapping {
            range,
            is_as_in_file,
        };
        let expected = [
            of(0x1000..0x3000, true),
            of(0x3000..0x5000, true),
            of(0x5000..0x6000, false),
        ];
        assert_eq!(files_in(maps), expected);
    }

    #[test]
    #[ignore = "tier: root"]
    fn keeping_the_code_loads_no_absent_pages() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
            pages * 4096
        };
        let before = resident();
        let begun = std::time::Instant::now();
        let mut code = KeptCode::keep("/".into()).unwrap();
        let kept = begun.elapsed();
        assert!(code.tidy().unwrap());
        eprintln!("kept in {kept:?}, let go in {:?}", begun.elapsed() - kept);
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
        // Nothing has come into use since: what is kept stays as it is.
        assert!(!code.tidy().unwrap());
        assert!(code.settled.is_some());
        // As if all of it had come into use since: it goes, and is measured anew.
        code.settled = Some(0);
        assert!(code.tidy_when_present(GROWN).unwrap());
        assert_eq!(code.settled, None);
    }

    #[test]
    fn trend_decides_whether_memory_is_near_a_threshold() {
        let line = |signal: Signal, available: i64, reached_in_nanos| DistanceRecord {
            signal: signal.as_str().to_owned(),
            is_hard: true,
            grace_period: "0s".to_owned(),
            line: 300,
            available,
            capacity: 2000,
            change_per_second: None,
            reached_in_nanos,
        };
        let memory = Signal::MemoryAvailable;
        let pods = Signal::AllocatableMemoryAvailable;
        let far = || line(memory, 1000, None);
        for (items, expected) in [
            (vec![], true),
            (vec![far()], true),
            (vec![line(memory, 400, Some(60_000_000_000))], true),
            (vec![line(memory, 399, None)], false),
            (vec![line(memory, 1000, Some(29_000_000_000))], false),
            (vec![far(), line(pods, 310, None)], false),
            (vec![far(), line(Signal::NodeFsAvailable, 0, Some(0))], true),
        ] {
            let mut seen = LinesRecord { at: None, items };
            assert!(!is_calm(&seen), "nobody has looked");
            seen.at = Some(plimsoll_core::object::timestamp::Timestamp::default());
            assert_eq!(is_calm(&seen), expected, "{seen:?}");
        }
    }
}
