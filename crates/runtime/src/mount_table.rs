//! The mount table of the kernel.

use std::io;
use std::path::{Path, PathBuf};

/// The mounts of this process, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct MountTable(Vec<MountEntry>);

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Where.
    pub path: PathBuf,
    /// `tmpfs`, `ext4`, …
    pub fs_type: String,
}

impl MountTable {
    /// Reads the table from the kernel.
    pub fn read() -> io::Result<MountTable> {
        let text = std::fs::read("/proc/self/mountinfo")?;
        Ok(MountTable::parse(&String::from_utf8_lossy(&text)))
    }

    /// Reads the text of `/proc/self/mountinfo`; lines that make no sense are passed over.
    pub fn parse(text: &str) -> MountTable {
        MountTable(text.lines().filter_map(parse_line).collect())
    }

    /// What is mounted at the path; the last mount hides the others.
    pub fn at(&self, path: &Path) -> Option<&MountEntry> {
        let path = real(path);
        self.0.iter().rev().find(|entry| entry.path == path)
    }

    /// The mount that the path is on.
    pub fn holding(&self, path: &Path) -> Option<&MountEntry> {
        let path = real(path);
        let above = self.0.iter().filter(|entry| path.starts_with(&entry.path));
        // Of several at one place, the last hides the others.
        above.max_by_key(|entry| entry.path.components().count())
    }

    /// What is mounted at the path or below it, in an order in which it can be unmounted.
    pub fn below(&self, path: &Path) -> Vec<&MountEntry> {
        let path = real(path);
        let mut found: Vec<_> = self
            .0
            .iter()
            .filter(|e| e.path.starts_with(&path))
            .collect();
        found.reverse();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.path.components().count()));
        found
    }
}

/// The kernel lists mounts by paths without links.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// `36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/root rw`.
fn parse_line(line: &str) -> Option<MountEntry> {
    let (before, after) = line.split_once(" - ")?;
    Some(MountEntry {
        path: unescape(before.split(' ').nth(4)?),
        fs_type: after.split(' ').next()?.to_owned(),
    })
}

/// Spaces and the like are written as `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4);
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                out.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
30 22 0:5 / /k/pods/u rw - tmpfs tmpfs rw
31 30 0:6 / /k/pods/u/v\\040one/deep rw master:2 - tmpfs tmpfs rw
32 22 0:7 / /k/pods/u2 rw - tmpfs tmpfs rw
33 30 0:8 / /k/pods/u rw - hugetlbfs nodev rw
garbage
";

    #[test]
    fn mounts_below_a_path_are_listed_deepest_and_latest_first() {
        let table = MountTable::parse(TEXT);
        let below: Vec<_> = table
            .below(Path::new("/k/pods/u"))
            .into_iter()
            .map(|entry| (entry.path.to_str().unwrap(), entry.fs_type.as_str()))
            .collect();
        assert_eq!(
            below,
            [
                ("/k/pods/u/v one/deep", "tmpfs"),
                ("/k/pods/u", "hugetlbfs"),
                ("/k/pods/u", "tmpfs"),
            ]
        );
    }

    #[test]
    fn the_last_mount_on_a_path_is_the_one_seen() {
        let table = MountTable::parse(TEXT);
        assert_eq!(
            table.at(Path::new("/k/pods/u")).unwrap().fs_type,
            "hugetlbfs"
        );
        assert_eq!(table.at(Path::new("/k/pods")), None);
    }
}
