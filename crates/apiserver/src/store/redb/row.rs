//! The encoding of one change in the log.
//!
//! The log is the only large table: row number to change, in the order of history. Appending
//! touches only its last pages, so a commit writes little more than the new values.
//!
//! A row has two checksums (CRC-32): one of its place, numbers and key, one of its value. A value
//! that does not match is an error of its key alone, since the key is known to be right.

use std::sync::Arc;

use bytes::Bytes;
use crc32fast::Hasher;

use super::super::{Entry, Revision};

/// The place of a change in history: revision and position within the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowId(pub(super) u64);

/// Bits for the position; a transaction has fewer writes than this can count.
const POSITION_BITS: u32 = 8;

impl RowId {
    pub(super) fn new(revision: Revision, position: u8) -> Self {
        Self(revision << POSITION_BITS | u64::from(position))
    }

    /// The first row that a revision can have.
    pub(super) fn first_of(revision: Revision) -> Self {
        Self::new(revision, 0)
    }

    pub(super) fn revision(self) -> Revision {
        self.0 >> POSITION_BITS
    }
}

/// A change, borrowing its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) key: &'a [u8],
    /// `None` for a delete.
    pub(super) value: Option<&'a [u8]>,
    /// When the key was created; zero for a delete.
    pub(super) create_revision: Revision,
    /// Milliseconds since 1970 after which the key is deleted; zero for never.
    pub(super) expires_at: u64,
    /// The put that this change supersedes, if the key existed.
    pub(super) previous: Option<RowId>,
}

/// Kind, three numbers, and the length of the key.
const NUMBERS: usize = 1 + 3 * 8 + 4;

/// The numbers and two checksums.
const HEADER: usize = NUMBERS + 2 * SUM;
const SUM: usize = 4;

/// Longer keys are not considered when rows are repaired.
const MAX_KEY: usize = 4096;

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A corrupt header: nothing in the row can be trusted.
pub(super) const BAD_HEADER: &str = "the checksum of the row's header does not match";
/// A corrupt value.
pub(super) const BAD_VALUE: &str = "the checksum of the value does not match";
const CUT_OFF: &str = "the row is cut off";

impl<'a> Row<'a> {
    pub(super) fn size(&self) -> usize {
        HEADER + self.key.len() + self.value.map_or(0, <[u8]>::len)
    }

    /// Writes the row into exactly [`Self::size`] bytes.
    pub(super) fn write_to(&self, row_id: RowId, out: &mut [u8]) {
        let kind = if self.value.is_some() { PUT } else { DELETE };
        let key_len = u32::try_from(self.key.len()).expect("transactions are far below 4 GiB");
        let value = self.value.unwrap_or_default();
        let mut numbers = [0; NUMBERS];
        fill(
            &mut numbers,
            &[
                &[kind],
                &self.create_revision.to_le_bytes()[..],
                &self.expires_at.to_le_bytes(),
                &self.previous.map_or(0, |row| row.0).to_le_bytes(),
                &key_len.to_le_bytes(),
            ],
        );
        let value_sum = crc32fast::hash(value).to_le_bytes();
        let header_sum = header_sum(row_id, &numbers, value_sum, self.key).to_le_bytes();
        let parts = [&numbers[..], &header_sum, &value_sum, self.key, value];
        fill(out, &parts);
    }

