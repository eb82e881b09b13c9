//! A snapshot as a file.
//!
//! Magic, version and revision; then for each key a mark, the two lengths, three numbers, key and
//! value; at the end another mark, how many keys there are and how many could not be read, and the
//! SHA-256 of everything before it. Numbers are little-endian. A file without its end is rejected,
//! so an interrupted transfer is never mistaken for a backup.

use std::io::{self, ErrorKind, Read};

use bytes::{BufMut, Bytes, BytesMut};
use ring::digest::{Context, SHA256};

use super::super::{Entry, MAX_TXN_BYTES, Revision};
use super::SnapshotEntry;

const MAGIC: &[u8; 8] = b"PLIMSNAP";
const VERSION: u32 = 1;

const KEY: u8 = 1;
const END: u8 = 0;
const HASH_BYTES: usize = 32;

/// No value is longer; encryption makes them a little longer than a transaction may be.
const MAX_VALUE: usize = 2 * MAX_TXN_BYTES;

/// The summary of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The revision that was read.
    pub revision: Revision,
    /// How many keys there are.
    pub keys: u64,
    /// How many keys are left out because their values could not be read.
    pub unreadable: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the content, in hexadecimal digits.
    pub hash: String,
}

/// Why a file is not a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It cannot be read.
    #[error("the snapshot cannot be read")]
    Read(#[source] io::Error),
    /// It is not a snapshot.
    #[error("the file is not a snapshot of Plimsoll")]
    NotASnapshot,
    /// It has a newer version.
    #[error("the snapshot has format {0}, this program reads format {VERSION}")]
    Version(u32),
    /// It is truncated.
    #[error("the snapshot is truncated")]
    CutOff,
    /// It is corrupt.
    #[error("the snapshot is damaged: its checksum does not match")]
    Damaged,
}

/// Encodes a snapshot.
#[derive(Clone)]
pub struct SnapshotEncoder {
    hash: Context,
    keys: u64,
    unreadable: u64,
}

impl std::fmt::Debug for SnapshotEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotEncoder")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl SnapshotEncoder {
    /// Begins a snapshot; returns its first bytes.
    pub fn begin(revision: Revision) -> (Self, Bytes) {
        let mut out = BytesMut::with_capacity(20);
        out.put_slice(MAGIC);
        out.put_u32_le(VERSION);
        out.put_u64_le(revision);
        let mut encoder = Self {
            hash: Context::new(&SHA256),
            keys: 0,
            unreadable: 0,
        };
        encoder.hash.update(&out);
        (encoder, out.freeze())
    }

    /// The bytes of more keys. Keys that cannot be read are left out and counted.
    pub fn encode(&mut self, entries: &[SnapshotEntry]) -> Bytes {
        let mut out = BytesMut::new();
        for SnapshotEntry { entry, expires_at } in entries {
            if entry.unreadable.is_some() {
                self.unreadable += 1;
                continue;
            }
            self.keys += 1;
            out.put_u8(KEY);
            out.put_u32_le(length(&entry.key));
            out.put_u32_le(length(&entry.value));
            out.put_u64_le(entry.create_revision);
            out.put_u64_le(entry.mod_revision);
            out.put_u64_le(*expires_at);
            out.put_slice(&entry.key);
            out.put_slice(&entry.value);
        }
        self.hash.update(&out);
        out.freeze()
    }

    /// The last bytes.
    pub fn finish(mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(17 + HASH_BYTES);
        out.put_u8(END);
        out.put_u64_le(self.keys);
        out.put_u64_le(self.unreadable);
        self.hash.update(&out);
        out.put_slice(self.hash.finish().as_ref());
        out.freeze()
    }
}

fn length(bytes: &Bytes) -> u32 {
    u32::try_from(bytes.len()).expect("transactions are far below 4 GiB")
}

/// Reads a snapshot key by key. The keys are valid only after [`Self::finish`] has verified the
/// end.
pub struct SnapshotReader<R> {
    input: R,
    hash: Context,
    revision: Revision,
    keys: u64,
    bytes: u64,
    end: Option<(u64, u64)>,
}

impl<R> std::fmt::Debug for SnapshotReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl<R: Read> SnapshotReader<R> {
    /// Begins to read.
    pub fn open(input: R) -> Result<Self, SnapshotError> {
        let mut reader = Self {
            input,
            hash: Context::new(&SHA256),
            revision: 0,
            keys: 0,
            bytes: 0,
            end: None,
        };
        let is_magic = |magic: [u8; 8]| (&magic == MAGIC).then_some(());
        let magic = match reader.take::<8>() {
            Err(SnapshotError::CutOff) => None,
            other => is_magic(other?),
        };
        magic.ok_or(SnapshotError::NotASnapshot)?;
        match u32::from_le_bytes(reader.take()?) {
            VERSION => {}
            other => return Err(SnapshotError::Version(other)),
        }
        reader.revision = u64::from_le_bytes(reader.take()?);
        Ok(reader)
    }

