//! The history of a run from the clients' view: one entry per request and per watch event.

use std::collections::BTreeMap;
use std::time::Duration;

/// Since the run began.
pub(crate) type Time = Duration;

/// A resource version.
pub(crate) type Revision = u64;

/// What an object holds. No two writes of a run write the same number.
pub(crate) type Content = u64;

/// The change that a write requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Create(Content),
    Update(Content),
    Delete,
}

/// What a client learned about its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At this revision; the answer to a delete does not have it.
    Acknowledged(Option<Revision>),
    /// The server said that it did nothing.
    Refused,
    /// No answer, or one that leaves it open.
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) object: String,
    pub(crate) change: Change,
    /// The revision of the object that the write demands; none for a create.
    pub(crate) base: Option<Revision>,
    pub(crate) started: Time,
    pub(crate) ended: Time,
    pub(crate) outcome: Outcome,
}

/// A read of one object that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) object: String,
    pub(crate) started: Time,
    pub(crate) found: Option<(Revision, Content)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) revision: Revision,
    pub(crate) object: String,
    /// Nothing for a deletion.
    pub(crate) content: Option<Content>,
}

/// A watch from its list until it ends. The server may end it, and refuse to resume it;
/// then there is another list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// The revision of the list.
    pub(crate) from: Revision,
    pub(crate) listed: BTreeMap<String, (Revision, Content)>,
    pub(crate) events: Vec<Event>,
}

/// Everything that the checker judges by.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) writes: Vec<Write>,
    pub(crate) reads: Vec<Read>,
    /// What each watcher saw, from before the first write until after the last.
    pub(crate) watchers: Vec<Vec<Watch>>,
    /// What a list shows at the end.
    pub(crate) objects: BTreeMap<String, (Revision, Content)>,
}
