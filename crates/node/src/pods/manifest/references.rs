//! Objects of the API that a pod from a file may not use: the node would have to be allowed to read
//! them, though no user of the API server has requested it.
//!
//! Matches v1.36 pkg/api/pod/util.go, `HasAPIObjectReference`.

use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume, VolumeProjection};

use crate::pod_fields;

/// What the pod uses first, if anything.
pub(super) fn first_in(pod: &Pod) -> Option<&'static str> {
    let spec = pod_fields::spec(pod)?;
    let account = spec.service_account_name.as_deref();
    if account.is_some_and(|account| !account.is_empty()) {
        return Some("serviceaccounts");
    }
    let has_pull_secrets = spec
        .image_pull_secrets
        .as_ref()
        .is_some_and(|secrets| !secrets.is_empty());
    if has_pull_secrets || uses(pod, Wanted::Secret) {
        return Some("secrets");
    }
    if uses(pod, Wanted::ConfigMap) {
        return Some("configmaps");
    }
    let has_claims = spec.resource_claims.as_ref().is_some_and(|c| !c.is_empty());
    if has_claims {
        return Some("resourceclaims");
    }
    of_volumes(spec)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Secret,
    ConfigMap,
}

/// Whether any container takes variables from such an object.
fn uses(pod: &Pod, wanted: Wanted) -> bool {
    pod_fields::parts(pod).any(|part| {
        let container = part.container.as_ref();
        let mut from = container.env_from.iter().flatten();
        let mut variables = container.env.iter().flatten();
        let is_from = |source: &k8s_openapi::api::core::v1::EnvFromSource| match wanted {
            Wanted::Secret => source.secret_ref.is_some(),
            Wanted::ConfigMap => source.config_map_ref.is_some(),
        };
        from.any(is_from)
            || variables.any(|variable| {
                variable
                    .value_from
                    .as_ref()
                    .is_some_and(|source| match wanted {
                        Wanted::Secret => source.secret_key_ref.is_some(),
                        Wanted::ConfigMap => source.config_map_key_ref.is_some(),
                    })
            })
    })
}

fn of_volumes(spec: &PodSpec) -> Option<&'static str> {
    spec.volumes.iter().flatten().find_map(of_volume)
}

fn of_volume(volume: &Volume) -> Option<&'static str> {
    let plain = [
        (
            volume.config_map.is_some(),
            "configmaps (via configmap volumes)",
        ),
        (volume.secret.is_some(), "secrets (via secret volumes)"),
        (volume.csi.is_some(), "csidrivers (via CSI volumes)"),
        (
            volume.glusterfs.is_some(),
            "endpoints (via glusterFS volumes)",
        ),
        (
            volume.persistent_volume_claim.is_some(),
            "persistentvolumeclaims",
        ),
        (
            volume.ephemeral.is_some(),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            volume.azure_file.is_some(),
            "secrets (via azureFile volumes)",
        ),
    ];
    let used = plain
        .into_iter()
        .find_map(|(is_used, what)| is_used.then_some(what));
    let projected = || {
        let sources = volume.projected.as_ref()?.sources.as_ref()?;
        sources.iter().find_map(of_projection)
    };
    used.or_else(projected)
}

fn of_projection(source: &VolumeProjection) -> Option<&'static str> {
    let sources = [
        (
            source.config_map.is_some(),
            "configmaps (via projected volumes)",
        ),
        (source.secret.is_some(), "secrets (via projected volumes)"),
        (
            source.service_account_token.is_some(),
            "serviceaccounts (via projected volumes)",
        ),
        (source.cluster_trust_bundle.is_some(), "clustertrustbundles"),
        (source.pod_certificate.is_some(), "podcertificates"),
    ];
    sources
        .into_iter()
        .find_map(|(is_used, what)| is_used.then_some(what))
}
