//! Compares a pure function's result with `ok`, `result` and `error` of a case.

use plimsoll_testkit::vectors::{self, Outcome};
use serde_json::{Value, json};

pub(super) fn compare(case: &Value, answer: Result<Value, String>) -> Outcome {
    let got = match answer {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(error) => json!({"ok": false, "error": error}),
    };
    let want = match case["ok"].as_bool() {
        Some(true) => json!({"ok": true, "result": case["result"]}),
        _ => json!({"ok": false, "error": case["error"]}),
    };
    vectors::compare(&got, &want)
}
