//! The built-in admission of objects before they are stored.
//!
//! The rules are core's; this is their order. The state of the cluster is passed in. Rules that
//! need the store while they decide (NamespaceLifecycle, ResourceQuota) or the caller
//! (NodeRestriction) are the server's.

mod runtime_class;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, PodSpec};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::default_toleration_seconds::DefaultTolerationSeconds;
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::limit_range;
use plimsoll_core::admission::memory_pressure_toleration::AddMemoryPressureToleration;
use plimsoll_core::admission::node_taints::taint_new_node;
use plimsoll_core::admission::overcommit::Override;
use plimsoll_core::admission::pipeline;
use plimsoll_core::admission::priority::{
    self, PriorityClasses, validate_new_class, validate_updated_class,
};
use plimsoll_core::object::claim::ClaimView;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::problem::{aggregate, joined};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::validation::Part;
use super::write::Admission;
use crate::kinds::Kind;
use crate::status::Status;

/// The state of the cluster that admission needs.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// All PriorityClasses.
    pub priority_classes: Arc<PriorityClasses>,
    /// The LimitRanges of the object's namespace.
    pub limit_ranges: Arc<Vec<LimitRangeView>>,
    /// A LimitRange of the namespace that cannot be decoded. Objects that it may apply to are
    /// rejected.
    pub unreadable_limit_range: Option<Arc<str>>,
    /// All RuntimeClasses by name.
    pub runtime_classes: Arc<BTreeMap<String, RuntimeClass>>,
    /// The default toleration time of pods on nodes that are not ready or unreachable.
    pub toleration_seconds: DefaultTolerationSeconds,
    /// The cluster's override of requests and limits, if it has one that applies to the namespace.
    pub overcommit: Option<Arc<Override>>,
    /// Whether pods that are not BestEffort get a toleration for memory pressure.
    pub memory_pressure: AddMemoryPressureToleration,
}

/// A cluster with only the built-in PriorityClasses.
impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            priority_classes: Arc::new(PriorityClasses::from_api(&[])),
            limit_ranges: Arc::default(),
            unreadable_limit_range: None,
            runtime_classes: Arc::default(),
            toleration_seconds: DefaultTolerationSeconds::default(),
            overcommit: None,
            memory_pressure: AddMemoryPressureToleration::default(),
        }
    }
}

/// Why an object is rejected: the reason of a 403.
pub type Reason = String;

/// Mutates a new object.
pub fn admit_new(kind: &Kind, object: &mut Value, cluster: &Cluster) -> Result<(), Reason> {
    match (kind.group, kind.kind) {
        ("", "Pod") => {
            if !cluster.limit_ranges.is_empty() || cluster.overcommit.is_some() {
                edit(object, |pod: &mut Pod| {
                    admit_resources(pod, cluster);
                    Ok(())
                })?;
            }
            if cluster.memory_pressure == AddMemoryPressureToleration::Yes {
                edit(object, |pod: &mut Pod| {
                    cluster
                        .memory_pressure
                        .admit(pod)
                        .map_err(|problems| aggregate(&problems))
                })?;
            }
            edit_spec(object, |spec| {
                priority::admit_new_pod(spec, &cluster.priority_classes)
                    .map_err(|r| r.to_string())?;
                cluster.toleration_seconds.admit(spec);
                runtime_class::admit(spec, &cluster.runtime_classes)
            })
        }
        ("", "Node") => edit(object, |node: &mut Node| {
            taint_new_node(node);
            Ok(())
        }),
        _ => Ok(()),
    }
}

/// LimitRanger, then ClusterResourceOverride.
fn admit_resources(pod: &mut Pod, cluster: &Cluster) {
    // Validation comes later, and decodes the pod again.
    if let Ok(mut draft) = PodDraft::from_api(pod) {
        let overcommit = cluster.overcommit.as_deref();
        pipeline::set_resources(&mut draft, &cluster.limit_ranges, overcommit);
        draft.write_to(pod);
    }
}

/// Mutates an updated object.
pub fn admit_changed(
    kind: &Kind,
    part: Part,
    object: &mut Value,
    old: &Value,
    cluster: &Cluster,
) -> Result<(), Reason> {
    if (kind.group, kind.kind, part) != ("", "Pod", Part::Main) {
        return Ok(());
    }
    let mut before = json!({});
    for field in EDITED_FIELDS {
        before[field] = old["spec"][field].clone();
    }
    let before = PodSpec::deserialize(before).unwrap_or_default();
    edit_spec(object, |spec| {
        priority::admit_updated_pod(spec, &before);
        cluster.toleration_seconds.admit(spec);
        Ok(())
    })
}

