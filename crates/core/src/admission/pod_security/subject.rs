//! The subject of the checks: the annotations and the spec of a pod, or of a pod template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EphemeralContainer, Lifecycle, Pod, PodSpec, PodTemplateSpec, Probe,
    SecurityContext,
};

/// A pod, or what the pods of a workload look like.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its annotations, if it has any.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// Its spec.
    pub spec: &'a PodSpec,
}

impl<'a> Subject<'a> {
    /// A pod; `None` without a spec.
    pub fn of_pod(pod: &'a Pod) -> Option<Subject<'a>> {
        Some(Subject {
            annotations: pod.metadata.annotations.as_ref(),
            spec: pod.spec.as_ref()?,
        })
    }

    /// A template; `None` without a spec.
    pub fn of_template(template: &'a PodTemplateSpec) -> Option<Subject<'a>> {
        let metadata = template.metadata.as_ref();
        Some(Subject {
            annotations: metadata.and_then(|metadata| metadata.annotations.as_ref()),
            spec: template.spec.as_ref()?,
        })
    }

    /// The value of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        Some(self.annotations?.get(key)?.as_str())
    }

    /// All containers: init containers, then containers, then ephemeral ones.
    pub(super) fn containers(&self) -> impl Iterator<Item = ContainerRef<'a>> + use<'a> {
        let init = self.spec.init_containers.iter().flatten();
        let plain = init.chain(&self.spec.containers).map(ContainerRef::plain);
        let ephemeral = self.spec.ephemeral_containers.iter().flatten();
        plain.chain(ephemeral.map(ContainerRef::ephemeral))
    }

    /// Whether root in the pod is not root on the node.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.spec.host_users == Some(false)
    }

    pub(super) fn is_for_windows(&self) -> bool {
        let os = self.spec.os.as_ref();
        os.is_some_and(|os| os.name == "windows")
    }
}

/// The fields of a container of any sort that checks read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContainerRef<'a> {
    pub(super) name: &'a str,
    pub(super) security: Option<&'a SecurityContext>,
    pub(super) ports: &'a [ContainerPort],
    pub(super) probes: [Option<&'a Probe>; 3],
    pub(super) lifecycle: Option<&'a Lifecycle>,
}

impl<'a> ContainerRef<'a> {
    fn plain(container: &'a Container) -> ContainerRef<'a> {
        ContainerRef {
            name: &container.name,
            security: container.security_context.as_ref(),
            ports: container.ports.as_deref().unwrap_or_default(),
            probes: [
                container.liveness_probe.as_ref(),
                container.readiness_probe.as_ref(),
                container.startup_probe.as_ref(),
            ],
            lifecycle: container.lifecycle.as_ref(),
        }
    }

    fn ephemeral(container: &'a EphemeralContainer) -> ContainerRef<'a> {
        ContainerRef {
            name: &container.name,
            security: container.security_context.as_ref(),
            ports: container.ports.as_deref().unwrap_or_default(),
            probes: [
                container.liveness_probe.as_ref(),
                container.readiness_probe.as_ref(),
                container.startup_probe.as_ref(),
            ],
            lifecycle: container.lifecycle.as_ref(),
        }
    }
}

/// Where the pod template of a workload is: the path from the object to it. `None` for kinds
/// without one. Pods are no workloads.
pub fn template_of(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    match (group, kind) {
        ("", "PodTemplate") => Some(&["template"]),
        ("", "ReplicationController")
        | ("apps", "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}

/// Whether an update of a pod may have changed what it is allowed to do: another image, or another
/// container. Nothing else of a pod's spec that the rules look at can be changed.
///
/// Matches v1.36 pod-security-admission/admission/admission.go, `isSignificantPodUpdate`.
pub fn is_significant_update(new: &PodSpec, old: &PodSpec) -> bool {
    fn images<'a>(
        containers: impl IntoIterator<Item = &'a Container>,
    ) -> impl Iterator<Item = &'a str> {
        containers
            .into_iter()
            .map(|c| c.image.as_deref().unwrap_or_default())
    }
    fn init(spec: &PodSpec) -> impl Iterator<Item = &str> {
        images(spec.init_containers.iter().flatten())
    }
    let mut ephemeral = new.ephemeral_containers.iter().flatten();
    !images(&new.containers).eq(images(&old.containers))
        || !init(new).eq(init(old))
        || ephemeral.any(|new| {
            let mut olds = old.ephemeral_containers.iter().flatten();
            let before = olds.find(|old| old.name == new.name);
            before.is_none_or(|old| old.image != new.image)
        })
}
