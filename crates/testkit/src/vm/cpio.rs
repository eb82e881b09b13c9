//! The archive a kernel unpacks as its first file system.
//!
//! The format is `newc`: per entry a header of fixed-width hexadecimal numbers, the name and the
//! content, each padded to four bytes.

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

/// Its name ends an archive.
const TRAILER: &str = "TRAILER!!!";

#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// A file that may be run.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE, content);
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).expect("entries are small");
        let inode = self.entries;
        let (owner, group, links, time) = (0, 0, 1, 0);
        let device = [0; 4];
        let numbers = [
            inode,
            mode,
            owner,
            group,
            links,
            time,
            length(content.len()),
        ]
        .into_iter()
        .chain(device)
        // The name ends with a zero byte, which counts.
        .chain([length(path.len() + 1), 0]);
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes
                .extend_from_slice(format!("{number:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_header_name_and_content_padded_to_four() {
        let mut archive = Archive::new();
        archive.file("init", b"hello");
        let bytes = archive.into_bytes();
        let header = "070701\
            00000001000081ED000000000000000000000001000000000000000500000000000000000000000000000000\
            0000000500000000";
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.starts_with(&format!("{header}init\0\0hello\0\0\0070701")),
            "{text:?}"
        );
        assert_eq!(text.len() % 4, 0);
        assert!(text.trim_end_matches('\0').ends_with(TRAILER));
    }
}