    /// The revision that was read.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The next key; `None` after the last.
    pub fn next_entry(&mut self) -> Result<Option<SnapshotEntry>, SnapshotError> {
        if self.end.is_some() {
            return Ok(None);
        }
        match self.take::<1>()? {
            [KEY] => {}
            [END] => {
                let keys = u64::from_le_bytes(self.take()?);
                let unreadable = u64::from_le_bytes(self.take()?);
                self.end = Some((keys, unreadable));
                return Ok(None);
            }
            _ => return Err(SnapshotError::Damaged),
        }
        let key_len = u32::from_le_bytes(self.take()?);
        let value_len = u32::from_le_bytes(self.take()?);
        let create_revision = u64::from_le_bytes(self.take()?);
        let mod_revision = u64::from_le_bytes(self.take()?);
        let expires_at = u64::from_le_bytes(self.take()?);
        let key = self.take_bytes(key_len)?;
        let value = self.take_bytes(value_len)?;
        self.keys += 1;
        Ok(Some(SnapshotEntry {
            entry: Entry {
                key,
                value,
                create_revision,
                mod_revision,
                unreadable: None,
            },
            expires_at,
        }))
    }

    /// Reads the rest, and verifies the whole.
    pub fn finish(mut self) -> Result<Summary, SnapshotError> {
        while self.next_entry()?.is_some() {}
        let (keys, unreadable) = self.end.ok_or(SnapshotError::CutOff)?;
        let hash = self.hash.clone().finish();
        let written: [u8; HASH_BYTES] = self.take()?;
        if hash.as_ref() != written || keys != self.keys {
            return Err(SnapshotError::Damaged);
        }
        let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Ok(Summary {
            revision: self.revision,
            keys,
            unreadable,
            bytes: self.bytes,
            hash: digits.collect(),
        })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn take_bytes(&mut self, count: u32) -> Result<Bytes, SnapshotError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_VALUE {
            return Err(SnapshotError::Damaged);
        }
        let mut bytes = vec![0; count];
        self.fill(&mut bytes)?;
        Ok(bytes.into())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        let read = self.input.read_exact(bytes);
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => SnapshotError::CutOff,
            _ => SnapshotError::Read(error),
        })?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<SnapshotEntry> {
        let entry = |number: u64| SnapshotEntry {
            entry: Entry {
                key: format!("/registry/pods/{number}").into(),
                value: format!("{{\"number\":{number}}}").into(),
                create_revision: number,
                mod_revision: number + 1,
                unreadable: (number == 3).then(|| "damaged".into()),
            },
            expires_at: number * 1000,
        };
        (1..6).map(entry).collect()
    }

    fn file() -> Vec<u8> {
        let (mut encoder, begin) = SnapshotEncoder::begin(7);
        let entries = entries();
        let parts = [
            begin,
            encoder.encode(&entries[..2]),
            encoder.encode(&entries[2..]),
            encoder.finish(),
        ];
        parts.concat()
    }

    #[test]
    fn a_snapshot_reads_back_as_written() {
        let file = file();
        let mut reader = SnapshotReader::open(&file[..]).unwrap();
        assert_eq!(reader.revision(), 7);
        let mut read = Vec::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            read.push(entry);
        }
        let readable = |entry: &SnapshotEntry| entry.entry.unreadable.is_none();
        let expected: Vec<SnapshotEntry> = entries().into_iter().filter(readable).collect();
        assert_eq!(read, expected);
        let summary = reader.finish().unwrap();
        assert_eq!((summary.keys, summary.unreadable), (4, 1));
        assert_eq!(summary.bytes, file.len() as u64);
        assert_eq!(summary.hash.len(), 64);
    }

    #[test]
    fn truncated_or_changed_snapshot_is_rejected() {
        let file = file();
        let read = |bytes: &[u8]| SnapshotReader::open(bytes).and_then(SnapshotReader::finish);
        for end in 0..file.len() {
            assert!(read(&file[..end]).is_err(), "cut off after {end} bytes");
        }
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "byte {at} changed");
        }
        assert!(matches!(
            read(b"this is a note"),
            Err(SnapshotError::NotASnapshot)
        ));
    }
}
