//! Counts repeated events, and limits the number of events per object.
//!
//! Matches v1.36 staging/src/k8s.io/client-go/tools/record/events_cache.go.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::lru_cache::LruCache;
use super::{PendingEvent, event_name, namespace_of};

/// How many events of each kind are remembered.
const CACHE_SIZE: usize = 4096;
/// So many different messages about the same are combined into one.
const COMBINED_FROM: usize = 10;
/// If they come within this time of each other.
const COMBINED_WITHIN: Duration = Duration::from_mins(10);
/// So many events about an object are written at once,
const BURST: u32 = 25;
/// and one more in this time.
const REFILL_SECONDS: f64 = 300.0;

/// The events of late.
#[derive(Debug)]
pub(super) struct Counted {
    similar: LruCache<String, Similar>,
    logged: LruCache<String, Logged>,
    budgets: LruCache<String, Budget>,
}

#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

#[derive(Clone, Debug)]
struct Logged {
    count: i32,
    first: Option<Time>,
    name: Option<String>,
}

#[derive(Debug)]
struct Budget {
    tokens: f64,
    at: Timestamp,
}

impl Counted {
    pub(super) fn new() -> Counted {
        Counted {
            similar: LruCache::new(CACHE_SIZE),
            logged: LruCache::new(CACHE_SIZE),
            budgets: LruCache::new(CACHE_SIZE),
        }
    }

    /// The event to be written: one with a count of one is to be created, another to be patched.
    /// `None` if there have been too many.
    pub(super) fn record(&mut self, pending: PendingEvent, now: Timestamp) -> Option<Event> {
        let event = event(pending, now);
        let (mut event, key) = self.combine(event, now);
        if let Some(known) = self.logged.get_mut(&key) {
            event.count = Some(known.count.saturating_add(1));
            event.first_timestamp = known.first.clone();
            event.metadata.name = known.name.clone();
        }
        self.logged.insert(key, logged(&event));
        self.take_token(&event, now).then_some(event)
    }

    /// Takes over the event as the server has it.
    pub(super) fn update(&mut self, event: &Event) {
        self.logged.insert(event_key(event), logged(event));
    }

    fn combine(&mut self, event: Event, now: Timestamp) -> (Event, String) {
        let (own_key, common_key) = (event_key(&event), common_key(&event));
        let message = event.message.clone().unwrap_or_default();
        if self.similar.get_mut(&common_key).is_none() {
            let similar = Similar {
                messages: BTreeSet::new(),
                last: now,
            };
            self.similar.insert(common_key.clone(), similar);
        }
        let Some(similar) = self.similar.get_mut(&common_key) else {
            return (event, own_key);
        };
        if similar.last + COMBINED_WITHIN < now {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.clone());
        if similar.messages.len() < COMBINED_FROM {
            return (event, own_key);
        }
        similar.messages.pop_first();
        let combined = Event {
            message: Some(format!("(combined from similar events): {message}")),
            reporting_component: None,
            reporting_instance: None,
            ..event
        };
        (combined, common_key)
    }

    /// Whether the object may have another event.
    fn take_token(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = object_key(event);
        let full = f64::from(BURST);
        if self.budgets.get_mut(&key).is_none() {
            let budget = Budget {
                tokens: full,
                at: now,
            };
            self.budgets.insert(key.clone(), budget);
        }
        let Some(budget) = self.budgets.get_mut(&key) else {
            return true;
        };
        let passed = now.duration_since(budget.at).as_secs_f64().max(0.0);
        budget.tokens = (budget.tokens + passed / REFILL_SECONDS).min(full);
        budget.at = now;
        let is_allowed = budget.tokens >= 1.0;
        if is_allowed {
            budget.tokens -= 1.0;
        }
        is_allowed
    }
}

fn logged(event: &Event) -> Logged {
    Logged {
        count: event.count.unwrap_or(1),
        first: event.first_timestamp.clone(),
        name: event.metadata.name.clone(),
    }
}

fn event(pending: PendingEvent, now: Timestamp) -> Event {
    let PendingEvent {
        reporter,
        occurrence,
        annotations,
        at,
    } = pending;
    let at = at.unwrap_or(now);
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(&occurrence.regarding, at.as_nanosecond())),
            namespace: Some(namespace_of(&occurrence.regarding)),
            annotations,
            ..ObjectMeta::default()
        },
        involved_object: occurrence.regarding,
        reason: Some(occurrence.reason.into_owned()),
        message: Some(occurrence.note),
        first_timestamp: Some(Time(at)),
        last_timestamp: Some(Time(at)),
        count: Some(1),
        type_: Some(occurrence.event_type.as_str().to_owned()),
        source: Some(EventSource {
            component: Some(reporter.controller.clone()),
            host: None,
        }),
        reporting_component: Some(reporter.controller.clone()),
        reporting_instance: Some(reporter.instance.clone()),
        ..Event::default()
    }
}

