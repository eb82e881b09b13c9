//! The stored objects that cannot be decoded, queued for the task that records events about them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::object::Unreadable;
use crate::kinds::Kind;

/// The most objects that events are recorded for while a server runs: events about a damaged store
/// must not fill it. The log and the metric count all.
const LIMIT: usize = 500;

/// An object that cannot be read.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) kind: &'static Kind,
    /// `namespace/name`, or the name alone.
    pub(crate) key: Arc<str>,
    /// Why not. It shows nothing of the object.
    pub(crate) problem: String,
}

/// Where readers record them, without waiting, each once.
#[derive(Debug)]
pub(crate) struct Findings {
    known: Mutex<BTreeSet<(&'static str, Arc<str>)>>,
    sender: Sender<Finding>,
    receiver: tokio::sync::Mutex<Receiver<Finding>>,
}

impl Findings {
    pub(super) fn new() -> Findings {
        let (sender, receiver) = channel(LIMIT);
        Findings {
            known: Mutex::default(),
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
        }
    }

    pub(super) fn note(&self, kind: &'static Kind, key: &Arc<str>, problem: &Unreadable) {
        let storage = kind.storage.unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LIMIT || !known.insert((storage, Arc::clone(key))) {
            return;
        }
        drop(known);
        // There is room: not more than the limit are ever sent.
        let _ = self.sender.try_send(Finding {
            kind,
            key: Arc::clone(key),
            problem: problem.to_string(),
        });
    }

    /// The next one, as soon as there is one.
    pub(crate) async fn next(&self) -> Option<Finding> {
        self.receiver.lock().await.recv().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::kinds;

    #[test]
    fn each_object_is_noted_once_and_not_more_than_the_limit() {
        let findings = Findings::new();
        let pods = kinds::by_kind("v1", "Pod").unwrap();
        for _ in 0..2 {
            for number in 0..LIMIT + 10 {
                let key = format!("default/p{number}").into();
                findings.note(pods, &key, &Unreadable::NoObject);
            }
        }
        let mut count = 0;
        while let Some(Some(found)) = findings.next().now_or_never() {
            assert_eq!(*found.key, *format!("default/p{count}"));
            assert_eq!(found.problem, "not an object with metadata");
            count += 1;
        }
        assert_eq!(count, LIMIT);
    }
}
