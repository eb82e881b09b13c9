//! `api/defaulting-scheme.json`: the cases that are admission's.

use plimsoll_testkit::vectors::Outcome;
use serde_json::Value;

use crate::{daemon_pod, limit_range_defaults};

pub(crate) fn applies(case: &Value) -> bool {
    daemon_pod::applies(case) || limit_range_defaults::applies(case)
}

pub(crate) fn check(case: &Value) -> Outcome {
    if daemon_pod::applies(case) {
        daemon_pod::check(case)
    } else {
        limit_range_defaults::check(case)
    }
}