/// The same source, object and type.
fn object_key(event: &Event) -> String {
    let ObjectReference {
        kind,
        namespace,
        name,
        uid,
        api_version,
        ..
    } = &event.involved_object;
    let component = event.source.as_ref().and_then(|s| s.component.as_ref());
    let parts = [
        component,
        kind.as_ref(),
        namespace.as_ref(),
        name.as_ref(),
        uid.as_ref(),
        api_version.as_ref(),
        event.type_.as_ref(),
    ];
    parts.map(|part| part.map_or("", String::as_str)).join("\0")
}

/// The same about the same object, with any message.
fn common_key(event: &Event) -> String {
    let reason = event.reason.as_deref().unwrap_or_default();
    format!("{}\0{reason}", object_key(event))
}

/// The very same.
fn event_key(event: &Event) -> String {
    let message = event.message.as_deref().unwrap_or_default();
    let path = event.involved_object.field_path.as_deref();
    let path = path.unwrap_or_default();
    format!("{}\0{path}\0{message}", common_key(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Occurrence, Reporter};
    use std::sync::Arc;

    fn pending(message: &str) -> PendingEvent {
        PendingEvent {
            reporter: Arc::new(Reporter {
                controller: "node-controller".to_owned(),
                instance: String::new(),
            }),
            occurrence: Occurrence {
                regarding: ObjectReference {
                    name: Some("a".to_owned()),
                    ..ObjectReference::default()
                },
                related: None,
                event_type: EventType::Normal,
                reason: "NodeNotReady".into(),
                action: "".into(),
                note: message.to_owned(),
            },
            annotations: None,
            at: None,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_same_event_is_counted_under_its_first_name_and_time() {
        let mut counted = Counted::new();
        let first = counted.record(pending("x"), at(1)).unwrap();
        let second = counted.record(pending("x"), at(2)).unwrap();
        assert_eq!((first.count, second.count), (Some(1), Some(2)));
        assert_eq!(second.metadata.name, first.metadata.name);
        assert_eq!(second.first_timestamp, Some(Time(at(1))));
        assert_eq!(second.last_timestamp, Some(Time(at(2))));
        assert_eq!(counted.record(pending("y"), at(2)).unwrap().count, Some(1));
    }

    #[test]
    fn occurrence_at_a_time_is_one_event_from_any_recorder() {
        let then = || PendingEvent {
            at: Some(at(1)),
            ..pending("x")
        };
        let first = Counted::new().record(then(), at(2)).unwrap();
        let again = Counted::new().record(then(), at(60)).unwrap();
        assert_eq!(again, first);
        assert_eq!(first.first_timestamp, Some(Time(at(1))));
    }

    #[test]
    fn the_tenth_different_message_begins_a_combined_event() {
        let mut counted = Counted::new();
        for number in 0..9 {
            let event = counted.record(pending(&number.to_string()), at(1)).unwrap();
            assert_eq!(event.message, Some(number.to_string()));
        }
        let tenth = counted.record(pending("tenth"), at(1)).unwrap();
        let message = tenth.message.as_deref();
        assert_eq!(message, Some("(combined from similar events): tenth"));
        let next = counted.record(pending("next"), at(2)).unwrap();
        assert_eq!(next.count, Some(2));
        assert_eq!(next.metadata.name, tenth.metadata.name);
        let much_later = counted.record(pending("later"), at(700)).unwrap();
        assert_eq!(much_later.message.as_deref(), Some("later"));
    }

    #[test]
    fn an_object_has_twenty_five_events_at_once_and_one_more_every_five_minutes() {
        let mut counted = Counted::new();
        for _ in 0..25 {
            assert!(counted.record(pending("x"), at(0)).is_some());
        }
        assert!(counted.record(pending("x"), at(0)).is_none());
        assert!(counted.record(pending("x"), at(299)).is_none());
        assert_eq!(
            counted.record(pending("x"), at(301)).unwrap().count,
            Some(28)
        );
    }
}
