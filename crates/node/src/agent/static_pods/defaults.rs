//! What the API server would have filled in, for pods that never pass it.
//!
//! Matches v1.36 pkg/apis/core/v1/defaults.go, as far as a node acts on it.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Probe};

/// Fills in what the manifest leaves out.
pub(super) fn apply(pod: &mut Pod) {
    let spec = pod.spec.get_or_insert_default();
    spec.restart_policy
        .get_or_insert_with(|| "Always".to_owned());
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.dns_policy
        .get_or_insert_with(|| "ClusterFirst".to_owned());
    spec.enable_service_links.get_or_insert(true);
    spec.security_context.get_or_insert_default();
    for container in containers(spec) {
        apply_to_container(container);
    }
}

fn containers(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    let init = spec.init_containers.iter_mut().flatten();
    init.chain(&mut spec.containers)
}

fn apply_to_container(container: &mut Container) {
    let image = container.image.as_deref().unwrap_or_default();
    let policy = if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    container
        .image_pull_policy
        .get_or_insert_with(|| policy.to_owned());
    let path = || "/dev/termination-log".to_owned();
    container.termination_message_path.get_or_insert_with(path);
    container
        .termination_message_policy
        .get_or_insert_with(|| "File".to_owned());
    let probes = [
        &mut container.liveness_probe,
        &mut container.readiness_probe,
        &mut container.startup_probe,
    ];
    for probe in probes.into_iter().flatten() {
        apply_to_probe(probe);
    }
    for port in container.ports.iter_mut().flatten() {
        port.protocol.get_or_insert_with(|| "TCP".to_owned());
    }
    if let Some(resources) = &mut container.resources {
        let limits = resources.limits.clone().unwrap_or_default();
        for (name, limit) in limits {
            let requests = resources.requests.get_or_insert_default();
            requests.entry(name).or_insert(limit);
        }
    }
}

fn apply_to_probe(probe: &mut Probe) {
    probe.timeout_seconds.get_or_insert(1);
    probe.period_seconds.get_or_insert(10);
    probe.success_threshold.get_or_insert(1);
    probe.failure_threshold.get_or_insert(3);
    if let Some(get) = &mut probe.http_get {
        get.path.get_or_insert_with(|| "/".to_owned());
        get.scheme.get_or_insert_with(|| "HTTP".to_owned());
    }
}

/// Whether an image has no tag, or that one.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_of_its_own_keeps_an_image_from_being_pulled_each_time() {
        for latest in ["a", "a:latest", "r:5000/a", "r:5000/a:latest"] {
            assert!(is_latest(latest), "{latest}");
        }
        for fixed in ["a:1", "r:5000/a:1", "a@sha256:00", "a:latest@sha256:00"] {
            assert!(!is_latest(fixed), "{fixed}");
        }
    }

    #[test]
    fn limits_become_requests() {
        let pod = serde_json::json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
        });
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        apply(&mut pod);
        let spec = pod.spec.unwrap();
        assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
        let resources = spec.containers[0].resources.as_ref().unwrap();
        assert_eq!(resources.requests, resources.limits);
    }
}
