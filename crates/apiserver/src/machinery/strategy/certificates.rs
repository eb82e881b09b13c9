//! The strategy of certificate signing requests.
//!
//! Matches v1.36 pkg/registry/certificates/certificates/strategy.go. Fields that depend on the
//! caller or on the time are set by [`set_requester`] and [`stamp_conditions`] after validation: no
//! rule uses them.

use serde_json::{Value, json};

use super::{Object, child, copy, root, set};
use crate::auth::identity::User;
use crate::machinery::validation::Part;

/// The caller cannot set the requester or the decision.
pub(super) fn prepare_for_create(object: &mut Value) {
    let spec = child(root(object), "spec");
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    object["status"] = json!({});
}

pub(super) fn prepare_for_update(part: Part, new: &mut Value, old: &Value) {
    copy(new, old, "spec");
    match part {
        Part::Approval => {
            let conditions = new["status"]["conditions"].clone();
            copy(new, old, "status");
            set(child(root(new), "status"), "conditions", conditions);
        }
        Part::Status => {
            keep_conditions(new, old, "Approved");
            keep_conditions(new, old, "Denied");
        }
        _ => copy(new, old, "status"),
    }
}

/// Conditions of that type are kept. If some were added or removed, they are left for
/// validation to reject.
fn keep_conditions(new: &mut Value, old: &Value, sort: &str) {
    let kept: Vec<&Value> = conditions(old)
        .iter()
        .filter(|condition| condition["type"] == sort)
        .collect();
    let Some(Value::Array(list)) = new.pointer_mut("/status/conditions") else {
        return;
    };
    let places: Vec<&mut Value> = list
        .iter_mut()
        .filter(|condition| condition["type"] == sort)
        .collect();
    if places.len() == kept.len() {
        for (place, condition) in places.into_iter().zip(kept) {
            *place = condition.clone();
        }
    }
}

/// Sets the requester.
pub fn set_requester(csr: &mut Value, user: &User) {
    let spec = child(root(csr), "spec");
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            spec.insert(field.to_owned(), json!(text));
        }
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// Sets the times of conditions. A condition that has not changed keeps its time; `now` is
/// the time in the format of objects.
pub fn stamp_conditions(csr: &mut Value, old: &Value, now: &str) {
    let Some(Value::Array(list)) = csr.pointer_mut("/status/conditions") else {
        return;
    };
    for condition in list.iter_mut().filter_map(Value::as_object_mut) {
        let has = |condition: &Object, field| condition.get(field).is_some_and(|v| !v.is_null());
        if !has(condition, "lastUpdateTime") {
            condition.insert("lastUpdateTime".to_owned(), json!(now));
        }
        if !has(condition, "lastTransitionTime") {
            let same = conditions(old).iter().find(|before| {
                before.get("type") == condition.get("type")
                    && before.get("status") == condition.get("status")
                    && !before["lastTransitionTime"].is_null()
            });
            let time = same.map_or_else(|| json!(now), |same| same["lastTransitionTime"].clone());
            condition.insert("lastTransitionTime".to_owned(), time);
        }
    }
}

fn conditions(csr: &Value) -> &[Value] {
    let list = csr.pointer("/status/conditions").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requester_is_always_the_caller() {
        let mut csr = json!({
            "spec": {"username": "root", "groups": ["system:masters"], "signerName": "a.b/c"},
            "status": {"conditions": [{"type": "Approved"}]},
        });
        prepare_for_create(&mut csr);
        let mut user = User::new("alice", &["dev"]);
        user.extra.insert("k".to_owned(), vec!["v".to_owned()]);
        set_requester(&mut csr, &user);
        assert_eq!(
            csr,
            json!({
                "spec": {
                    "username": "alice", "groups": ["dev"], "extra": {"k": ["v"]},
                    "signerName": "a.b/c",
                },
                "status": {},
            })
        );
    }

    #[test]
    fn each_path_writes_its_own_part() {
        let approved = json!({"type": "Approved", "status": "True", "reason": "r"});
        let old = json!({"spec": {"signerName": "a.b/c"}, "status": {"conditions": [approved]}});
        let given = json!({
            "spec": {"signerName": "x.y/z"},
            "status": {
                "certificate": "YQ==",
                "conditions": [{"type": "Approved", "status": "True", "reason": "other"}],
            },
        });
        let written = |part| {
            let mut new = given.clone();
            prepare_for_update(part, &mut new, &old);
            new
        };
        assert_eq!(written(Part::Main), old);
        let status = written(Part::Status);
        assert_eq!(status["spec"], old["spec"]);
        assert_eq!(status["status"]["certificate"], "YQ==");
        assert_eq!(status["status"]["conditions"], old["status"]["conditions"]);
        let approval = written(Part::Approval);
        assert_eq!(approval["status"].get("certificate"), None);
        assert_eq!(approval["status"]["conditions"][0]["reason"], "other");
    }

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change() {
        let old = json!({"status": {"conditions": [
            {"type": "Approved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]}});
        let mut new = json!({"status": {"conditions": [
            {"type": "Approved", "status": "True"}, {"type": "Failed", "status": "True"},
        ]}});
        stamp_conditions(&mut new, &old, "2026-01-02T00:00:00Z");
        let conditions = &new["status"]["conditions"];
        assert_eq!(conditions[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(conditions[0]["lastUpdateTime"], "2026-01-02T00:00:00Z");
        assert_eq!(conditions[1]["lastTransitionTime"], "2026-01-02T00:00:00Z");
    }
}
