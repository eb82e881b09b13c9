//! The events of a pod.

use k8s_openapi::api::core::v1::Event;
use plimsoll_core::object::timestamp::Timestamp;

use super::report::EventRow;

/// When it last happened.
pub fn timestamp(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let micro = series.and_then(|series| series.last_observed_time.as_ref());
    let micro = micro.map(|time| &time.0);
    let seconds = event.last_timestamp.as_ref().map(|time| &time.0);
    let first = event.event_time.as_ref().map(|time| &time.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|t| &t.0);
    let time = micro.or(seconds).or(first).or(created)?;
    Timestamp::from_rfc3339(&time.to_string())
}

/// When it last happened, as the API writes times.
pub(crate) fn time_of(event: &Event) -> Option<String> {
    timestamp(event).map(whole_seconds)
}

/// A time as the API writes it.
pub(crate) fn whole_seconds(time: Timestamp) -> String {
    time.to_api_seconds().0.to_string()
}

/// The latest event of a reason.
pub(crate) fn latest<'a>(events: &'a [Event], reason: &str) -> Option<&'a Event> {
    let with_reason = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some(reason));
    with_reason.max_by_key(|event| timestamp(event))
}

/// The uid of the pod in the latest event.
pub(crate) fn latest_uid(events: &[Event]) -> Option<String> {
    let latest = events.iter().max_by_key(|event| timestamp(event))?;
    latest.involved_object.uid.clone()
}

/// The node that the pod was assigned to, or that reported an event of the pod.
pub fn node_of(events: &[Event]) -> Option<String> {
    let assigned = latest(events, "Scheduled").and_then(|event| {
        let message = event.message.as_deref()?;
        message.rsplit(" to ").next().map(str::to_owned)
    });
    assigned.or_else(|| {
        let hosts = events.iter().filter_map(|event| {
            let host = event.source.as_ref()?.host.clone()?;
            Some((timestamp(event), host)).filter(|(_, host)| !host.is_empty())
        });
        hosts.max().map(|(_, host)| host)
    })
}

/// The position of an event in the lifecycle of a pod. Kubelets record whole seconds and schedulers
/// fractions, so times alone would order events of one second wrongly.
fn step(event: &Event) -> usize {
    const STEPS: [&str; 7] = [
        "FailedScheduling",
        "Scheduled",
        "Pulling",
        "Pulled",
        "Created",
        "Started",
        "Unhealthy",
    ];
    let reason = event.reason.as_deref().unwrap_or_default();
    let step = STEPS.iter().position(|step| *step == reason);
    step.unwrap_or(STEPS.len())
}

/// The events as rows, the latest last.
pub(crate) fn rows(events: &[Event]) -> Vec<EventRow> {
    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by_key(|event| {
        let at = timestamp(event);
        let second = at.map(|at| at.as_nanos().div_euclid(1_000_000_000));
        (second, step(event), at)
    });
    let row = |event: &Event| {
        let source = event.source.as_ref();
        let component = source.and_then(|source| source.component.clone());
        let component = component.filter(|component| !component.is_empty());
        EventRow {
            at: time_of(event),
            reason: event.reason.clone().unwrap_or_default(),
            from: component
                .or_else(|| event.reporting_component.clone())
                .unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
        }
    };
    sorted.into_iter().map(row).collect()
}
