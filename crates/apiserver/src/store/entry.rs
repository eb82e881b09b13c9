//! The results of reads.

use std::sync::Arc;

use bytes::Bytes;

use super::Revision;

/// A key with its value at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The value of the last put.
    pub value: Bytes,
    /// When the key was created; puts keep it, a delete ends it.
    pub create_revision: Revision,
    /// When the key was last put.
    pub mod_revision: Revision,
    /// Why the value cannot be read, if so: it is corrupt, or encrypted with a missing key.
    /// The value is empty then.
    pub unreadable: Option<Arc<str>>,
}

impl Entry {
    /// Whether the last put created the key.
    pub fn is_new(&self) -> bool {
        self.create_revision == self.mod_revision
    }
}

/// The result of reading one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The revision that was read.
    pub revision: Revision,
    /// The entry, if the key existed then.
    pub entry: Option<Entry>,
}

/// The keys to list.
#[derive(Clone, Debug, Default)]
pub struct RangeRequest {
    /// Only keys that begin with this.
    pub prefix: Bytes,
    /// Only keys not below this; where the previous page ended.
    pub start: Option<Bytes>,
    /// At most this many.
    pub limit: Option<usize>,
    /// At this revision instead of the current one.
    pub at: Option<Revision>,
}

impl RangeRequest {
    /// Everything under a prefix.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self {
            prefix: prefix.into(),
            ..Self::default()
        }
    }

    /// The first key that the range can hold.
    pub(super) fn first_key(&self) -> &[u8] {
        match &self.start {
            Some(start) if start > &self.prefix => start,
            _ => &self.prefix,
        }
    }
}

/// A page of listed keys, and how many follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The revision that was read; the next page should request the same.
    pub revision: Revision,
    /// In byte order of keys.
    pub entries: Vec<Entry>,
    /// Keys of the range behind the last entry.
    pub remaining: u64,
}

/// The first key above all keys with the prefix; none if there is no such key.
pub(super) fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_end_is_above_all_its_keys() {
        assert_eq!(prefix_end(b"/a/").as_deref(), Some(&b"/a0"[..]));
        assert_eq!(prefix_end(b"a\xff\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(prefix_end(b"\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }

    #[test]
    fn start_below_the_prefix_does_not_extend_the_range() {
        let mut request = RangeRequest::prefix("/b/");
        request.start = Some("/a/x".into());
        assert_eq!(request.first_key(), b"/b/");
        request.start = Some("/b/x".into());
        assert_eq!(request.first_key(), b"/b/x");
    }
}