/// Validates a new object after the rules of its kind.
pub fn check_new(kind: &Kind, object: &Value, cluster: &Cluster) -> Result<(), Reason> {
    match (kind.group, kind.kind) {
        ("", "Pod") => {
            readable_limit_ranges(cluster)?;
            let spec = &object["spec"];
            let has_runtime = !spec["runtimeClassName"].is_null() || !spec["overhead"].is_null();
            let has_resources = !cluster.limit_ranges.is_empty() || cluster.overcommit.is_some();
            if !has_runtime && !has_resources {
                return Ok(());
            }
            let pod: Pod = typed(object)?;
            if has_resources {
                let view = PodView::from_api(&pod).map_err(|problems| aggregate(&problems))?;
                limit_range::check_pod(&view, &cluster.limit_ranges).map_err(|r| reasons(&r))?;
            }
            runtime_class::check(&pod.spec.unwrap_or_default(), &cluster.runtime_classes)
        }
        ("", "PersistentVolumeClaim") => {
            readable_limit_ranges(cluster)?;
            if cluster.limit_ranges.is_empty() {
                return Ok(());
            }
            let claim: PersistentVolumeClaim = typed(object)?;
            let view = ClaimView::from_api(&claim).map_err(|problems| aggregate(&problems))?;
            limit_range::check_claim(&view, &cluster.limit_ranges).map_err(|r| reasons(&r))
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            let class: PriorityClass = typed(object)?;
            validate_new_class(&class, &cluster.priority_classes).map_err(|r| r.to_string())
        }
        _ => Ok(()),
    }
}

/// Validates an updated object after the rules of its kind.
pub fn check_changed(
    kind: &Kind,
    part: Part,
    object: &Value,
    cluster: &Cluster,
) -> Result<(), Reason> {
    match (kind.group, kind.kind, part) {
        ("", "Pod", Part::Resize) => {
            readable_limit_ranges(cluster)?;
            if cluster.limit_ranges.is_empty() {
                return Ok(());
            }
            let pod: Pod = typed(object)?;
            let view = PodView::from_api(&pod).map_err(|problems| aggregate(&problems))?;
            limit_range::check_pod(&view, &cluster.limit_ranges).map_err(|r| reasons(&r))
        }
        ("scheduling.k8s.io", "PriorityClass", _) => {
            let class: PriorityClass = typed(object)?;
            validate_updated_class(&class, &cluster.priority_classes).map_err(|r| r.to_string())
        }
        _ => Ok(()),
    }
}

/// An object to be checked has to be of its type: rules that cannot be applied reject it.
fn typed<T: DeserializeOwned>(object: &Value) -> Result<T, Reason> {
    T::deserialize(object).map_err(|error| format!("the object cannot be read: {error}"))
}

fn readable_limit_ranges(cluster: &Cluster) -> Result<(), Reason> {
    match &cluster.unreadable_limit_range {
        Some(name) => Err(format!("limit range {name} cannot be read")),
        None => Ok(()),
    }
}

/// The plugins that apply to objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn<'a> {
    /// The kind of the objects.
    pub kind: &'static Kind,
    /// The subresource of the request.
    pub part: Part,
    /// The cluster.
    pub cluster: &'a Cluster,
}

impl Admission for BuiltIn<'_> {
    fn admit(&mut self, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        let admitted = match old {
            None => admit_new(self.kind, object, self.cluster),
            Some(old) => admit_changed(self.kind, self.part, object, old, self.cluster),
        };
        admitted.map_err(|reason| self.forbid(object, &reason))
    }

    fn check(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let checked = match old {
            None => check_new(self.kind, object, self.cluster),
            Some(_) => check_changed(self.kind, self.part, object, self.cluster),
        };
        checked.map_err(|reason| self.forbid(object, &reason))
    }
}

impl BuiltIn<'_> {
    fn forbid(&self, object: &Value, reason: &str) -> Status {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let name = match text("name") {
            "" => text("generateName"),
            name => name,
        };
        Status::forbidden(self.kind, name, reason)
    }
}

fn reasons(refusal: &limit_range::Refusal) -> Reason {
    joined(refusal.violations.iter().map(ToString::to_string))
}

/// The fields of a pod's spec that plugins other than LimitRanger read and write.
const EDITED_FIELDS: [&str; 7] = [
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "runtimeClassName",
    "tolerations",
];

/// Mutates the fields of a pod's spec in [`EDITED_FIELDS`]. Containers are the bulk of a pod
/// and stay as they are.
fn edit_spec(
    object: &mut Value,
    change: impl FnOnce(&mut PodSpec) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let Some(fields) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let part: Map<String, Value> = EDITED_FIELDS
        .into_iter()
        .filter_map(|name| fields.remove_entry(name))
        .collect();
    let mut spec: PodSpec = typed(&Value::Object(part))?;
    change(&mut spec)?;
    if let Ok(Value::Object(mut changed)) = serde_json::to_value(spec) {
        // The type requires containers.
        changed.remove("containers");
        fields.extend(changed);
    }
    Ok(())
}

/// Mutates an object in its typed form.
fn edit<T: DeserializeOwned + Serialize>(
    object: &mut Value,
    change: impl FnOnce(&mut T) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let mut read: T = typed(object)?;
    change(&mut read)?;
    if let Ok(changed) = serde_json::to_value(read) {
        *object = changed;
    }
    Ok(())
}
