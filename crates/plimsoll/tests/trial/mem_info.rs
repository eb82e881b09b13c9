//! `/proc/meminfo`, and the memory.available that a kubelet derives from it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Some lines of it, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemInfo {
    total: i64,
    pub(crate) available: i64,
    anonymous: i64,
    cached: i64,
    buffers: i64,
    swap_cached: i64,
    inactive_file: i64,
}

impl MemInfo {
    pub(crate) fn parse(text: &str) -> MemInfo {
        let line = |key: &str| number_after(text, key).unwrap_or_default();
        MemInfo {
            total: line("MemTotal:"),
            available: line("MemAvailable:"),
            anonymous: line("AnonPages:"),
            cached: line("\nCached:"),
            buffers: line("Buffers:"),
            swap_cached: line("SwapCached:"),
            inactive_file: line("Inactive(file):"),
        }
    }

    /// What a kubelet calls `memory.available` on cgroup v2: the capacity without anonymous memory
    /// and without page cache but the inactive part.
    pub(crate) fn left(&self) -> i64 {
        let file = self.cached + self.buffers + self.swap_cached;
        self.total - (self.anonymous + file - self.inactive_file)
    }
}

/// A file that is read again and again without asking for memory.
pub(crate) struct Reread {
    file: File,
    text: Vec<u8>,
}

impl Reread {
    pub(crate) fn open(path: &str) -> std::io::Result<Reread> {
        Ok(Reread {
            file: File::open(path)?,
            text: vec![0; 32 << 10],
        })
    }

    pub(crate) fn read(&mut self) -> &str {
        let length = self.file.read_at(&mut self.text, 0).unwrap_or_default();
        std::str::from_utf8(&self.text[..length]).unwrap_or_default()
    }
}

/// The number behind the first place where the key stands.
pub(crate) fn number_after(text: &str, key: &str) -> Option<i64> {
    let rest = text[text.find(key)? + key.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}
