//! A change as watchers get it: encoded once, sent to many.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};

use super::object::Object;
use crate::store::Revision;

/// What a watcher is told about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It is there, or selected, as of now.
    Added,
    /// It has changed.
    Modified,
    /// It is gone, or no longer selected.
    Deleted,
}

impl Sort {
    /// The `type` of a watch event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sort::Added => "ADDED",
            Sort::Modified => "MODIFIED",
            Sort::Deleted => "DELETED",
        }
    }
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// The object after the change; `None` when it was deleted.
    pub(super) current: Option<Arc<Object>>,
    /// The object before the change; `None` when it is new.
    pub(super) previous: Option<Arc<Object>>,
    /// The object before the change, at the revision of the change: what those get who no longer
    /// see it.
    gone: OnceLock<Arc<Object>>,
    pub(super) revision: Revision,
    /// When it came to be known here.
    pub(super) seen_at: Instant,
    /// One line for each [`Sort`], made when first asked for.
    lines: [OnceLock<Bytes>; 3],
}

impl Event {
    pub(super) fn new(
        revision: Revision,
        current: Option<Arc<Object>>,
        previous: Option<Arc<Object>>,
        seen_at: Instant,
    ) -> Event {
        Event {
            current,
            previous,
            gone: OnceLock::new(),
            revision,
            seen_at,
            lines: Default::default(),
        }
    }

    /// When the change was made.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The bytes of a line about it, roughly.
    pub(super) fn line_bytes(&self) -> usize {
        let object = self.current.as_ref().or(self.previous.as_ref());
        object.map_or(0, |object| object.json().len())
    }

    /// What keeping the event costs: the object that it supersedes, and its line.
    pub(super) fn kept_bytes(&self) -> usize {
        let superseded = self.previous.as_ref().map_or(0, |old| old.json().len());
        superseded + self.line_bytes()
    }

    /// What somebody sees who watches the objects for which `selects` holds: an object that starts
    /// to be selected appears, one that stops disappears with its last selected content.
    pub fn seen(&self, selects: impl Fn(&Object) -> bool) -> Option<(Sort, &Arc<Object>)> {
        let current = self.current.as_ref().filter(|object| selects(object));
        let previous = self.previous.as_ref().filter(|object| selects(object));
        match (current, previous) {
            (Some(object), None) => Some((Sort::Added, object)),
            (Some(object), Some(_)) => Some((Sort::Modified, object)),
            (None, Some(object)) => Some((Sort::Deleted, self.gone(object))),
            (None, None) => None,
        }
    }

    fn gone(&self, previous: &Object) -> &Arc<Object> {
        self.gone
            .get_or_init(|| Arc::new(previous.deleted_at(self.revision)))
    }

    /// The line that goes over the wire.
    pub fn line(&self, sort: Sort) -> Bytes {
        let slot = match sort {
            Sort::Added => 0,
            Sort::Modified => 1,
            Sort::Deleted => 2,
        };
        let object = match sort {
            Sort::Deleted => self.previous.as_ref().map(|object| self.gone(object)),
            Sort::Added | Sort::Modified => self.current.as_ref(),
        };
        let json = object
            .map(|object| object.json().as_ref())
            .unwrap_or(b"null");
        self.lines[slot].get_or_init(|| line(sort, json)).clone()
    }
}

/// A line of a watch.
pub(crate) fn line(sort: Sort, json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 40);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(sort.as_str().as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(json);
    line.put_slice(b"}\n");
    line.freeze()
}
