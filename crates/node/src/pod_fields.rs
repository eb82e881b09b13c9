//! The parts of a pod object, with the API's defaults for what is left out.
//!
//! Static pods do not pass through an API server, so every reader has to cope with absent fields.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, PodSpec};
use plimsoll_core::object::pod::as_container;
pub use plimsoll_core::object::pod::{is_terminal, is_terminal_phase, phase};

/// The annotation that says where a pod came from.
pub const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// The annotation that makes a pod the API's image of a static one; its value is the hash.
pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation with the hash of a static pod.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with restart policy `Always`: started in turn, then keeps running.
    Sidecar,
    /// A regular container.
    App,
    /// Added later, for people to look around; never restarted.
    Ephemeral,
}

/// A container and its place in the pod.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// What it is to the pod.
    pub kind: Kind,
    /// Its index in the list it stands in.
    pub index: usize,
    /// The container; an ephemeral one in the form of a regular one.
    pub container: Cow<'a, Container>,
    /// The container whose processes an ephemeral one shares.
    pub target: Option<&'a str>,
}

/// The uid; empty if there is none.
pub fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The name; empty if there is none.
pub fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The namespace; empty if there is none.
pub fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or_default()
}

/// Namespace, name and uid as texts; empty where missing.
pub fn identity(pod: &Pod) -> (&str, &str, &str) {
    let meta = &pod.metadata;
    (
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
        meta.uid.as_deref().unwrap_or_default(),
    )
}

/// A pod as messages name it: `name_namespace(uid)`.
pub fn display_pod(pod: &Pod) -> String {
    let (namespace, name, uid) = identity(pod);
    format!("{name}_{namespace}({uid})")
}

/// The generation, where the API server counts.
pub fn generation(pod: &Pod) -> i64 {
    pod.metadata.generation.unwrap_or_default()
}

/// Whether the deletion of the pod was requested.
pub fn is_deleted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// Whether the node made the pod from a file.
pub fn is_static(pod: &Pod) -> bool {
    annotation(pod, CONFIG_SOURCE).is_some_and(|source| source != "api")
}

/// The hash a mirror pod carries; `None` for other pods.
pub fn mirror_hash(pod: &Pod) -> Option<&str> {
    annotation(pod, CONFIG_MIRROR)
}

/// Whether the pod shares the network of its node.
pub fn uses_host_network(pod: &Pod) -> bool {
    spec(pod).is_some_and(|spec| spec.host_network == Some(true))
}

/// The spec.
pub fn spec(pod: &Pod) -> Option<&PodSpec> {
    pod.spec.as_ref()
}

/// Init containers and sidecars, in order.
pub fn init_containers(pod: &Pod) -> &[Container] {
    let list = spec(pod).and_then(|spec| spec.init_containers.as_deref());
    list.unwrap_or_default()
}

/// Regular containers, in order.
pub fn app_containers(pod: &Pod) -> &[Container] {
    spec(pod).map_or(&[], |spec| &spec.containers)
}

/// Ephemeral containers, in order.
pub fn ephemeral_containers(pod: &Pod) -> &[EphemeralContainer] {
    let list = spec(pod).and_then(|spec| spec.ephemeral_containers.as_deref());
    list.unwrap_or_default()
}

/// The containers of a pod that are in the spec from the start: init containers, then regular ones.
pub fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
}

/// The user that all containers of a pod run as, if they agree on one.
pub fn common_user(spec: &PodSpec) -> Option<i64> {
    let of_pod = spec
        .security_context
        .as_ref()
        .and_then(|pod| pod.run_as_user);
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|container| container.security_context.as_ref());
    let contexts = containers(spec).map(|container| container.security_context.as_ref());
    let mut users = contexts
        .chain(ephemeral)
        .map(|context| context.and_then(|context| context.run_as_user).or(of_pod));
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

/// Whether an init container is a sidecar.
pub fn is_sidecar(init_container: &Container) -> bool {
    init_container.restart_policy.as_deref() == Some("Always")
}

/// All containers: init containers and sidecars, regular ones, ephemeral ones.
pub fn parts(pod: &Pod) -> impl Iterator<Item = Part<'_>> {
    let init = init_containers(pod).iter().enumerate().map(|(index, c)| {
        let kind = if is_sidecar(c) {
            Kind::Sidecar
        } else {
            Kind::Init
        };
        (kind, index, c)
    });
    let app = app_containers(pod).iter().enumerate();
    let app = app.map(|(index, c)| (Kind::App, index, c));
    let plain = init.chain(app).map(|(kind, index, container)| Part {
        kind,
        index,
        container: Cow::Borrowed(container),
        target: None,
    });
    let ephemeral = ephemeral_containers(pod).iter().enumerate();
    plain.chain(ephemeral.map(|(index, container)| {
        Part {
            kind: Kind::Ephemeral,
            index,
            container: Cow::Owned(as_container(container)),
            target: container
                .target_container_name
                .as_deref()
                .filter(|target| !target.is_empty()),
        }
    }))
}

/// The container of that name.
pub fn part<'a>(pod: &'a Pod, name: &str) -> Option<Part<'a>> {
    parts(pod).find(|part| part.container.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_has_a_user_only_if_all_its_containers_agree() {
        let common = |pod: Option<i64>, users: &[Option<i64>]| {
            let containers: Vec<_> = users
                .iter()
                .enumerate()
                .map(|(i, user)| {
                    json!({"name": format!("c{i}"), "securityContext": {"runAsUser": user}})
                })
                .collect();
            let spec = json!({"securityContext": {"runAsUser": pod}, "containers": containers});
            common_user(&serde_json::from_value(spec).unwrap())
        };
        assert_eq!(common(None, &[None]), None);
        assert_eq!(common(Some(5), &[None, None]), Some(5));
        assert_eq!(common(Some(5), &[Some(6), Some(6)]), Some(6));
        assert_eq!(common(Some(5), &[Some(6), None]), None);
        assert_eq!(common(None, &[Some(6), None]), None);
    }
}
