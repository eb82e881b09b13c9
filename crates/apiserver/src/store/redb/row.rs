//! One change as it lies in the log.
//!
//! The log is the only large table: row number to change, in the order of history. Appending
//! touches only its last pages, so a commit writes little more than the new values.

use bytes::Bytes;

use super::super::{Entry, Revision};

/// The place of a change in history: revision and position within the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// When the key came into being; zero for a delete.
    pub(super) create_revision: Revision,
    /// Milliseconds since 1970 after which the key is deleted; zero for never.
    pub(super) expires_at: u64,
    /// The put that this change supersedes, if the key existed.
    pub(super) previous: Option<RowId>,
}

/// Kind, three numbers, and the length of the key.
const HEADER: usize = 1 + 3 * 8 + 4;
const DELETE: u8 = 0;
const PUT: u8 = 1;

impl<'a> Row<'a> {
    pub(super) fn size(&self) -> usize {
        HEADER + self.key.len() + self.value.map_or(0, <[u8]>::len)
    }

    /// Writes the row into exactly [`Self::size`] bytes.
    pub(super) fn write_to(&self, out: &mut [u8]) {
        let kind = if self.value.is_some() { PUT } else { DELETE };
        let key_len = u32::try_from(self.key.len()).expect("transactions are far below 4 GiB");
        let mut rest = out;
        for part in [
            &[kind],
            &self.create_revision.to_le_bytes()[..],
            &self.expires_at.to_le_bytes(),
            &self.previous.map_or(0, |row| row.0).to_le_bytes(),
            &key_len.to_le_bytes(),
            self.key,
            self.value.unwrap_or_default(),
        ] {
            let (here, after) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        }
    }

    /// Reads a row, or says what is wrong with it.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (kind, rest) = bytes.split_first().ok_or("the row is empty")?;
        let mut rest = rest;
        let create_revision = take_u64(&mut rest)?;
        let expires_at = take_u64(&mut rest)?;
        let previous = take_u64(&mut rest)?;
        let (key_len, rest) = rest.split_first_chunk().ok_or(CUT_OFF)?;
        let key_len = usize::try_from(u32::from_le_bytes(*key_len)).map_err(|_| CUT_OFF)?;
        let (key, value) = rest.split_at_checked(key_len).ok_or(CUT_OFF)?;
        let value = match *kind {
            PUT => Some(value),
            DELETE => None,
            _ => return Err("the row is neither a put nor a delete"),
        };
        Ok(Self {
            key,
            value,
            create_revision,
            expires_at,
            previous: (previous != 0).then_some(RowId(previous)),
        })
    }

    /// The entry that the row made; `None` for a delete.
    pub(super) fn entry(&self, key: Bytes, row: RowId) -> Option<Entry> {
        Some(Entry {
            key,
            value: Bytes::copy_from_slice(self.value?),
            create_revision: self.create_revision,
            mod_revision: row.revision(),
        })
    }
}

const CUT_OFF: &str = "the row is cut off";

fn take_u64(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let (number, rest) = bytes.split_first_chunk().ok_or(CUT_OFF)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_read_back_as_written(
            key: Vec<u8>, value: Option<Vec<u8>>, create_revision: u64, expires_at: u64, previous: u64,
        ) {
            let previous = (previous != 0).then_some(RowId(previous));
            let value = value.as_deref();
            let row = Row { key: &key, value, create_revision, expires_at, previous };
            let mut bytes = vec![0; row.size()];
            row.write_to(&mut bytes);
            prop_assert_eq!(Row::parse(&bytes), Ok(row));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Row::parse(&bytes);
        }
    }

    #[test]
    fn rows_sort_by_revision_then_position() {
        assert!(RowId::new(7, 255) < RowId::first_of(8));
        assert_eq!(RowId::new(7, 255).revision(), 7);
    }
}
