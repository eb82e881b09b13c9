//! Events: what happened to an object, for users.
//!
//! A [`Recorder`] takes [`Occurrence`]s without ever making its caller wait, and has them written in
//! the background. Two forms are in use upstream, each with its own way to keep repetitions from
//! piling up:
//! - [`Recorder::series`]: events.k8s.io/v1, used by the scheduler. What happens again becomes a
//!   *series* of the first event.
//! - [`Recorder::counted`]: core v1, used by the controllers. What happens again is *counted*, what
//!   differs in its message only is combined after ten, and too many are not written at all.
//!
//! Memory is bounded: occurrences beyond [`QUEUE_LENGTH`] that wait to be written are dropped, as
//! upstream drops them.
//!
//! Reading order: this file, `lru_cache` (a bounded cache), `series` and `counted` (what is to be
//! written, as pure values), `writing` (the shell).

mod counted;
mod lru_cache;
mod series;
mod writing;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Resource};
pub use plimsoll_core::object::event::{EventType, Note};
use plimsoll_core::object::syntax::check_dns_subdomain;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::process;
use crate::supervision::survive_panics;

/// How many occurrences may wait to be written.
pub const QUEUE_LENGTH: usize = 32_768;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The object.
    pub regarding: ObjectReference,
    /// Another object that had to do with it; the counted form has no place for it.
    pub related: Option<ObjectReference>,
    /// Whether a user may have to act.
    pub event_type: EventType,
    /// The machine-readable reason.
    pub reason: Cow<'static, str>,
    /// The action; the counted form has no field for it.
    pub action: Cow<'static, str>,
    /// The human-readable message.
    pub note: String,
}

/// The reference to an object that events carry.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference {
        resource_version: object.meta().resource_version.clone(),
        ..object.object_ref(&())
    }
}

/// The component that reports an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reporter {
    /// The component.
    controller: String,
    /// Which of its processes.
    instance: String,
}

/// Takes occurrences to be written. Cloning one is cheap.
#[derive(Clone, Debug)]
pub struct Recorder {
    reporter: Arc<Reporter>,
    sender: mpsc::Sender<PendingEvent>,
}

/// An occurrence that is to be written.
#[derive(Clone, Debug)]
struct PendingEvent {
    reporter: Arc<Reporter>,
    occurrence: Occurrence,
    annotations: Option<Annotations>,
    /// When it happened, if that is not now.
    at: Option<Timestamp>,
}

/// Machine-readable data of an event, by name.
pub type Annotations = BTreeMap<String, String>;

impl Recorder {
    /// A recorder of events.k8s.io/v1 events, in the name of a controller. It writes until `stop`.
    pub fn series(client: Client, controller: &str, stop: CancellationToken) -> Recorder {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let receiver = Arc::new(Mutex::new(receiver));
        tokio::spawn(survive_panics("events", move || {
            writing::write_series(client.clone(), Arc::clone(&receiver), stop.clone())
        }));
        let instance = format!("{controller}-{}", process::hostname());
        Recorder::with_reporter(controller, instance, sender)
    }

    /// A recorder of core v1 events, in the name of a component. It writes until `stop`.
    pub fn counted(client: Client, component: &str, stop: CancellationToken) -> Recorder {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let receiver = Arc::new(Mutex::new(receiver));
        tokio::spawn(survive_panics("events", move || {
            writing::write_counted(client.clone(), Arc::clone(&receiver), stop.clone())
        }));
        Recorder::with_reporter(component, String::new(), sender)
    }

    /// The same recorder in the name of another controller.
    #[must_use]
    pub fn reporting_as(&self, controller: &str) -> Recorder {
        let instance = if self.reporter.instance.is_empty() {
            String::new()
        } else {
            format!("{controller}-{}", process::hostname())
        };
        Recorder::with_reporter(controller, instance, self.sender.clone())
    }

    fn with_reporter(
        controller: &str,
        instance: String,
        sender: mpsc::Sender<PendingEvent>,
    ) -> Recorder {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance,
        };
        Recorder {
            reporter: Arc::new(reporter),
            sender,
        }
    }

    /// Queues an occurrence to be written. It is dropped if too many wait.
    pub fn record(&self, occurrence: Occurrence) {
        self.send(occurrence, None, None);
    }

    /// The same, with annotations on the event.
    pub fn record_with(&self, occurrence: Occurrence, annotations: Option<Annotations>) {
        self.send(occurrence, annotations, None);
    }

    /// Queues an event about an object, as its note says.
    pub fn record_note(&self, regarding: ObjectReference, note: Note) {
        let regarding = ObjectReference {
            field_path: note.field_path.or(regarding.field_path),
            ..regarding
        };
        let occurrence = Occurrence {
            regarding,
            related: None,
            event_type: note.event_type,
            reason: note.reason,
            action: "".into(),
            note: note.message,
        };
        let annotations = (!note.annotations.is_empty()).then_some(note.annotations);
        let at = note.at.map(|at| at.to_api().0);
        self.send(occurrence, annotations, at);
    }

    fn send(
        &self,
        occurrence: Occurrence,
        annotations: Option<Annotations>,
        at: Option<Timestamp>,
    ) {
        let pending = PendingEvent {
            reporter: Arc::clone(&self.reporter),
            occurrence,
            annotations,
            at,
        };
        if let Err(error) = self.sender.try_send(pending) {
            tracing::debug!(%error, "too many queued events, dropped event");
        }
    }
}

/// The namespace of an event: that of its object, if it has one.
fn namespace_of(regarding: &ObjectReference) -> String {
    let namespace = regarding.namespace.as_deref().unwrap_or_default();
    if namespace.is_empty() {
        "default".to_owned()
    } else {
        namespace.to_owned()
    }
}

/// The name of an event: that of its object, and the time.
fn event_name(regarding: &ObjectReference, nanoseconds: i128) -> String {
    let object = regarding.name.as_deref().unwrap_or_default();
    let name = format!("{object}.{nanoseconds:x}");
    if check_dns_subdomain(&name).is_empty() {
        name
    } else {
        process::random_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_server_would_refuse_are_replaced() {
        let named = |name: &str| ObjectReference {
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        };
        assert_eq!(event_name(&named("web-1"), 0xabc), "web-1.abc");
        assert_eq!(event_name(&named("a:b"), 1).len(), 36);
        assert_eq!(event_name(&named(&"a".repeat(253)), 1).len(), 36);
    }
}
