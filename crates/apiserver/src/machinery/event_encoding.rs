//! Events in their two encodings: `v1`, which is stored, and `events.k8s.io/v1`.
//!
//! Matches v1.36 pkg/apis/events/v1/conversion.go: the newer group renamed some fields and kept
//! the old meaning of others under `deprecated…`.

use serde_json::Value;

const CORE: &str = "v1";
const EVENTS: &str = "events.k8s.io/v1";

/// The names in `v1` and in `events.k8s.io/v1`, where they differ.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Converts an event of `events.k8s.io/v1` to `v1`; any other is left as it is.
pub fn to_core(event: &mut Value) {
    rename(
        event,
        EVENTS,
        CORE,
        RENAMED.map(|(core, events)| (events, core)),
    );
}

/// Converts an event of `v1` to `events.k8s.io/v1`; any other is left as it is.
pub fn to_events(event: &mut Value) {
    rename(event, CORE, EVENTS, RENAMED);
}

/// Whether events are served in that version.
pub(crate) fn is_event_version(api_version: &str) -> bool {
    api_version == CORE || api_version == EVENTS
}

/// The name of a field of either encoding in the one of that version.
pub(crate) fn name_in<'a>(name: &'a str, api_version: &str) -> &'a str {
    let names = RENAMED
        .iter()
        .find(|(core, events)| *core == name || *events == name);
    match names {
        Some((core, _)) if api_version == CORE => core,
        Some((_, events)) => events,
        None => name,
    }
}

fn rename(event: &mut Value, from: &str, to: &str, names: [(&str, &str); 7]) {
    let Some(fields) = event.as_object_mut() else {
        return;
    };
    if fields.get("apiVersion").and_then(Value::as_str) != Some(from) {
        return;
    }
    for (old, new) in names {
        if let Some(value) = fields.remove(old) {
            fields.insert(new.to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), to.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_round_trips_between_encodings() {
        let stored = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Scheduled", "message": "ok",
            "source": {"component": "kubelet"}, "count": 3, "type": "Normal",
            "reportingComponent": "kubelet", "lastTimestamp": "2026-01-01T00:00:00Z"});
        let mut event = stored.clone();
        to_events(&mut event);
        assert_eq!(event["apiVersion"], "events.k8s.io/v1");
        assert_eq!(event["regarding"], stored["involvedObject"]);
        assert_eq!(event["deprecatedCount"], 3);
        assert!(event.get("message").is_none());
        to_core(&mut event);
        assert_eq!(event, stored);
    }

    #[test]
    fn event_in_target_encoding_is_unchanged() {
        let stored = json!({"apiVersion": "v1", "note": "not ours"});
        let mut event = stored.clone();
        to_core(&mut event);
        assert_eq!(event, stored);
    }
}