    /// Parses a row, or returns what is wrong with its header. The result says whether its value is
    /// intact.
    pub(super) fn parse(row_id: RowId, bytes: &'a [u8]) -> Result<(Self, bool), &'static str> {
        let parts = Parts::split(bytes)?;
        if header_sum(row_id, parts.numbers, parts.value_sum, parts.key) != parts.header_sum {
            return Err(BAD_HEADER);
        }
        let is_intact = crc32fast::hash(parts.value) == u32::from_le_bytes(parts.value_sum);
        Ok((parts.row()?, is_intact))
    }

    /// Reads a row as if its header were right. Used to name the key of a damaged row.
    pub(super) fn parse_unchecked(bytes: &'a [u8]) -> Result<Self, &'static str> {
        Parts::split(bytes)?.row()
    }

    /// The bytes of a row whose header has a single flipped bit, repaired.
    pub(super) fn repaired(row_id: RowId, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        let key_len = Parts::split(&bytes).map_or(0, |parts| parts.key.len());
        // Such a large length is itself the corrupt number.
        let key_len = if key_len > MAX_KEY { 0 } else { key_len };
        for bit in 0..(HEADER + key_len) * 8 {
            let flip = 1 << (bit % 8);
            *bytes.get_mut(bit / 8)? ^= flip;
            if Row::parse(row_id, &bytes).is_ok() {
                return Some(bytes);
            }
            bytes[bit / 8] ^= flip;
        }
        None
    }

    /// A row of format 1, which had no checksums.
    pub(super) fn parse_format_1(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (numbers, rest) = bytes.split_first_chunk().ok_or(CUT_OFF)?;
        let (key, value) = rest.split_at_checked(key_len(numbers)?).ok_or(CUT_OFF)?;
        numbers_and(numbers, key, value)
    }

    /// The entry that the row wrote; `None` for a delete.
    pub(super) fn entry(&self, key: Bytes, row: RowId, is_intact: bool) -> Option<Entry> {
        let value = self.value?;
        Some(Entry {
            key,
            value: match is_intact {
                true => Bytes::copy_from_slice(value),
                false => Bytes::new(),
            },
            create_revision: self.create_revision,
            mod_revision: row.revision(),
            unreadable: (!is_intact).then(|| Arc::from(BAD_VALUE)),
        })
    }
}

/// A parsed row.
struct Parts<'a> {
    numbers: &'a [u8; NUMBERS],
    header_sum: u32,
    value_sum: [u8; SUM],
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    fn split(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (numbers, rest) = bytes.split_first_chunk().ok_or(CUT_OFF)?;
        let (header_sum, rest) = rest.split_first_chunk().ok_or(CUT_OFF)?;
        let (value_sum, rest) = rest.split_first_chunk().ok_or(CUT_OFF)?;
        let (key, value) = rest.split_at_checked(key_len(numbers)?).ok_or(CUT_OFF)?;
        Ok(Self {
            numbers,
            header_sum: u32::from_le_bytes(*header_sum),
            value_sum: *value_sum,
            key,
            value,
        })
    }

    fn row(&self) -> Result<Row<'a>, &'static str> {
        numbers_and(self.numbers, self.key, self.value)
    }
}

/// A row with these numbers, key and value.
fn numbers_and<'a>(
    numbers: &[u8; NUMBERS],
    key: &'a [u8],
    value: &'a [u8],
) -> Result<Row<'a>, &'static str> {
    let number = |at: usize| {
        let bytes = numbers[1..].chunks_exact(8).nth(at).unwrap_or(&[0; 8]);
        u64::from_le_bytes(bytes.try_into().unwrap_or_default())
    };
    let value = match numbers[0] {
        PUT => Some(value),
        DELETE => None,
        _ => return Err("the row is neither a put nor a delete"),
    };
    let previous = number(2);
    Ok(Row {
        key,
        value,
        create_revision: number(0),
        expires_at: number(1),
        previous: (previous != 0).then_some(RowId(previous)),
    })
}

fn key_len(numbers: &[u8; NUMBERS]) -> Result<usize, &'static str> {
    let len = numbers.last_chunk().ok_or(CUT_OFF)?;
    usize::try_from(u32::from_le_bytes(*len)).map_err(|_| CUT_OFF)
}

/// The position is part of the checksum, so that a misplaced row is detected.
fn header_sum(row_id: RowId, numbers: &[u8; NUMBERS], value_sum: [u8; SUM], key: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&row_id.0.to_le_bytes());
    sum.update(numbers);
    sum.update(&value_sum);
    sum.update(key);
    sum.finalize()
}

fn fill(out: &mut [u8], parts: &[&[u8]]) {
    let mut rest = out;
    for part in parts {
        let (here, after) = rest.split_at_mut(part.len());
        here.copy_from_slice(part);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(row: &Row<'_>, row_id: RowId) -> Vec<u8> {
        let mut bytes = vec![0; row.size()];
        row.write_to(row_id, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn rows_read_back_as_written(
            key: Vec<u8>, value: Option<Vec<u8>>, create_revision: u64, expires_at: u64, previous: u64,
            row_id: u64,
        ) {
            let previous = (previous != 0).then_some(RowId(previous));
            let value = value.as_deref();
            let row = Row { key: &key, value, create_revision, expires_at, previous };
            let bytes = bytes_of(&row, RowId(row_id));
            prop_assert_eq!(Row::parse(RowId(row_id), &bytes), Ok((row, true)));
        }

        #[test]
        fn flipped_bit_is_detected_and_the_key_recovered(
            key in prop::collection::vec(any::<u8>(), 0..60),
            value in prop::collection::vec(any::<u8>(), 0..60),
            at: prop::sample::Index,
            bit in 0_u32..8,
        ) {
            let row_id = RowId::new(7, 0);
            let row = Row {
                key: &key, value: Some(&value), create_revision: 3, expires_at: 0, previous: None,
            };
            let mut bytes = bytes_of(&row, row_id);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            match Row::parse(row_id, &bytes) {
                Ok((read, is_intact)) => {
                    prop_assert!(!is_intact);
                    prop_assert_eq!(read.key, &key[..]);
                }
                Err(_) => {
                    let repaired = Row::repaired(row_id, &bytes).expect("one bit differs");
                    prop_assert_eq!(Row::parse(row_id, &repaired), Ok((row, true)));
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Row::parse(RowId(1), &bytes);
            let _ = Row::parse_unchecked(&bytes);
            let _ = Row::parse_format_1(&bytes);
            let _ = Row::repaired(RowId(1), &bytes);
        }
    }

    #[test]
    fn misplaced_row_is_damaged() {
        let row = Row {
            key: b"/a",
            value: None,
            create_revision: 0,
            expires_at: 0,
            previous: None,
        };
        let bytes = bytes_of(&row, RowId::new(7, 0));
        assert_eq!(Row::parse(RowId::new(8, 0), &bytes), Err(BAD_HEADER));
    }

    #[test]
    fn rows_sort_by_revision_then_position() {
        assert!(RowId::new(7, 255) < RowId::first_of(8));
        assert_eq!(RowId::new(7, 255).revision(), 7);
    }
}
