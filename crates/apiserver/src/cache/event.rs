//! A watch event: encoded once, sent to many watchers.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};

use super::object::Object;
use crate::store::Revision;

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// The object was created, or is now selected.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted, or is no longer selected.
    Deleted,
}

impl EventType {
    /// The `type` of a watch event.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
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
    /// The object before the change, at the revision of the change: for watchers that no longer
    /// select it.
    deleted: OnceLock<Arc<Object>>,
    pub(super) revision: Revision,
    /// When this cache received it.
    pub(super) seen_at: Instant,
    /// One line for each [`EventType`], encoded on first use.
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
            deleted: OnceLock::new(),
            revision,
            seen_at,
            lines: Default::default(),
        }
    }

    /// When the change was made.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The approximate bytes of its line.
    pub(super) fn line_bytes(&self) -> usize {
        let object = self.current.as_ref().or(self.previous.as_ref());
        object.map_or(0, |object| object.json().len())
    }

    /// The memory cost of the event: the object that it supersedes, and its line.
    pub(super) fn kept_bytes(&self) -> usize {
        let superseded = self.previous.as_ref().map_or(0, |old| old.json().len());
        superseded + self.line_bytes()
    }

    /// The event for a watcher of the objects for which `selects` holds: an object that becomes
    /// selected is added, one that is no longer selected is deleted with its last selected content.
    pub fn seen(&self, selects: impl Fn(&Object) -> bool) -> Option<(EventType, &Arc<Object>)> {
        let current = self.current.as_ref().filter(|object| selects(object));
        let previous = self.previous.as_ref().filter(|object| selects(object));
        match (current, previous) {
            (Some(object), None) => Some((EventType::Added, object)),
            (Some(object), Some(_)) => Some((EventType::Modified, object)),
            (None, Some(object)) => Some((EventType::Deleted, self.deleted(object))),
            (None, None) => None,
        }
    }

    fn deleted(&self, previous: &Object) -> &Arc<Object> {
        self.deleted
            .get_or_init(|| Arc::new(previous.deleted_at(self.revision)))
    }

    /// The encoded line.
    pub fn line(&self, event_type: EventType) -> Bytes {
        let slot = match event_type {
            EventType::Added => 0,
            EventType::Modified => 1,
            EventType::Deleted => 2,
        };
        let object = match event_type {
            EventType::Deleted => self.previous.as_ref().map(|object| self.deleted(object)),
            EventType::Added | EventType::Modified => self.current.as_ref(),
        };
        let json = object
            .map(|object| object.json().as_ref())
            .unwrap_or(b"null");
        self.lines[slot]
            .get_or_init(|| line(event_type, json))
            .clone()
    }
}

/// A line of a watch.
pub(crate) fn line(event_type: EventType, json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 40);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(event_type.as_str().as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(json);
    line.put_slice(b"}\n");
    line.freeze()
}
