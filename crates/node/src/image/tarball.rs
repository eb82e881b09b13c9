//! Reads tars as they stream by, with bounds on everything that is kept in memory.
//!
//! The `tar` crate decodes the header blocks. Its own iteration is not used because it reads the
//! records of extended headers into memory whole, whatever size a hostile header claims.

use std::io::{self, Read};

use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// No honest extended header is larger: it holds names and attributes of one entry.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// Why a tar cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes do not come.
    #[error("cannot read the tar")]
    Read(#[from] io::Error),
    /// A block that should be a header is none.
    #[error("the tar has a broken header ({problem})")]
    Header {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Sparse files are a GNU extension that image builders do not use.
    #[error("{path:?} is a sparse file, which is not supported")]
    Sparse {
        /// Its path.
        path: String,
    },
}

/// One entry of a tar, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, as it stands in the tar.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Length of its content.
    pub size: u64,
    /// Owner, permissions, times, attributes.
    pub attributes: Attributes,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, and what it points to.
    Symlink(Vec<u8>),
    /// A further name of an earlier file, and that file's path.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A device node.
    Device,
    /// Something only tar programs know.
    Other,
}

/// What belongs to an entry beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits, set-id bits and sticky bit.
    pub mode: u32,
    /// Owner.
    pub uid: u64,
    /// Group.
    pub gid: u64,
    /// Time of the last change: seconds since the epoch and nanoseconds.
    pub modified: (i64, u32),
    /// Extended attributes.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The entries of a tar, in order. It reads as the content of the entry returned last.
#[derive(Debug)]
pub struct Entries<R> {
    reader: R,
    content_left: u64,
    padding: u64,
    for_all: Records,
}

impl<R: Read> Entries<R> {
    /// Of a tar that is not compressed.
    pub fn new(reader: R) -> Entries<R> {
        Entries {
            reader,
            content_left: 0,
            padding: 0,
            for_all: Records::default(),
        }
    }

