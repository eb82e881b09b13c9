//! PATCH requests, from the body to the object or the error.

use plimsoll_apiserver::kinds;
use plimsoll_apiserver::machinery::write::{Accepted, PatchType, Request, create, patch};
use plimsoll_apiserver::status::Status;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::recording_server::{
    IDENTITY, UID, admission, answer, cluster, json_body, request, request_for, stored,
};
use crate::validation::comparable;

pub(super) fn check(case: &Value) -> Outcome {
    let before = before(case);
    let written = run(case, before.as_ref());
    let mut got = json!({});
    if let (Ok(accepted), Some(before)) = (&written, &before) {
        let mut unversioned = before.clone();
        unversioned["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap_or(0);
        got["resourceVersionChanged"] = json!(accepted.object != unversioned);
        got["generationDelta"] = json!(generation(&accepted.object) - generation(before));
    }
    let mut want = json!({});
    for (key, value) in answer(written).as_object().unwrap() {
        got[key] = value.clone();
    }
    for key in [
        "code",
        "response",
        "warnings",
        "resourceVersionChanged",
        "generationDelta",
    ] {
        want[key] = case[key].clone();
    }
    compare(&comparable(got, case), &comparable(want, case))
}

fn run(case: &Value, before: Option<&Value>) -> Result<Accepted, Status> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let patch_type = PatchType::from_content_type(text("contentType"))?;
    let request = match (before, text("path")) {
        (Some(before), _) => request_for(before, text("subresource")),
        (None, path) => missing(path),
    };
    let cluster = cluster();
    patch(
        &request,
        patch_type,
        false,
        json_body(&case["patch"].to_string()),
        before,
        IDENTITY,
        &mut admission(&request, &cluster),
    )
}

/// A request for an object that does not exist: `/api/v1/nodes/absent`.
fn missing(path: &str) -> Request<'_> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        ["api", version, rest @ ..] => ("", *version, rest),
        _ => ("", "v1", ["nodes", "any"].as_slice()),
    };
    let (namespace, plural, name) = match rest {
        ["namespaces", namespace, plural, name] => (*namespace, *plural, *name),
        [plural, name] => ("", *plural, *name),
        _ => panic!("{path} names no object"),
    };
    let kind = kinds::by_resource(group, version, plural).unwrap();
    Request {
        name,
        ..request(kind, namespace)
    }
}

/// The live object. The set omits fields that the server sets; if an error quotes the object, they
/// are taken from there.
fn before(case: &Value) -> Option<Value> {
    let mut before = match (case.get("before"), case["path"].as_str()) {
        (Some(before), _) => before.clone(),
        (None, Some(path)) if case["code"] != 404 => empty_node(path),
        _ => return None,
    };
    let message = case.pointer("/response/details/causes/0/message");
    if let Some(object) = message.and_then(Value::as_str).and_then(quoted_object) {
        before["metadata"] = object["metadata"].clone();
        before["metadata"]["uid"] = json!(UID);
    }
    before = stored(&before);
    if case["code"] == 409 {
        before["metadata"]["resourceVersion"] = json!("1711");
    }
    Some(before)
}

/// The node `protonode`, which was created without a spec.
fn empty_node(path: &str) -> Value {
    let request = missing(path);
    let text = json!({"metadata": {"name": request.name}}).to_string();
    let request = Request {
        name: "",
        ..request
    };
    let cluster = cluster();
    let created = create(
        &request,
        json_body(&text),
        IDENTITY,
        &mut admission(&request, &cluster),
    );
    let mut node = created.unwrap().object;
    node["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    node
}

fn quoted_object(message: &str) -> Option<Value> {
    let text = message.strip_prefix("Invalid value: ")?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    serde_json::from_str(&values.next()?.ok()?).ok()
}
