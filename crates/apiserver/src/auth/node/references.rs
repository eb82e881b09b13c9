//! The objects that a pod and a volume refer to.
//!
//! Matches v1.36 pkg/api/v1/pod/util.go and pkg/api/v1/persistentvolume/util.go.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::auth::{list, text};

/// The annotation of mirror pods.
pub(super) const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Volumes that name a secret, and at which path.
const VOLUME_SECRETS: [(&str, &str); 11] = [
    ("azureFile", "/secretName"),
    ("cephfs", "/secretRef/name"),
    ("cinder", "/secretRef/name"),
    ("flexVolume", "/secretRef/name"),
    ("projected", ""),
    ("rbd", "/secretRef/name"),
    ("secret", "/secretName"),
    ("scaleIO", "/secretRef/name"),
    ("iscsi", "/secretRef/name"),
    ("storageos", "/secretRef/name"),
    ("csi", "/nodePublishSecretRef/name"),
];

/// The names of secrets that the pod refers to.
pub(super) fn secrets(pod: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let pull = list(pod, "/spec/imagePullSecrets").iter();
    names.extend(pull.map(|secret| text(secret, "/name")));
    for container in containers(pod) {
        let from = list(container, "/envFrom").iter();
        names.extend(from.map(|source| text(source, "/secretRef/name")));
        let env = list(container, "/env").iter();
        names.extend(env.map(|variable| text(variable, "/valueFrom/secretKeyRef/name")));
    }
    for volume in list(pod, "/spec/volumes") {
        let source = VOLUME_SECRETS.iter().find_map(|(sort, name)| {
            let source = volume.get(sort).filter(|source| !source.is_null())?;
            Some((*sort, source, *name))
        });
        match source {
            Some(("projected", source, _)) => {
                let sources = list(source, "/sources").iter();
                names.extend(sources.map(|source| text(source, "/secret/name")));
            }
            Some((_, source, name)) => {
                names.insert(text(source, name));
            }
            None => {}
        }
    }
    names.remove("");
    names
}

/// The names of config maps that the pod refers to.
pub(super) fn config_maps(pod: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for container in containers(pod) {
        let from = list(container, "/envFrom").iter();
        names.extend(from.map(|source| text(source, "/configMapRef/name")));
        let env = list(container, "/env").iter();
        names.extend(env.map(|variable| text(variable, "/valueFrom/configMapKeyRef/name")));
    }
    for volume in list(pod, "/spec/volumes") {
        let sources = list(volume, "/projected/sources").iter();
        names.extend(sources.map(|source| text(source, "/configMap/name")));
        names.insert(text(volume, "/configMap/name"));
    }
    names.remove("");
    names
}

/// The names of volume claims that the pod refers to.
pub(super) fn volume_claims(pod: &Value) -> Vec<String> {
    let volumes = list(pod, "/spec/volumes").iter();
    let names = volumes.filter_map(|volume| claim_of_volume(pod, volume));
    names.filter(|name| !name.is_empty()).collect()
}

/// The claim of a volume. An ephemeral volume's claim is named after pod and volume.
pub(super) fn claim_of_volume(pod: &Value, volume: &Value) -> Option<String> {
    let is_given = |sort: &str| volume.get(sort).is_some_and(|source| !source.is_null());
    if is_given("persistentVolumeClaim") {
        return Some(text(volume, "/persistentVolumeClaim/claimName").to_owned());
    }
    let name = || format!("{}-{}", text(pod, "/metadata/name"), text(volume, "/name"));
    is_given("ephemeral").then(name)
}

/// The names of resource claims that the pod refers to and that exist.
pub(super) fn resource_claims(pod: &Value) -> Vec<&str> {
    let statuses = list(pod, "/status/resourceClaimStatuses");
    let claims = list(pod, "/spec/resourceClaims").iter();
    let names = claims.map(|claim| match text(claim, "/resourceClaimName") {
        "" => {
            let mut made = statuses
                .iter()
                .filter(|status| status["name"] == claim["name"]);
            made.next()
                .map_or("", |status| text(status, "/resourceClaimName"))
        }
        name => name,
    });
    let extended = text(pod, "/status/extendedResourceClaimStatus/resourceClaimName");
    names
        .chain([extended])
        .filter(|name| !name.is_empty())
        .collect()
}

/// Whether the pod is a mirror pod.
pub(super) fn is_mirror(pod: &Value) -> bool {
    let annotations = pod.pointer("/metadata/annotations");
    annotations
        .and_then(|all| all.get(MIRROR_ANNOTATION))
        .is_some()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = [
        "/spec/initContainers",
        "/spec/containers",
        "/spec/ephemeralContainers",
    ];
    lists.into_iter().flat_map(|pointer| list(pod, pointer))
}

/// The secrets, as namespace and name, that a kubelet needs to mount a volume.
pub(super) fn volume_secrets(volume: &Value) -> Vec<(String, String)> {
    let claim_namespace = text(volume, "/spec/claimRef/namespace");
    let spec = &volume["spec"];
    // For most types the claim's namespace is the default.
    let one = |source: &Value, namespace: &str, name: &str, or_of_claim: bool| {
        let namespace = match text(source, namespace) {
            "" if or_of_claim => claim_namespace,
            namespace => namespace,
        };
        vec![(namespace.to_owned(), text(source, name).to_owned())]
    };
    let is_given = |sort: &&(&str, bool)| !spec[sort.0].is_null();
    let by_reference = [
        ("cephfs", true),
        ("cinder", false),
        ("flexVolume", true),
        ("rbd", true),
        ("scaleIO", true),
        ("iscsi", true),
        ("storageos", false),
    ];
    let mut found = if !spec["azureFile"].is_null() {
        one(&spec["azureFile"], "/secretNamespace", "/secretName", true)
    } else if let Some((sort, or_of_claim)) = by_reference.iter().find(is_given) {
        let source = &spec[sort];
        one(
            source,
            "/secretRef/namespace",
            "/secretRef/name",
            *or_of_claim,
        )
    } else {
        let uses = [
            "nodePublishSecretRef",
            "nodeStageSecretRef",
            "nodeExpandSecretRef",
        ];
        let references = uses.iter().map(|part| &spec["csi"][part]);
        references
            .flat_map(|secret| one(secret, "/namespace", "/name", false))
            .collect()
    };
    found.retain(|(_, name)| !name.is_empty());
    found
}
