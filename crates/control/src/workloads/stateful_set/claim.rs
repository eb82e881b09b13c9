//! The PersistentVolumeClaims of a pod, and the object that each goes with.
//!
//! `spec.persistentVolumeClaimRetentionPolicy` is carried out by the garbage collector: claims that
//! go with the set are owned by the set, claims that go with a pod beyond `spec.replicas` by that
//! pod. Claims that are retained have no owner.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::workloads::ownership::ControllerKind;
use crate::workloads::pod_state;

use super::KIND;
use super::identity::{name_of, ordinal_of, ordinals};

const POD_KIND: ControllerKind = ControllerKind {
    api_version: "v1",
    kind: "Pod",
};

/// The templates of the set's claims.
pub(super) fn claim_templates(set: &StatefulSet) -> &[PersistentVolumeClaim] {
    let spec = set.spec.as_ref();
    spec.and_then(|spec| spec.volume_claim_templates.as_deref())
        .unwrap_or_default()
}

/// The name of a pod's claim.
pub(super) fn claim_name(
    set: &StatefulSet,
    template: &PersistentVolumeClaim,
    ordinal: i32,
) -> String {
    let template = template.metadata.name.as_deref().unwrap_or_default();
    format!("{template}-{}-{ordinal}", name_of(set))
}

/// Whether a claim of that name would be one of the set's.
pub(super) fn has_claim_named(set: &StatefulSet, claim: &str) -> bool {
    claim_templates(set).iter().any(|template| {
        let template = template.metadata.name.as_deref().unwrap_or_default();
        let rest = claim
            .strip_prefix(template)
            .and_then(|c| c.strip_prefix('-'));
        rest.is_some_and(|rest| ordinal_of(name_of(set), rest).is_some())
    })
}

/// The claims of the pod of an ordinal, not yet created.
pub(super) fn new_claims(set: &StatefulSet, pod: &Pod, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let spec = set.spec.as_ref();
    let selected = spec.and_then(|spec| spec.selector.match_labels.clone());
    let made = claim_templates(set).iter().map(|template| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, template, ordinal));
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(selected.clone().unwrap_or_default());
        set_owners(&mut claim, set, pod);
        claim
    });
    made.collect()
}

/// Which objects a claim goes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retention {
    goes_with_set: bool,
    goes_with_scale: bool,
}

impl Retention {
    fn of(set: &StatefulSet) -> Retention {
        let spec = set.spec.as_ref();
        let policy = spec.and_then(|s| s.persistent_volume_claim_retention_policy.as_ref());
        let is_delete = |value: Option<&String>| value.is_some_and(|value| value == "Delete");
        Retention {
            goes_with_set: is_delete(policy.and_then(|policy| policy.when_deleted.as_ref())),
            goes_with_scale: is_delete(policy.and_then(|policy| policy.when_scaled.as_ref())),
        }
    }

    fn retains_all(self) -> bool {
        !self.goes_with_set && !self.goes_with_scale
    }
}

/// The owners that a claim should have: of the set and its pod, one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owners {
    set: bool,
    pod: bool,
}

impl Owners {
    fn wanted(set: &StatefulSet, pod: &Pod) -> Owners {
        let retention = Retention::of(set);
        let ordinal = ordinal_of(name_of(set), pod_state::name(pod));
        let is_beyond = ordinal.is_none_or(|ordinal| !ordinals(set).contains(&ordinal));
        let with_pod = retention.goes_with_scale && is_beyond;
        Owners {
            set: retention.goes_with_set && !with_pod,
            pod: with_pod,
        }
    }

    fn found(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> Owners {
        let is_owner = |object: &ObjectMeta| {
            let mut owners = references(claim).iter();
            owners.any(|owner| object.uid.as_ref() == Some(&owner.uid))
        };
        Owners {
            set: is_owner(&set.metadata),
            pod: is_owner(&pod.metadata),
        }
    }
}

fn references(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim
        .metadata
        .owner_references
        .as_deref()
        .unwrap_or_default()
}

/// Whether the reference is to the kind and name of an object, which may be another of that name.
fn names(reference: &OwnerReference, object: &ObjectMeta, kind: ControllerKind) -> bool {
    reference.api_version == kind.api_version
        && reference.kind == kind.kind
        && Some(&reference.name) == object.name.as_ref()
}

/// Whether a claim goes with a pod of that name that is no more.
pub(super) fn is_stale(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    Retention::of(set).goes_with_scale && has_stale_owner(claim, &pod.metadata, POD_KIND)
}

fn has_stale_owner(
    claim: &PersistentVolumeClaim,
    object: &ObjectMeta,
    kind: ControllerKind,
) -> bool {
    let mut owners = references(claim).iter();
    let named = owners.find(|owner| names(owner, object, kind));
    named.is_some_and(|owner| Some(&owner.uid) != object.uid.as_ref())
}

/// Whether something other than the set and the pod controls the claim. That matters only if the
/// claim is to go with one of them.
pub(super) fn has_other_controller(
    claim: &PersistentVolumeClaim,
    set: &StatefulSet,
    pod: &Pod,
) -> bool {
    if Retention::of(set).retains_all() {
        return false;
    }
    references(claim).iter().any(|owner| {
        if names(owner, &set.metadata, KIND) {
            Some(&owner.uid) != set.metadata.uid.as_ref()
        } else if names(owner, &pod.metadata, POD_KIND) {
            Some(&owner.uid) != pod.metadata.uid.as_ref()
        } else {
            owner.controller == Some(true)
        }
    })
}

/// Whether the claim's owners are those of the policy. A claim of former objects of these names is
/// left alone.
pub(super) fn are_owners_current(
    claim: &PersistentVolumeClaim,
    set: &StatefulSet,
    pod: &Pod,
) -> bool {
    if has_stale_owner(claim, &set.metadata, KIND)
        || has_stale_owner(claim, &pod.metadata, POD_KIND)
    {
        return true;
    }
    let found = Owners::found(claim, set, pod);
    if has_other_controller(claim, set, pod) {
        return !(found.set || found.pod);
    }
    let is_ours = |owner: &OwnerReference| {
        let uid = Some(&owner.uid);
        uid == set.metadata.uid.as_ref() || uid == pod.metadata.uid.as_ref()
    };
    let controls = |owner: &OwnerReference| owner.controller == Some(true);
    references(claim)
        .iter()
        .all(|owner| !is_ours(owner) || controls(owner))
        && found == Owners::wanted(set, pod)
}

/// Makes the claim's owners those of the policy.
pub(super) fn set_owners(claim: &mut PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) {
    let is_controlled = has_other_controller(claim, set, pod);
    let mut owners = claim.metadata.owner_references.take().unwrap_or_default();
    owners.retain(|owner| {
        !names(owner, &set.metadata, KIND) && !names(owner, &pod.metadata, POD_KIND)
    });
    if !is_controlled {
        let wanted = Owners::wanted(set, pod);
        if wanted.set {
            owners.push(KIND.reference_to(&set.metadata));
        }
        if wanted.pod {
            owners.push(POD_KIND.reference_to(&pod.metadata));
        }
    }
    claim.metadata.owner_references = (!owners.is_empty()).then_some(owners);
}
