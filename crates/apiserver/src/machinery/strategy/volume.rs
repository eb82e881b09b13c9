//! The strategy of PersistentVolumes and PersistentVolumeClaims.
//!
//! Matches v1.36 pkg/registry/core/persistentvolume{,claim}/strategy.go and
//! pkg/api/persistentvolumeclaim/util.go.

use serde_json::{Value, json};

use super::{Object, child, root};

/// A data source has an old and a new field. Unsupported values of the old one are dropped.
pub(super) fn match_data_sources(claim: &mut Value, old: Option<&Value>) {
    let had_source = old.is_some_and(|old| {
        let spec = &old["spec"];
        !spec["dataSource"].is_null() || !spec["dataSourceRef"].is_null()
    });
    let spec = child(root(claim), "spec");
    let has_reference = is_given(spec, "dataSourceRef");
    if !had_source && !has_reference && !spec.get("dataSource").is_some_and(is_claim_or_snapshot) {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let source = source.clone();
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(reference)) if text(reference, "namespace").is_empty() => {
            let mut source = reference.clone();
            root(&mut source).remove("namespace");
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

fn is_given(object: &Object, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

/// Sets the time of a change of the phase.
pub(super) fn keep_transition_time(new: &mut Value, old: &Value, now: &str) {
    let is_same = text(&new["status"], "phase") == text(&old["status"], "phase");
    let before = old["status"]["lastPhaseTransitionTime"].clone();
    let status = child(root(new), "status");
    let given = status.get("lastPhaseTransitionTime").cloned();
    let given = given.unwrap_or_default();
    if is_same && given.is_null() && !before.is_null() {
        status.insert("lastPhaseTransitionTime".to_owned(), before);
    } else if !is_same && (given.is_null() || given == before) {
        status.insert("lastPhaseTransitionTime".to_owned(), json!(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_source_and_data_source_ref_are_synchronized() {
        let mut claim =
            json!({"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}});
        match_data_sources(&mut claim, None);
        assert_eq!(claim["spec"]["dataSourceRef"], claim["spec"]["dataSource"]);
        let mut claim = json!({"spec": {"dataSource": {"kind": "Pod", "name": "a"}}});
        match_data_sources(&mut claim, None);
        assert_eq!(claim, json!({"spec": {}}));
    }
}