    /// The next entry, or none at the end of the tar. Skips content that was not read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        let mut records = self.for_all.clone();
        loop {
            self.skip_content()?;
            let Some(block) = self.read_block()? else {
                return Ok(None);
            };
            let header = Header::from_byte_slice(&block);
            check_sum(header)?;
            let size = header
                .entry_size()
                .map_err(|_| broken("its size is no number"))?;
            match header.entry_type() {
                EntryType::GNULongName => records.path = Some(trimmed(self.read_extension(size)?)),
                EntryType::GNULongLink => records.link = Some(trimmed(self.read_extension(size)?)),
                EntryType::XHeader => records.read(&self.read_extension(size)?)?,
                EntryType::XGlobalHeader => {
                    let extension = self.read_extension(size)?;
                    self.for_all.read(&extension)?;
                    records = self.for_all.clone();
                }
                _ => {
                    let entry = records.apply(header, size)?;
                    self.expect_content(entry.size);
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// The reader below. Right after [`Self::next_entry`] it is where the content begins.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// The reader below, for what follows the end of the tar.
    pub fn into_inner(self) -> R {
        self.reader
    }

    fn expect_content(&mut self, size: u64) {
        self.content_left = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    fn skip_content(&mut self) -> Result<(), Error> {
        io::copy(self, &mut io::sink())?;
        let padding = std::mem::take(&mut self.padding);
        let skipped = io::copy(&mut self.reader.by_ref().take(padding), &mut io::sink())?;
        if skipped < padding {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// None at the end: a block of zeros, or no block at all as some programs leave it.
    fn read_block(&mut self) -> Result<Option<[u8; BLOCK]>, Error> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let is_end = block.iter().all(|byte| *byte == 0);
        Ok((!is_end).then_some(block))
    }

    fn read_extension(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > LONGEST_EXTENSION {
            return Err(broken("an extended header is longer than 1 MiB"));
        }
        self.expect_content(size);
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads the content of the current entry.
impl<R: Read> Read for Entries<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.content_left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.reader.by_ref().take(self.content_left).read(buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.content_left -= count as u64;
        Ok(count)
    }
}

/// What extended headers say about the entry that follows them.
#[derive(Clone, Debug, Default)]
struct Records {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    modified: Option<(i64, u32)>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    is_sparse: bool,
}

impl Records {
    /// Lines of `LENGTH KEY=VALUE`, where the value may hold anything, newlines too.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let malformed = || broken("an extended header is malformed");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ');
            let space = space.ok_or_else(malformed)?;
            let length: usize = number(&bytes[..space]).ok_or_else(malformed)?;
            if length <= space + 1 || length > bytes.len() {
                return Err(malformed());
            }
            let (record, rest) = bytes.split_at(length);
            bytes = rest;
            let record = &record[space + 1..length - 1];
            let equals = record.iter().position(|byte| *byte == b'=');
            let equals = equals.ok_or_else(malformed)?;
            self.note(&record[..equals], &record[equals + 1..])
                .ok_or_else(malformed)?;
        }
        Ok(())
    }

    /// None if the value makes no sense.
    fn note(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        const XATTR: &[u8] = b"SCHILY.xattr.";
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(number(value)?),
            b"uid" => self.uid = Some(number(value)?),
            b"gid" => self.gid = Some(number(value)?),
            b"mtime" => self.modified = Some(parse_time(value)?),
            _ if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
            _ => {
                if let Some(name) = key.strip_prefix(XATTR) {
                    self.xattrs.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Some(())
    }

    fn apply(self, header: &Header, size: u64) -> Result<Entry, Error> {
        let path = self.path.unwrap_or_else(|| header.path_bytes().into());
        let link = self
            .link
            .or_else(|| header.link_name_bytes().map(Into::into));
        let link = link.unwrap_or_default();
        let kind = match header.entry_type() {
            // Before there were directories in tars, a slash at the end made one.
            EntryType::Regular | EntryType::Continuous if path.ends_with(b"/") => Kind::Directory,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink(link),
            EntryType::Link => Kind::HardLink(link),
            EntryType::Fifo => Kind::Fifo,
            EntryType::Char | EntryType::Block => Kind::Device,
            _ => Kind::Other,
        };
        if self.is_sparse || header.entry_type() == EntryType::GNUSparse {
            let path = String::from_utf8_lossy(&path).into_owned();
            return Err(Error::Sparse { path });
        }
        let old = header.as_old();
        let modified = match self.modified {
            Some(time) => time,
            // A time out of range is no reason to refuse a file.
            None => (
                header
                    .mtime()
                    .ok()
                    .and_then(|t| t.try_into().ok())
                    .unwrap_or(0),
                0,
            ),
        };
        Ok(Entry {
            path,
            kind,
            size: self.size.unwrap_or(size),
            attributes: Attributes {
                mode: or_blank(header.mode(), &old.mode, "its mode is no number")? & 0o7777,
                uid: match self.uid {
                    Some(uid) => uid,
                    None => or_blank(header.uid(), &old.uid, "its owner is no number")?,
                },
                gid: match self.gid {
                    Some(gid) => gid,
                    None => or_blank(header.gid(), &old.gid, "its group is no number")?,
                },
                modified,
                xattrs: self.xattrs,
            },
        })
    }
}

fn broken(problem: &'static str) -> Error {
    Error::Header { problem }
}

/// Some programs leave fields blank that are zero.
fn or_blank<T: Default>(
    value: io::Result<T>,
    field: &[u8],
    problem: &'static str,
) -> Result<T, Error> {
    let is_blank = field.iter().all(|byte| matches!(byte, 0 | b' '));
    match value {
        Err(_) if is_blank => Ok(T::default()),
        other => other.map_err(|_| broken(problem)),
    }
}

/// The sum of a header's bytes, its own field counted as spaces.
fn check_sum(header: &Header) -> Result<(), Error> {
    let field = 148..156;
    let bytes = header.as_bytes().iter().enumerate();
    let sum: u32 = bytes
        .map(|(at, byte)| u32::from(if field.contains(&at) { b' ' } else { *byte }))
        .sum();
    match header.cksum() {
        Ok(expected) if expected == sum => Ok(()),
        _ => Err(broken("its checksum is wrong")),
    }
}

/// Long names of GNU tar end with a NUL.
fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

fn number<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Seconds with an optional fraction, `-1.5` being half a second before `-1`.
fn parse_time(bytes: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanos: u32 = digits.parse().ok()?;
    if whole.starts_with('-') && nanos > 0 {
        return Some((seconds.checked_sub(1)?, 1_000_000_000 - nanos));
    }
    Some((seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: EntryType, size: u64) -> Header {
        let mut header = Header::new_ustar();
        header.set_path("short").unwrap();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_uid(1);
        header.set_gid(2);
        header.set_mtime(3);
        header.set_cksum();
        header
    }

    /// A header and content, padded.
    fn part(kind: EntryType, content: &[u8]) -> Vec<u8> {
        let mut bytes = header(kind, content.len() as u64).as_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn record(key: &str, value: &str) -> String {
        let bare = key.len() + value.len() + 3;
        let with = |digits: usize| bare + digits;
        let length = (1..5).map(with).find(|n| n.to_string().len() + bare == *n);
        format!("{} {key}={value}\n", length.unwrap())
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
        let mut entries = Entries::new(bytes);
        let mut found = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            let mut content = Vec::new();
            entries.read_to_end(&mut content)?;
            found.push((entry, content));
        }
        Ok(found)
    }

    #[test]
    fn entries_come_with_their_content() {
        let bytes = [part(EntryType::Regular, b"content"), vec![0; 1024]].concat();
        let found = read_all(&bytes).unwrap();
        assert_eq!(found.len(), 1);
        let (entry, content) = &found[0];
        assert_eq!(
            (entry.path.as_slice(), &entry.kind, entry.size),
            (&b"short"[..], &Kind::File, 7)
        );
        assert_eq!(entry.attributes.modified, (3, 0));
        assert_eq!(content, b"content");
    }

    #[test]
    fn content_that_nobody_read_is_skipped() {
        let bytes = [
            part(EntryType::Regular, &[7; 1500]),
            part(EntryType::Directory, b""),
        ]
        .concat();
        let mut entries = Entries::new(bytes.as_slice());
        assert_eq!(entries.next_entry().unwrap().unwrap().kind, Kind::File);
        assert_eq!(entries.next_entry().unwrap().unwrap().kind, Kind::Directory);
        assert_eq!(entries.next_entry().unwrap(), None);
    }

    #[test]
    fn extended_headers_override_the_next_entry_only() {
        let long = "d/".repeat(200) + "name\nwith newline";
        let records = [
            record("path", &long),
            record("size", "3"),
            record("uid", "4000000"),
            record("mtime", "-1.25"),
            record("SCHILY.xattr.user.x", "y"),
            record("comment", "whatever"),
        ]
        .concat();
        let mut longer_than_its_header = part(EntryType::Regular, b"abc");
        longer_than_its_header[..BLOCK].copy_from_slice(header(EntryType::Regular, 0).as_bytes());
        let bytes = [
            part(EntryType::XHeader, records.as_bytes()),
            longer_than_its_header,
            part(EntryType::Regular, b"second"),
        ]
        .concat();
        let found = read_all(&bytes).unwrap();
        let (first, content) = &found[0];
        assert_eq!(first.path, long.as_bytes());
        assert_eq!(content, b"abc");
        assert_eq!(first.attributes.uid, 4_000_000);
        assert_eq!(first.attributes.gid, 2);
        assert_eq!(first.attributes.modified, (-2, 750_000_000));
        assert_eq!(
            first.attributes.xattrs,
            [(b"user.x".to_vec(), b"y".to_vec())]
        );
        assert_eq!(found[1].0.path, b"short");
        assert_eq!(found[1].1, b"second");
    }

    #[test]
    fn long_names_of_gnu_tar_are_joined_to_their_entry() {
        let bytes = [
            part(EntryType::GNULongName, b"a/long/name\0"),
            part(EntryType::GNULongLink, b"a/long/target\0"),
            part(EntryType::Symlink, b""),
        ]
        .concat();
        let (entry, _) = &read_all(&bytes).unwrap()[0];
        assert_eq!(entry.path, b"a/long/name");
        assert_eq!(entry.kind, Kind::Symlink(b"a/long/target".to_vec()));
    }

    #[test]
    fn broken_tars_are_refused() {
        let whole = part(EntryType::Regular, b"content");
        let mut wrong_sum = whole.clone();
        wrong_sum[0] ^= 1;
        let cases: [(&str, Vec<u8>); 7] = [
            ("half a header", whole[..100].to_vec()),
            ("half a content", whole[..515].to_vec()),
            ("half a padding", whole[..600].to_vec()),
            ("wrong checksum", wrong_sum),
            (
                "records without length",
                part(EntryType::XHeader, b"path=x\n"),
            ),
            (
                "records beyond the end",
                part(EntryType::XHeader, b"99 path=x\n"),
            ),
            (
                "record of zero length",
                part(EntryType::XHeader, b"0 path=x\n"),
            ),
        ];
        for (what, bytes) in cases {
            assert!(read_all(&bytes).is_err(), "{what}");
        }
    }

    #[test]
    fn an_extended_header_is_never_kept_whole_if_it_is_huge() {
        let claims_much = header(EntryType::GNULongName, 1 << 40);
        let endless = claims_much.as_bytes().chain(io::repeat(b'x'));
        let mut entries = Entries::new(endless);
        assert!(matches!(entries.next_entry(), Err(Error::Header { .. })));
    }

    #[test]
    fn blank_fields_are_zero() {
        let mut header = header(EntryType::Directory, 0);
        header.as_old_mut().uid = [0; 8];
        header.as_old_mut().gid = [b' '; 8];
        header.as_old_mut().mode = [0; 8];
        header.set_cksum();
        let (entry, _) = &read_all(header.as_bytes()).unwrap()[0];
        let attributes = &entry.attributes;
        assert_eq!((attributes.uid, attributes.gid, attributes.mode), (0, 0, 0));
    }

    #[test]
    fn sparse_files_are_refused_by_name() {
        let records = record("GNU.sparse.major", "1");
        let bytes = [
            part(EntryType::XHeader, records.as_bytes()),
            part(EntryType::Regular, b""),
        ]
        .concat();
        let problem = read_all(&bytes).unwrap_err().to_string();
        assert_eq!(
            problem,
            "\"short\" is a sparse file, which is not supported"
        );
    }
}
