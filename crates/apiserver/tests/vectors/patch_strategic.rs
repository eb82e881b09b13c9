//! Strategic merge patches, before decoding.

use plimsoll_apiserver::machinery::patch::strategic_merge_patch;
use plimsoll_apiserver::machinery::schema::schema;
use plimsoll_testkit::vectors::Outcome;
use serde_json::{Map, Value};

use super::answer;

pub(super) fn check(case: &Value) -> Outcome {
    let name = case["kind"].as_str().expect("a kind");
    let (version, name) = schema()
        .kinds()
        .find(|(_, kind)| *kind == name)
        .expect("a known kind");
    let kind = schema().kind(version, name).expect("the kind just found");
    let object = |key: &str| -> Map<String, Value> {
        serde_json::from_value(case[key].clone()).expect("an object")
    };
    let result = strategic_merge_patch(kind, object("original"), object("patch"));
    answer::compare(
        case,
        result.map(Value::Object).map_err(|error| error.to_string()),
    )
}
