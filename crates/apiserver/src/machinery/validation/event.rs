//! Events of both groups.

use k8s_openapi::api::core::v1::{Event as CoreEvent, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use plimsoll_core::object::syntax::check_label_key;

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_subdomain};
use super::path::Path;
use super::problems::{Problems, api, json};
use super::text;

const MAX_CHARACTERS: usize = 128;
const MAX_NOTE_CHARACTERS: usize = 1024;
const OTHER_NAMESPACE: &str = "does not match event.namespace";

/// The rules that both groups share, under different names.
struct Common<'a> {
    meta: &'a ObjectMeta,
    regarding: Option<&'a ObjectReference>,
    event_time: Option<&'a MicroTime>,
    controller_field: &'static str,
    controller: &'a str,
    instance: &'a str,
    action: &'a str,
    reason: &'a str,
    note: &'a str,
}

pub(super) fn validate(event: &CoreEvent, problems: &mut Problems) {
    let common = Common {
        meta: &event.metadata,
        regarding: Some(&event.involved_object),
        event_time: event.event_time.as_ref(),
        controller_field: "reportingComponent",
        controller: text(&event.reporting_component),
        instance: text(&event.reporting_instance),
        action: text(&event.action),
        reason: text(&event.reason),
        note: text(&event.message),
    };
    check_common(&common, problems);
}

pub(super) fn validate_v1(event: &Event, problems: &mut Problems) {
    check_v1_common(event, problems);
    metadata::check(
        &event.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    check_series(event, problems);
    if event.event_time.is_none() {
        problems.required(&Path::new("eventTime"), "");
    }
    let kind = text(&event.type_);
    if kind != "Normal" && kind != "Warning" {
        problems.invalid(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    let source = event.deprecated_source.as_ref();
    let has_source =
        source.is_some_and(|s| !text(&s.component).is_empty() || !text(&s.host).is_empty());
    for (field, is_set) in [
        ("firstTimestamp", event.deprecated_first_timestamp.is_some()),
        ("lastTimestamp", event.deprecated_last_timestamp.is_some()),
        ("count", event.deprecated_count.unwrap_or_default() != 0),
        ("source", has_source),
    ] {
        if is_set {
            problems.invalid(&Path::new(field), "", "needs to be unset");
        }
    }
}

pub(super) fn validate_v1_update(new: &Event, old: &Event, problems: &mut Problems) {
    check_v1_common(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if new.series != old.series {
        check_series(new, problems);
    }
    if new.regarding != old.regarding {
        let shown = api("core.ObjectReference", &new.regarding);
        problems.invalid(&Path::new("involvedObject"), shown, "field is immutable");
    }
    let immutable =
        |field: &str, new: &Option<String>, old: &Option<String>, problems: &mut Problems| {
            problems.immutable(&Path::new(field), &text(new), &text(old));
        };
    immutable("reason", &new.reason, &old.reason, problems);
    immutable("message", &new.note, &old.note, problems);
    if new.deprecated_source != old.deprecated_source {
        problems.invalid(
            &Path::new("source"),
            json(&new.deprecated_source),
            "field is immutable",
        );
    }
    let (first, old_first) = (
        &new.deprecated_first_timestamp,
        &old.deprecated_first_timestamp,
    );
    problems.immutable(&Path::new("firstTimestamp"), first, old_first);
    let (last, old_last) = (
        &new.deprecated_last_timestamp,
        &old.deprecated_last_timestamp,
    );
    problems.immutable(&Path::new("lastTimestamp"), last, old_last);
    let count = |event: &Event| event.deprecated_count.unwrap_or_default();
    problems.immutable(&Path::new("count"), &count(new), &count(old));
    immutable("reason", &new.reason, &old.reason, problems);
    immutable("type", &new.type_, &old.type_, problems);
    problems.immutable(&Path::new("eventTime"), &new.event_time, &old.event_time);
    immutable("action", &new.action, &old.action, problems);
    problems.immutable(&Path::new("related"), &new.related, &old.related);
    let (controller, old_controller) = (&new.reporting_controller, &old.reporting_controller);
    immutable("reportingController", controller, old_controller, problems);
    let (instance, old_instance) = (&new.reporting_instance, &old.reporting_instance);
    immutable("reportingInstance", instance, old_instance, problems);
}

fn check_v1_common(event: &Event, problems: &mut Problems) {
    let common = Common {
        meta: &event.metadata,
        regarding: event.regarding.as_ref(),
        event_time: event.event_time.as_ref(),
        controller_field: "reportingController",
        controller: text(&event.reporting_controller),
        instance: text(&event.reporting_instance),
        action: text(&event.action),
        reason: text(&event.reason),
        note: text(&event.note),
    };
    check_common(&common, problems);
}

fn check_series(event: &Event, problems: &mut Problems) {
    if event.series.as_ref().is_some_and(|series| series.count < 2) {
        problems.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
}

/// Matches v1.36 pkg/apis/core/validation/events.go, `legacyValidateEvent`.
fn check_common(event: &Common<'_>, problems: &mut Problems) {
    let namespace = text(&event.meta.namespace);
    let regarding = event
        .regarding
        .map(|regarding| text(&regarding.namespace))
        .unwrap_or_default();
    let is_fine = match (event.event_time, regarding) {
        (None, "") => ["", "default"].contains(&namespace),
        (None, regarding) => regarding == namespace,
        (Some(_), "") => ["default", "kube-system"].contains(&namespace),
        (Some(_), _) => true,
    };
    if !is_fine {
        let path = Path::new("involvedObject");
        problems.invalid(&path.child("namespace"), regarding, OTHER_NAMESPACE);
    }
    if event.event_time.is_some() {
        let path = Path::new(event.controller_field);
        problems.require_text(&path, event.controller);
        problems.invalid_each(&path, event.controller, check_label_key(event.controller));
        for (field, value) in [
            ("reportingInstance", event.instance),
            ("action", event.action),
            ("reason", event.reason),
        ] {
            problems.require_text(&Path::new(field), value);
            check_length(field, value, MAX_CHARACTERS, problems);
        }
        check_length("message", event.note, MAX_NOTE_CHARACTERS, problems);
    }
    problems.invalid_each(&Path::new("namespace"), namespace, dns_subdomain(namespace));
}

fn check_length(field: &str, value: &str, most: usize, problems: &mut Problems) {
    if value.len() > most {
        problems.invalid(
            &Path::new(field),
            "",
            format!("can have at most {most} characters"),
        );
    }
}
