//! Sequences of writes by several managers to one object.

use plimsoll_apiserver::http::query::{PatchOptions, Query};
use plimsoll_apiserver::machinery::write::{Accepted, PatchType, Request, create, patch, update};
use plimsoll_apiserver::status::Status;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::recording_server::{
    IDENTITY, admission, answer, cluster, json_body, request_for, without_times,
};

/// The version of a new object. It is incremented by each write that changes something.
const FIRST_VERSION: u64 = 1000;

pub(super) fn check(case: &Value) -> Outcome {
    let mut live: Option<Value> = None;
    let mut version = FIRST_VERSION;
    let mut problems = Vec::new();
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let written = run(step, live.as_ref());
        if let Ok(accepted) = &written {
            let mut object = accepted.object.clone();
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            if live.as_ref() != Some(&object) {
                version += 1;
                object["metadata"]["resourceVersion"] = json!(version.to_string());
            }
            live = Some(object);
        }
        let want = json!({"code": step["code"], "response": step["response"]});
        let mut got = answer(written);
        got.as_object_mut().unwrap().remove("warnings");
        if let Err(lines) = compare(&without_times(got), &without_times(want)) {
            problems.extend(lines.into_iter().map(|line| format!("step {index} {line}")));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn run(step: &Value, live: Option<&Value>) -> Result<Accepted, Status> {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let body = &step["body"];
    if text("op") == "get" {
        return Ok(Accepted {
            object: live.unwrap().clone(),
            warnings: Vec::new(),
            is_new: false,
            resource_version: None,
        });
    }
    let request = Request {
        manager: text("manager"),
        ..request_for(live.unwrap_or(body), text("sub"))
    };
    let cluster = cluster();
    let admission = &mut admission(&request, &cluster);
    let bytes = body.to_string();
    let body = json_body(&bytes);
    let patch_type = match (text("op"), text("ct")) {
        ("create", _) => {
            let request = Request {
                name: "",
                ..request
            };
            return create(&request, body, IDENTITY, admission);
        }
        ("update", _) => return update(&request, body, live.unwrap(), admission),
        ("apply", _) => PatchType::Apply,
        (_, "json") => PatchType::Json,
        (_, "merge") => PatchType::Merge,
        _ => PatchType::Strategic,
    };
    let mut query = format!("fieldManager={}", text("manager"));
    if step["force"] == true {
        query.push_str("&force=true");
    }
    let options = PatchOptions::from_query(&Query::parse(&query), patch_type)?;
    patch(
        &request,
        patch_type,
        options.force,
        body,
        live,
        IDENTITY,
        admission,
    )
}
