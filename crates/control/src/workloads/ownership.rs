//! Controllers of objects: references to controllers, and the claim of a controller on objects.
//!
//! Matches v1.36 pkg/controller/controller_ref_manager.go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use plimsoll_core::object::selector::LabelSelector;
use serde_json::{Value, json};

/// The API version and kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerKind {
    /// Group and version, such as `apps/v1`.
    pub api_version: &'static str,
    /// Such as `ReplicaSet`.
    pub kind: &'static str,
}

impl ControllerKind {
    /// A reference that makes the object of this kind the controller of the object that carries it.
    pub fn reference_to(self, controller: &ObjectMeta) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            name: controller.name.clone().unwrap_or_default(),
            uid: controller.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Whether the reference names a controller of this kind; the version does not matter.
    pub fn is_named_by(self, reference: &OwnerReference) -> bool {
        reference.kind == self.kind
            && group_of(&reference.api_version) == group_of(self.api_version)
    }
}

/// The group of an API version; empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The reference to the object's controller.
pub fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    let references = object.owner_references.as_deref().unwrap_or_default();
    references.iter().find(|r| r.controller == Some(true))
}

/// Whether the object's controller is this very one.
pub fn is_controlled_by(object: &ObjectMeta, controller: &ObjectMeta) -> bool {
    controller_of(object).is_some_and(|r| Some(r.uid.as_str()) == controller.uid.as_deref())
}

/// Whether the controller may claim the object, which has no controller or this very one.
pub fn is_claimable(object: &ObjectMeta, controller: &ObjectMeta) -> bool {
    controller_of(object).is_none_or(|r| Some(r.uid.as_str()) == controller.uid.as_deref())
}

/// How a controller treats an object in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is its own.
    Own,
    /// It has no controller and matches: adopt it.
    Adopt,
    /// It is its own, but no longer matches: release it.
    Release,
    /// It is not its business.
    Ignore,
}

/// Whether the selector selects the object.
pub fn is_selected(selector: &LabelSelector, object: &ObjectMeta) -> bool {
    match &object.labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&std::collections::BTreeMap::new()),
    }
}

/// Decides about one object, which the controller owns if it `matches`. A controller that is being
/// deleted takes and releases nothing.
pub fn claim(controller: &ObjectMeta, matches: bool, object: &ObjectMeta) -> Claim {
    let is_leaving = controller.deletion_timestamp.is_some();
    match controller_of(object) {
        Some(reference) if Some(&reference.uid) != controller.uid.as_ref() => Claim::Ignore,
        Some(_) if matches => Claim::Own,
        Some(_) if is_leaving => Claim::Ignore,
        Some(_) => Claim::Release,
        None if is_leaving || !matches || object.deletion_timestamp.is_some() => Claim::Ignore,
        None if object.namespace != controller.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The strategic merge patch that makes `controller` the controller of the object with that uid.
/// A finalizer may come with it.
pub fn adoption_patch(
    controller: &ObjectMeta,
    kind: ControllerKind,
    object_uid: &str,
    finalizer: Option<&str>,
) -> Value {
    let mut metadata = json!({
        "uid": object_uid,
        "ownerReferences": [kind.reference_to(controller)],
    });
    if let Some(finalizer) = finalizer {
        metadata["finalizers"] = json!([finalizer]);
    }
    json!({ "metadata": metadata })
}

/// The strategic merge patch that takes the controller's reference, and its finalizer, away.
pub fn release_patch(controller: &ObjectMeta, object_uid: &str, finalizer: Option<&str>) -> Value {
    let controller_uid = controller.uid.as_deref().unwrap_or_default();
    let mut metadata = json!({
        "uid": object_uid,
        "ownerReferences": [{"$patch": "delete", "uid": controller_uid}],
    });
    if let Some(finalizer) = finalizer {
        metadata["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
    }
    json!({ "metadata": metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    fn selector() -> LabelSelector {
        "app=web".parse().unwrap()
    }

    fn owner(uid: &str) -> Value {
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid, "controller": true}])
    }

    #[test]
    fn claims_follow_owner_selector_and_deletion() {
        let alive = meta(json!({"name": "r", "namespace": "n", "uid": "1"}));
        let leaving = meta(json!({
            "name": "r", "namespace": "n", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z",
        }));
        let (web, db) = (json!({"app": "web"}), json!({"app": "db"}));
        let gone = json!("2026-01-01T00:00:00Z");
        let cases = [
            (
                json!({"labels": web, "ownerReferences": owner("2")}),
                Claim::Ignore,
                Claim::Ignore,
            ),
            (
                json!({"labels": web, "ownerReferences": owner("1")}),
                Claim::Own,
                Claim::Own,
            ),
            (
                json!({"labels": db, "ownerReferences": owner("1")}),
                Claim::Release,
                Claim::Ignore,
            ),
            (json!({"labels": web}), Claim::Adopt, Claim::Ignore),
            (json!({"labels": db}), Claim::Ignore, Claim::Ignore),
            (json!({}), Claim::Ignore, Claim::Ignore),
            (
                json!({"labels": web, "deletionTimestamp": gone}),
                Claim::Ignore,
                Claim::Ignore,
            ),
            (
                json!({"labels": db, "ownerReferences": owner("1"), "deletionTimestamp": gone}),
                Claim::Release,
                Claim::Ignore,
            ),
        ];
        for (mut object, by_alive, by_leaving) in cases {
            object["namespace"] = json!("n");
            let object = meta(object);
            let matches = is_selected(&selector(), &object);
            assert_eq!(claim(&alive, matches, &object), by_alive, "{object:?}");
            assert_eq!(claim(&leaving, matches, &object), by_leaving, "{object:?}");
        }
    }

    #[test]
    fn orphans_of_other_namespaces_stay_where_they_are() {
        let controller = meta(json!({"name": "r", "namespace": "n", "uid": "1"}));
        let object = meta(json!({"namespace": "m", "labels": {"app": "web"}}));
        assert_eq!(claim(&controller, true, &object), Claim::Ignore);
    }

    #[test]
    fn patches_name_the_object_by_uid() {
        let controller = meta(json!({"name": "j", "uid": "1"}));
        let kind = ControllerKind {
            api_version: "batch/v1",
            kind: "Job",
        };
        assert_eq!(
            adoption_patch(&controller, kind, "9", Some("f")),
            json!({"metadata": {"uid": "9", "finalizers": ["f"], "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1",
                "controller": true, "blockOwnerDeletion": true,
            }]}})
        );
        assert_eq!(
            release_patch(&controller, "9", Some("f")),
            json!({"metadata": {
                "uid": "9",
                "ownerReferences": [{"$patch": "delete", "uid": "1"}],
                "$deleteFromPrimitiveList/finalizers": ["f"],
            }})
        );
    }
}
