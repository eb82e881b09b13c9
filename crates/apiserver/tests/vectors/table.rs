//! `api/table.json`.

use plimsoll_apiserver::machinery::table::{IncludeObject, MetaVersion, Options, table};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let options = Options {
        now: Timestamp::from_rfc3339(text("now")).unwrap(),
        include_object: IncludeObject::None,
        version: MetaVersion::V1,
        has_headers: true,
    };
    let mut objects = case["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        move_micro_times(object, options.now);
    }
    let api_version = objects[0]["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let mut got = table(group, text("kind"), &json!({"items": objects}), &options);
    for column in got["columnDefinitions"].as_array_mut().unwrap() {
        column.as_object_mut().unwrap().remove("description");
    }
    for row in got["rows"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("object");
    }
    let got = json!({"columnDefinitions": got["columnDefinitions"], "rows": got["rows"]});
    let want = json!({"columnDefinitions": case["columnDefinitions"], "rows": case["rows"]});
    compare(&got, &want)
}

/// The recorder moved the times of its objects along with the clock, but not those with digits
/// behind the second: their ages were counted to the day of the recording.
const RECORDED_AT: &str = "2026-11-15T08:00:00Z";

fn move_micro_times(value: &mut Value, now: Timestamp) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|v| move_micro_times(v, now)),
        Value::Array(items) => items.iter_mut().for_each(|v| move_micro_times(v, now)),
        Value::String(text) if text.ends_with('Z') && text.contains('.') => {
            let Some(time) = Timestamp::from_rfc3339(text) else {
                return;
            };
            let recorded_at = Timestamp::from_rfc3339(RECORDED_AT).unwrap();
            let late = recorded_at.as_nanos() - now.as_nanos();
            *text = Timestamp::from_nanos(time.as_nanos() - late).to_string();
        }
        _ => {}
    }
}
