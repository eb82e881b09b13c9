//! The parsed pod.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::object::identity::{NodeName, PodRef, PodUid};
use crate::object::parse_resource_list;
use crate::object::taint::Toleration;
use crate::object::timestamp::Timestamp;
use crate::problem::Problem;
use crate::resources::ResourceList;

use super::{QosClass, VolumeView};

const CONFIG_SOURCE_ANNOTATION: &str = "kubernetes.io/config.source";
const CONFIG_MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const CRITICAL_POD_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/critical-pod";

/// A pod, reduced to what decisions about node resources read.
#[derive(Clone, Debug, Default)]
pub struct PodView {
    /// Namespace and name.
    pub pod_ref: PodRef,
    /// Unique id; empty before the API server gave one.
    pub uid: PodUid,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// When the API server stored it first.
    pub created_at: Option<Timestamp>,
    /// How often its spec was changed; zero before the API server counted.
    pub generation: i64,
    /// Whether it carries the empty critical-pod annotation of releases before priorities.
    pub is_annotated_critical: bool,
    /// Whether the node made the pod from a file or URL of its own.
    pub is_static: bool,
    /// Whether the pod is the API's image of a static pod.
    pub is_mirror: bool,
    /// The node it is bound to.
    pub node_name: Option<NodeName>,
    /// Regular containers, in order.
    pub containers: Vec<ContainerView>,
    /// Init containers and sidecars, in order.
    pub init_containers: Vec<ContainerView>,
    /// Pod-level resources. `Some` and empty is not the same as `None`: see [`PodView::qos_class`].
    pub resources: Option<Requirements>,
    /// Volumes, in order.
    pub volumes: Vec<VolumeView>,
    /// The pod's termination grace period.
    pub termination_grace_period_seconds: Option<i64>,
    /// The overhead of the runtime.
    pub overhead: ResourceList,
    /// The tolerations, in order.
    pub tolerations: Vec<Toleration>,
    /// Resolved priority.
    pub priority: Option<i32>,
    /// Name of the priority class.
    pub priority_class_name: String,
    /// The class in the status, if one is stored there.
    pub stored_qos_class: Option<QosClass>,
}

/// A container, reduced likewise.
#[derive(Clone, Debug, Default)]
pub struct ContainerView {
    /// Its name in the pod.
    pub name: String,
    /// When it runs.
    pub kind: ContainerKind,
    /// Requests and limits.
    pub resources: Requirements,
}

/// When a container runs in the life of its pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerKind {
    /// A regular container.
    #[default]
    App,
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with restart policy `Always`: started in turn, then keeps running.
    Sidecar,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The resources that the scheduler reserves.
    pub requests: ResourceList,
    /// The resources that the kernel limits.
    pub limits: ResourceList,
}

impl Requirements {
    /// Parses API requirements that stand at `path`.
    pub fn from_api(
        path: impl fmt::Display,
        api: Option<&ResourceRequirements>,
        problems: &mut Vec<Problem>,
    ) -> Requirements {
        let mut parse = |part: &str, list: Option<&BTreeMap<String, ApiQuantity>>| {
            parse_resource_list(format_args!("{path}.{part}"), list, problems)
        };
        Requirements {
            limits: parse("limits", api.and_then(|r| r.limits.as_ref())),
            requests: parse("requests", api.and_then(|r| r.requests.as_ref())),
        }
    }

    /// True if neither requests nor limits are stated.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

impl PodView {
    /// Parses a pod; all its malformed quantities are reported.
    pub fn from_api(pod: &Pod) -> Result<PodView, Vec<Problem>> {
        let meta = &pod.metadata;
        let mut view = match &pod.spec {
            Some(spec) => PodView::from_spec(spec)?,
            None => PodView::default(),
        };
        view.pod_ref = PodRef {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        };
        view.uid = PodUid::new(meta.uid.clone().unwrap_or_default());
        view.created_at = meta.creation_timestamp.as_ref().map(Timestamp::from_api);
        view.generation = meta.generation.unwrap_or_default();
        view.labels = meta.labels.clone().unwrap_or_default();
        if let Some(annotations) = &meta.annotations {
            let source = annotations.get(CONFIG_SOURCE_ANNOTATION);
            view.is_static = source.is_some_and(|source| source != "api");
            view.is_mirror = annotations.contains_key(CONFIG_MIRROR_ANNOTATION);
            let critical = annotations.get(CRITICAL_POD_ANNOTATION);
            view.is_annotated_critical = critical.is_some_and(String::is_empty);
        }
        let status = pod.status.as_ref();
        view.stored_qos_class = status
            .and_then(|status| status.qos_class.as_deref())
            .and_then(QosClass::from_name);
        Ok(view)
    }

    /// Parses the spec of a pod or of a pod template; paths begin with `spec`.
    pub fn from_spec(spec: &PodSpec) -> Result<PodView, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut parse = |field: &str, containers: &[Container]| -> Vec<ContainerView> {
            containers
                .iter()
                .enumerate()
                .map(|(i, c)| {
                    let path = format_args!("spec.{field}[{i}].resources");
                    ContainerView::from_api(path, field, c, &mut problems)
                })
                .collect()
        };
        let containers = parse("containers", &spec.containers);
        let init_containers = parse(
            "initContainers",
            spec.init_containers.as_deref().unwrap_or_default(),
        );
        let resources = spec
            .resources
            .as_ref()
            .map(|r| Requirements::from_api("spec.resources", Some(r), &mut problems));
        let overhead = parse_resource_list("spec.overhead", spec.overhead.as_ref(), &mut problems);
        let volumes = spec.volumes.iter().flatten().enumerate();
        let volumes = volumes
            .map(|(i, v)| VolumeView::from_api(&format!("spec.volumes[{i}]"), v, &mut problems))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let tolerations = spec.tolerations.iter().flatten();
        Ok(PodView {
            node_name: spec.node_name.as_deref().map(NodeName::from),
            containers,
            init_containers,
            resources,
            volumes,
            termination_grace_period_seconds: spec.termination_grace_period_seconds,
            overhead,
            tolerations: tolerations.map(Toleration::from_api).collect(),
            priority: spec.priority,
            priority_class_name: spec.priority_class_name.clone().unwrap_or_default(),
            ..PodView::default()
        })
    }

    /// All containers: init containers first, then regular ones.
    pub fn all_containers(&self) -> impl Iterator<Item = &ContainerView> {
        self.init_containers.iter().chain(&self.containers)
    }
}

impl ContainerView {
    fn from_api(
        path: fmt::Arguments<'_>,
        field: &str,
        container: &Container,
        problems: &mut Vec<Problem>,
    ) -> ContainerView {
        let kind = match (field, container.restart_policy.as_deref()) {
            ("containers", _) => ContainerKind::App,
            (_, Some("Always")) => ContainerKind::Sidecar,
            _ => ContainerKind::Init,
        };
        ContainerView {
            name: container.name.clone(),
            kind,
            resources: Requirements::from_api(path, container.resources.as_ref(), problems),
        }
    }
}
