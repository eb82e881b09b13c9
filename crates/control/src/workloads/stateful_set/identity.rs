//! The identity of a pod: its ordinal, from which its name, its labels and its claims follow.

use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};

use crate::workloads::pod_state;
use crate::workloads::pod_template::pod_from_template;
use crate::workloads::revision::REVISION_HASH;

use super::KIND;
use super::claim::{claim_name, claim_templates};

/// The label with the pod's name, so that a Service can select one pod.
pub const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";

/// The label with the pod's ordinal.
pub const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The name of the set.
pub(super) fn name_of(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The ordinal of a pod of the set of that name; `None` if the pod is of no set or another.
pub fn ordinal_of(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: i32 = digits.parse().ok()?;
    (ordinal >= 0 && ordinal.to_string() == digits).then_some(ordinal)
}

/// The ordinals that there should be pods for.
pub(super) fn ordinals(set: &StatefulSet) -> Range<i32> {
    let spec = set.spec.as_ref();
    let ordinals = spec.and_then(|spec| spec.ordinals.as_ref());
    let start = ordinals
        .and_then(|ordinals| ordinals.start)
        .unwrap_or(0)
        .max(0);
    start..start.saturating_add(replicas(set))
}

/// How many pods there should be.
pub(super) fn replicas(set: &StatefulSet) -> i32 {
    let spec = set.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", name_of(set))
}

/// Whether the pod carries its name as a label.
pub(super) fn has_identity(pod: &Pod) -> bool {
    pod_state::label(pod, POD_NAME_LABEL) == Some(pod_state::name(pod))
}

/// Labels the pod with its name and its ordinal.
pub(super) fn set_identity(pod: &mut Pod, ordinal: i32) {
    let name = pod_state::name(pod).to_owned();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.to_owned(), name);
    labels.insert(POD_INDEX_LABEL.to_owned(), ordinal.to_string());
}

/// Whether the pod's volumes are the claims of the set's templates.
pub(super) fn has_storage(set: &StatefulSet, pod: &Pod, ordinal: i32) -> bool {
    let spec = pod.spec.as_ref();
    let volumes = spec.and_then(|spec| spec.volumes.as_deref());
    claim_templates(set).iter().all(|template| {
        let name = template.metadata.name.as_deref().unwrap_or_default();
        let mut volumes = volumes.unwrap_or_default().iter();
        let volume = volumes.find(|volume| volume.name == name);
        let source = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.is_some_and(|source| source.claim_name == claim_name(set, template, ordinal))
    })
}

/// Gives the pod the claims of the set's templates as volumes, in place of its own of those names.
pub(super) fn set_storage(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let templates = claim_templates(set);
    if templates.is_empty() {
        return;
    }
    let from_claims = templates.iter().map(|template| Volume {
        name: template.metadata.name.clone().unwrap_or_default(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(set, template, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    });
    let mut volumes: Vec<Volume> = from_claims.collect();
    let spec = pod.spec.get_or_insert_default();
    for own in spec.volumes.take().unwrap_or_default() {
        if volumes.iter().all(|volume| volume.name != own.name) {
            volumes.push(own);
        }
    }
    spec.volumes = Some(volumes);
}

/// The pod of an ordinal, not yet created, of the revision with that name and template.
pub(super) fn new_pod(
    set: &StatefulSet,
    ordinal: i32,
    revision: &str,
    template: &PodTemplateSpec,
) -> Pod {
    let mut pod = pod_from_template(template, KIND.reference_to(&set.metadata));
    let name = pod_name(set, ordinal);
    pod.metadata.name = Some(name.clone());
    pod.metadata.namespace.clone_from(&set.metadata.namespace);
    set_identity(&mut pod, ordinal);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION_HASH.to_owned(), revision.to_owned());
    let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = service.filter(|service| !service.is_empty());
    set_storage(set, &mut pod, ordinal);
    pod
}
