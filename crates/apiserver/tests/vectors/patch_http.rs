//! PATCH requests, from the body to the object or the refusal.

use plimsoll_apiserver::machinery::patch::{
    FieldValidation, PatchType, Patched, apply_patch, check_identity,
};
use plimsoll_apiserver::machinery::status::Status;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use super::stand_in;

/// Validation, and objects that only the recording server had, are tested elsewhere.
pub(super) fn applies(case: &Value) -> bool {
    let is_validation = case["code"] == 422 && case.pointer("/response/details/kind").is_some();
    !is_validation && case.get("path").is_none()
}

pub(super) fn check(case: &Value) -> Outcome {
    let before = before(case);
    let got = match run(case, &before) {
        Ok(patched) => {
            let generation =
                |object: &Value| object["metadata"]["generation"].as_i64().unwrap_or(0);
            json!({
                "code": 200,
                "response": patched.object,
                "warnings": patched.warnings,
                "resourceVersionChanged": patched.object != before,
                "generationDelta": generation(&patched.object) - generation(&before),
            })
        }
        Err(status) => json!({"code": status.code, "response": status.to_json()}),
    };
    // Go would have escaped the angle brackets that the set puts around the server's ids.
    let text = case.to_string().replace("<uid>", "some-uid");
    let mut want: Value = serde_json::from_str(&text).expect("a case");
    for key in [
        "id",
        "from",
        "before",
        "contentType",
        "subresource",
        "patch",
    ] {
        want.as_object_mut().expect("a case").remove(key);
    }
    compare(&got, &want)
}

fn run(case: &Value, before: &Value) -> Result<Patched, Status> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let patch_type = PatchType::from_content_type(text("contentType"))?;
    let mut patched = apply_patch(
        stand_in::struct_of(before),
        patch_type,
        before,
        case["patch"].to_string().as_bytes(),
        FieldValidation::Warn,
    )?;
    let own = |key: &str| before["metadata"][key].as_str().unwrap_or_default();
    check_identity(&mut patched.object, own("namespace"), own("name"))?;
    stand_in::default(&mut patched.object);
    stand_in::admit_update(&mut patched.object, before, text("subresource"));
    patched.warnings = patched
        .warnings
        .iter()
        .map(|text| format!("299 - {text:?}"))
        .collect();
    Ok(patched)
}

/// The live object. The set leaves marks of the server out; where a refusal quotes the object they
/// are taken from there.
fn before(case: &Value) -> Value {
    let Some(before) = case.get("before") else {
        // Content types are refused before the object matters.
        return json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "any"}});
    };
    let mut before = before.clone();
    let message = case.pointer("/response/details/causes/0/message");
    if let Some(object) = message.and_then(Value::as_str).and_then(quoted_object) {
        before["metadata"] = object["metadata"].clone();
        before["metadata"]["uid"] = json!("some-uid");
    }
    stand_in::read(&before)
}

fn quoted_object(message: &str) -> Option<Value> {
    let text = message.strip_prefix("Invalid value: ")?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    serde_json::from_str(&values.next()?.ok()?).ok()
}
