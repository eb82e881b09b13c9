//! The annotations in which a deployment keeps state on its sets and on itself.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::desired_state::DesiredState;

/// Which version of the template this is, counted from one.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The revisions a set has been before, when it is rolled back to.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The deployment's size when the set was last scaled: distinguishes scaling from rolling out.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// That size with the surge: the whole of which the set has its proportion.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// The revision to roll back to, as clients of an early API request it.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// The history holds about a hundred revisions.
const LONGEST_HISTORY: usize = 2000;

const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
];

/// The value of an annotation.
pub(super) fn get<'a>(object: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let annotations = object.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// Sets an annotation; returns whether that changed anything.
pub(super) fn set(object: &mut ObjectMeta, key: &str, value: String) -> bool {
    let annotations = object.annotations.get_or_insert_default();
    if annotations.get(key) == Some(&value) {
        return false;
    }
    annotations.insert(key.to_owned(), value);
    true
}

/// The revision of a set: zero where none is given, `None` where it is no number.
pub(super) fn revision(object: &ObjectMeta) -> Option<i64> {
    get(object, REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// A size remembered on a set, if it is one.
pub(super) fn remembered_size(object: &ObjectMeta, key: &str) -> Option<i32> {
    let text = get(object, key).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    text.parse().ok()
}

/// Remembers the deployment's size on a set.
pub(super) fn remember_sizes(object: &mut ObjectMeta, wanted: &DesiredState) -> bool {
    let desired = set(object, DESIRED_REPLICAS, wanted.replicas.to_string());
    let max = set(object, MAX_REPLICAS, wanted.max_total().to_string());
    desired || max
}

/// Brings the newest set's annotations up to date: those of the deployment, and its revision. The
/// revision only ever grows; one that it replaces goes to the history.
pub(super) fn sync_newest(
    deployment: &ObjectMeta,
    set_meta: &mut ObjectMeta,
    revision: i64,
) -> bool {
    let mut has_changed = false;
    for (key, value) in deployment.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            has_changed |= set(set_meta, key, value.clone());
        }
    }
    let old = get(set_meta, REVISION).map(str::to_owned);
    let old_number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            // A revision that another client set; what was copied so far is not written either.
            Err(_) => return false,
        },
    };
    if old_number < revision {
        set(set_meta, REVISION, revision.to_string());
        if let Some(old) = old {
            append_history(set_meta, &old);
        }
        has_changed = true;
    }
    has_changed
}

/// Appends a revision, and drops the oldest ones that no longer fit.
fn append_history(object: &mut ObjectMeta, revision: &str) {
    let known = get(object, REVISION_HISTORY).unwrap_or_default();
    if known.is_empty() || known.starts_with(',') {
        set(object, REVISION_HISTORY, revision.to_owned());
        return;
    }
    let mut parts: Vec<&str> = known.split(',').collect();
    let mut length = known.len() + revision.len() + 1;
    let mut dropped = 0;
    while length > LONGEST_HISTORY && dropped < parts.len() {
        length -= parts[dropped].len() + 1;
        dropped += 1;
    }
    if length <= LONGEST_HISTORY {
        parts.drain(..dropped);
        parts.push(revision);
        let history = parts.join(",");
        set(object, REVISION_HISTORY, history);
    }
}

/// The annotations of a deployment that goes back to a set: the set's, but its own where they are
/// not copied.
pub(super) fn restored(deployment: &ObjectMeta, set_meta: &ObjectMeta) -> BTreeMap<String, String> {
    let is_kept = |key: &String| NOT_COPIED.contains(&key.as_str());
    let own = deployment.annotations.iter().flatten();
    let sets = set_meta.annotations.iter().flatten();
    own.filter(|(key, _)| is_kept(key))
        .chain(sets.filter(|(key, _)| !is_kept(key)))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn meta(annotations: Value) -> ObjectMeta {
        serde_json::from_value(json!({ "annotations": annotations })).unwrap()
    }

    #[test]
    fn the_newest_set_takes_annotations_and_a_growing_revision() {
        let deployment = meta(json!({"a": "1", REVISION: "9", ROLLBACK_TO: "3"}));
        let mut set = meta(json!({REVISION: "2", "b": "2"}));
        assert!(sync_newest(&deployment, &mut set, 4));
        assert_eq!(
            set,
            meta(json!({"a": "1", "b": "2", REVISION: "4", REVISION_HISTORY: "2"}))
        );
        assert!(!sync_newest(&deployment, &mut set, 4));
        assert!(!sync_newest(&deployment, &mut set, 3));
        assert!(sync_newest(&deployment, &mut set, 7));
        assert_eq!(get(&set, REVISION_HISTORY), Some("2,4"));
    }

    #[test]
    fn the_history_drops_its_oldest_parts() {
        let long: Vec<String> = (100_000..100_286).map(|n| n.to_string()).collect();
        let mut set = meta(json!({REVISION: "77", REVISION_HISTORY: long.join(",")}));
        sync_newest(&ObjectMeta::default(), &mut set, 78);
        let history = get(&set, REVISION_HISTORY).unwrap();
        assert!(history.starts_with("100001,") && history.ends_with(",100285,77"));
        assert!(history.len() <= LONGEST_HISTORY);
    }

    #[test]
    fn sizes_are_digits_within_range() {
        for (text, expected) in [
            ("5", Some(5)),
            ("-5", None),
            ("+5", None),
            ("2147483648", None),
            ("", None),
        ] {
            assert_eq!(
                remembered_size(&meta(json!({DESIRED_REPLICAS: text})), DESIRED_REPLICAS),
                expected
            );
        }
    }

    #[test]
    fn rollback_restores_annotations_of_the_revision() {
        let deployment = meta(json!({"cause": "edit", REVISION: "2"}));
        let set = meta(json!({"cause": "create", REVISION: "1", MAX_REPLICAS: "4"}));
        let expected = meta(json!({"cause": "create", REVISION: "2"}));
        assert_eq!(Some(restored(&deployment, &set)), expected.annotations);
    }
}
