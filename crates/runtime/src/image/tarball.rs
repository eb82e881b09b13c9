//! Reads tars as they stream by, with bounds on everything that is kept in memory.
//!
//! The `tar` crate decodes the header blocks. Its own iteration is not used because it reads the
//! records of extended headers into memory whole, whatever size a hostile header claims.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// No honest extended header is larger: it holds names and attributes of one entry.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// Why a tar cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes do not come.
    #[error("cannot read the tar archive")]
    Read(#[from] io::Error),
    /// A block that should be a header is none.
    #[error("the tar archive has an invalid header ({problem})")]
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
    /// Its path, as in the tar.
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
