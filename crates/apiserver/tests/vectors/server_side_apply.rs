//! Sequences of writes by several managers to one object.

use plimsoll_apiserver::machinery::apply::FieldManager;
use plimsoll_apiserver::machinery::patch::{
    FieldValidation, PatchType, apply_patch, check_identity,
};
use plimsoll_apiserver::machinery::status::Status;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use super::stand_in;

const NOW: &str = "2026-01-01T00:00:00Z";

/// Options and resource versions are checked elsewhere.
pub(super) fn applies(case: &Value) -> bool {
    let steps = case["steps"].as_array().expect("steps");
    steps.iter().all(|step| {
        step["manager"] != "" && step.pointer("/body/metadata/resourceVersion").is_none()
    })
}

pub(super) fn check(case: &Value) -> Outcome {
    let mut stored: Option<Value> = None;
    let mut problems = Vec::new();
    for (index, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
        let (code, answer) = match run(case, step, &stored) {
            Ok(object) => {
                let code = if stored.is_none() { 201 } else { 200 };
                stored = Some(object.clone());
                (code, object)
            }
            Err(status) => (status.code, status.to_json()),
        };
        let got = json!({"code": code, "response": without_times(answer)});
        let want =
            json!({"code": step["code"], "response": without_times(step["response"].clone())});
        if let Err(lines) = compare(&got, &want) {
            problems.extend(lines.into_iter().map(|line| format!("step {index} {line}")));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn run(case: &Value, step: &Value, stored: &Option<Value>) -> Result<Value, Status> {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let live = stored.as_ref();
    let body = &step["body"];
    let version = live.unwrap_or(body)["apiVersion"]
        .as_str()
        .expect("a version");
    let kind = case["kind"].as_str().expect("a kind");
    let manager = FieldManager::new(version, kind, text("sub")).expect("a known kind");
    let (subresource, name) = (text("sub"), text("manager"));
    match text("op") {
        "get" => Ok(live.expect("the object was created").clone()),
        "create" => {
            let mut object = manager.update(None, stand_in::read(body), name, NOW);
            stand_in::admit_create(&mut object);
            Ok(object)
        }
        "apply" => {
            let force = step["force"] == true;
            let mut object = manager.apply(live, body, name, force, NOW)?;
            stand_in::default(&mut object);
            match live {
                None => stand_in::admit_create(&mut object),
                Some(live) => stand_in::admit_update(&mut object, live, subresource),
            }
            Ok(object)
        }
        "update" => {
            let live = live.expect("the object was created");
            let mut object = stand_in::read(body);
            object = manager.update(Some(live), object, name, NOW);
            stand_in::admit_update(&mut object, live, subresource);
            Ok(object)
        }
        "patch" => {
            let live = live.expect("the object was created");
            let header = match text("ct") {
                "json" => "application/json-patch+json",
                "merge" => "application/merge-patch+json",
                _ => "application/strategic-merge-patch+json",
            };
            let patched = apply_patch(
                stand_in::struct_of(live),
                PatchType::from_content_type(header)?,
                live,
                body.to_string().as_bytes(),
                FieldValidation::Warn,
            )?;
            let mut object = patched.object;
            let namespace = live["metadata"]["namespace"].as_str().unwrap_or_default();
            check_identity(
                &mut object,
                namespace,
                case["name"].as_str().expect("a name"),
            )?;
            stand_in::default(&mut object);
            object = manager.update(Some(live), object, name, NOW);
            stand_in::admit_update(&mut object, live, subresource);
            Ok(object)
        }
        op => panic!("unknown op {op}"),
    }
}

/// Times are the server's: the set has none of entries, and those of conditions differ.
fn without_times(mut answer: Value) -> Value {
    for (list, time) in [
        ("/metadata/managedFields", "time"),
        ("/status/conditions", "lastTransitionTime"),
    ] {
        let items = answer.pointer_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            item.as_object_mut().expect("an object").remove(time);
        }
    }
    answer
}
