//! `api/defaulting-scheme.json`: decoding and the registered defaults.

use plimsoll_apiserver::machinery::decoding::{BodyFormat, DecodeError, FieldValidation, decode};
use plimsoll_apiserver::machinery::defaulting::apply_defaults;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::recording_server::kind_of;

/// The pods of DaemonSets are core's, whose own suite has them.
pub(crate) fn applies(case: &Value) -> bool {
    case["op"] != "daemonPod"
}

pub(crate) fn check(case: &Value) -> Outcome {
    let input = &case["input"];
    let kind = kind_of(input);
    let body = input.to_string();
    let got = match decode(
        body.as_bytes(),
        BodyFormat::Json,
        kind.group_version_kind(),
        FieldValidation::Ignore,
    ) {
        Ok(mut decoded) => {
            apply_defaults(kind.group, kind.kind, &mut decoded.object);
            json!({"ok": true, "output": decoded.object})
        }
        Err(DecodeError::Object { reason, .. }) => json!({"ok": false, "error": reason}),
        Err(other) => json!({"ok": false, "error": other.to_string()}),
    };
    let want = json!({"ok": case["ok"], "output": case["output"], "error": case["error"]});
    compare(&got, &want)
}
