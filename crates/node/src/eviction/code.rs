//! The agent's code: in memory as far as it is used, and there to stay.
//!
//! Without swap, code is all that a node under pressure takes from a process, to be read again from
//! a disk that everybody else waits for too. So what is used is locked. What was used once, by the
//! start of the agent or of pods, is most of what would be locked then, and is let go again.
//!
//! Which pages are used is more than the kernel wants to know: around each that is, it maps (and
//! locks) those 64 KiB of the mapping that are in its cache. Code is therefore made many small
//! mappings, which it does not look beyond.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    /// What is kept, once it is.
    kept: Vec<Mapping>,
    /// How much was in use some time after the rest was let go.
    settled: Option<u64>,
}

impl KeptCode {
    /// Of a machine whose files are below `mount_root`; nothing is kept yet.
    #[must_use]
    pub fn new(mount_root: PathBuf) -> KeptCode {
        KeptCode {
            mount_root,
            kept: Vec::new(),
            settled: None,
        }
    }

    /// Lets go what is not in use, if it became much since the last time, and keeps what is used
    /// from now on. To be called now and then; what is in use comes back by itself, at the price of
    /// a page fault each and, as long as memory is not short, without a disk.
    pub fn tidy(&mut self) -> io::Result<()> {
        self.tidy_when_present(present(&self.mount_root)?)
    }

    fn tidy_when_present(&mut self, present: u64) -> io::Result<()> {
        if self.kept.is_empty() {
            let maps = std::fs::read_to_string(self.mount_root.join("proc/self/smaps"))?;
            self.kept.extend(files_in(&maps));
            for mapping in self.kept.iter().filter(|mapping| mapping.is_code) {
                split(&mapping.range)?;
            }
        } else {
            let settled = *self.settled.get_or_insert(present);
            if present < settled + GROWN || is_memory_waited_for(&self.mount_root) {
                return Ok(());
            }
        }
        self.settled = None;
        for mapping in &self.kept {
            if mapping.is_as_in_file {
                let_go(&mapping.range)?;
            }
            lock_once_used(&mapping.range)?;
        }
        Ok(())
    }
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

/// Whether anybody had to wait for memory lately: then what is let go might not come back soon. A
/// kernel that does not tell is taken at its best.
fn is_memory_waited_for(mount_root: &Path) -> bool {
    let text = std::fs::read_to_string(mount_root.join("proc/pressure/memory"));
    text.is_ok_and(|text| !text.starts_with("some avg10=0.00 "))
}

/// A part of a file that is mapped and not written to.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    is_code: bool,
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
                    is_code: rights.contains('x'),
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

#[expect(unsafe_code, reason = "madvise takes an address")]
fn let_go(code: &Range<usize>) -> io::Result<()> {
    let start = std::ptr::without_provenance_mut(code.start);
    // SAFETY: as in `lock_once_used`; what was not locked is not an error. Locked pages stay.
    unsafe { munlock(start, code.len())? };
    // SAFETY: the pages are of a file and none of them was ever changed, so that they come back from
    // the file as they were.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_mapped_from_files_and_not_written_to() {
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
        let of = |range, is_code, is_as_in_file| Mapping {
            range,
            is_code,
            is_as_in_file,
        };
        let expected = [
            of(0x1000..0x3000, false, true),
            of(0x3000..0x5000, true, true),
            of(0x5000..0x6000, false, false),
        ];
        assert_eq!(files_in(maps), expected);
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
        // Others may wait for memory on this machine, which is not what matters here.
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::os::unix::fs::symlink("/proc/self", folder.path().join("proc/self")).unwrap();
        let mut code = KeptCode::new(folder.path().to_owned());
        code.tidy().unwrap();
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
        code.tidy().unwrap();
        assert!(code.settled.is_some());
        // As if all of it had come into use since: it goes, and is measured anew.
        code.settled = Some(0);
        code.tidy_when_present(GROWN).unwrap();
        assert_eq!(code.settled, None);
    }

    #[test]
    fn memory_is_waited_for_when_the_kernel_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_memory_waited_for(folder.path()));
        let pressure = folder.path().join("proc/pressure");
        std::fs::create_dir_all(&pressure).unwrap();
        for (average, expected) in [("0.00", false), ("0.37", true), ("12.00", true)] {
            let text = format!("some avg10={average} avg60=0.00 avg300=0.00 total=5\n");
            std::fs::write(pressure.join("memory"), text).unwrap();
            assert_eq!(is_memory_waited_for(folder.path()), expected, "{average}");
        }
    }
}
