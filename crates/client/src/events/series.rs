//! Repetitions as series of the first event.
//!
//! Matches v1.36 staging/src/k8s.io/client-go/tools/events/event_broadcaster.go, but for the number
//! of events that are remembered, which is bounded here.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::lru_cache::LruCache;
use super::{PendingEvent, event_name, namespace_of};

/// A series ends when nothing has been added to it for this long; also how often that is checked.
pub(super) const FINISH_TIME: Duration = Duration::from_mins(6);
/// How often continuing series are written, so that they do not expire.
pub(super) const REFRESH_TIME: Duration = Duration::from_mins(30);
/// How many events are remembered, in case they happen again.
const CACHE_SIZE: usize = 4096;

/// The events of late.
#[derive(Debug)]
pub(super) struct Series {
    pending: LruCache<Key, Event>,
}

/// Events of the same key are the same event, again: everything but the note, as one text.
type Key = Box<str>;

impl Series {
    pub(super) fn new() -> Series {
        Series {
            pending: LruCache::new(CACHE_SIZE),
        }
    }

    /// The events to be written because of an occurrence: those without a series are to be
    /// created, of the others the series is to be patched.
    pub(super) fn record(&mut self, pending: PendingEvent, now: Timestamp) -> Vec<Event> {
        let key = key(&pending);
        let Some(known) = self.pending.get_mut(&key) else {
            let event = event(pending, now);
            let forgotten = self.pending.insert(key, event.clone());
            let forgotten = forgotten.filter(|event| event.series.is_some());
            return forgotten.into_iter().chain([event]).collect();
        };
        let last_observed_time = MicroTime(now);
        if let Some(series) = &mut known.series {
            series.count = series.count.saturating_add(1);
            series.last_observed_time = last_observed_time;
            return Vec::new();
        }
        known.series = Some(EventSeries {
            count: 2,
            last_observed_time,
        });
        vec![known.clone()]
    }

    /// The continuing series.
    pub(super) fn refresh(&self) -> Vec<Event> {
        let series = self
            .pending
            .iter()
            .filter(|(_, event)| event.series.is_some());
        series.map(|(_, event)| event.clone()).collect()
    }

    /// Drops events that have not happened again, and returns the series among them, to be written
    /// once more.
    pub(super) fn finish(&mut self, now: Timestamp) -> Vec<Event> {
        let is_old = |event: &Event| {
            let last = match (&event.series, &event.event_time) {
                (Some(series), _) => Some(series.last_observed_time.0),
                (None, time) => time.as_ref().map(|time| time.0),
            };
            last.is_none_or(|last| last + FINISH_TIME < now)
        };
        let old = self.pending.iter().filter(|(_, event)| is_old(event));
        let old: Vec<Key> = old.map(|(key, _)| key.clone()).collect();
        let ended = old.iter().filter_map(|key| self.pending.remove(key));
        ended.filter(|event| event.series.is_some()).collect()
    }
}

fn key(pending: &PendingEvent) -> Key {
    let (reporter, occurrence) = (&pending.reporter, &pending.occurrence);
    let mut key = String::with_capacity(256);
    let mut add = |part: &str| {
        key.push_str(part);
        // None of the parts can contain this: they are names and identifiers.
        key.push('\0');
    };
    add(&reporter.controller);
    add(&reporter.instance);
    add(occurrence.event_type.as_str());
    add(&occurrence.reason);
    add(&occurrence.action);
    let nothing = ObjectReference::default();
    let related = occurrence.related.as_ref().unwrap_or(&nothing);
    for object in [&occurrence.regarding, related] {
        for part in [
            &object.api_version,
            &object.field_path,
            &object.kind,
            &object.name,
            &object.namespace,
            &object.resource_version,
            &object.uid,
        ] {
            add(part.as_deref().unwrap_or_default());
        }
    }
    key.into_boxed_str()
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
        event_time: Some(MicroTime(at)),
        reporting_controller: Some(reporter.controller.clone()),
        reporting_instance: Some(reporter.instance.clone()),
        action: Some(occurrence.action.into_owned()),
        reason: Some(occurrence.reason.into_owned()),
        regarding: Some(occurrence.regarding),
        related: occurrence.related,
        note: Some(occurrence.note),
        type_: Some(occurrence.event_type.as_str().to_owned()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Occurrence, Reporter};
    use std::sync::Arc;

    fn pending(pod: &str, note: &str) -> PendingEvent {
        PendingEvent {
            reporter: Arc::new(Reporter {
                controller: "default-scheduler".to_owned(),
                instance: "default-scheduler-host".to_owned(),
            }),
            occurrence: Occurrence {
                regarding: ObjectReference {
                    name: Some(pod.to_owned()),
                    ..ObjectReference::default()
                },
                related: None,
                event_type: EventType::Warning,
                reason: "FailedScheduling".into(),
                action: "Scheduling".into(),
                note: note.to_owned(),
            },
            annotations: None,
            at: None,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn second_event_starts_a_series_and_later_ones_are_counted() {
        let mut series = Series::new();
        let first = series.record(pending("a", "x"), at(1));
        assert_eq!(first[0].series, None);
        assert_eq!(first[0].metadata.namespace.as_deref(), Some("default"));
        let second = series.record(pending("a", "another note"), at(2));
        assert_eq!(second[0].metadata.name, first[0].metadata.name);
        assert_eq!(second[0].note.as_deref(), Some("x"));
        assert_eq!(second[0].series.as_ref().unwrap().count, 2);
        assert!(series.record(pending("a", "x"), at(3)).is_empty());
        assert_eq!(series.record(pending("b", "x"), at(3)).len(), 1);
        let refreshed = series.refresh();
        assert_eq!(refreshed.len(), 1);
        assert_eq!(refreshed[0].series.as_ref().unwrap().count, 3);
    }

    #[test]
    fn a_series_ends_with_its_last_count_six_minutes_after_its_last_event() {
        let mut series = Series::new();
        series.record(pending("a", "x"), at(0));
        series.record(pending("a", "x"), at(10));
        series.record(pending("a", "x"), at(100));
        series.record(pending("b", "x"), at(0));
        assert!(series.finish(at(460)).is_empty());
        let ended = series.finish(at(461));
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].series.as_ref().unwrap().count, 3);
        let again = series.record(pending("b", "x"), at(462));
        assert_eq!(again[0].series, None);
    }

    #[test]
    fn dropped_series_is_written_before() {
        let mut series = Series::new();
        series.record(pending("a", "x"), at(0));
        series.record(pending("a", "x"), at(0));
        for number in 0..CACHE_SIZE - 1 {
            assert_eq!(
                series
                    .record(pending(&format!("p{number}"), "x"), at(1))
                    .len(),
                1
            );
        }
        let written = series.record(pending("last", "x"), at(2));
        assert_eq!(written.len(), 2);
        assert!(written[0].series.is_some());
    }
}
