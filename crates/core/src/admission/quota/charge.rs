//! The usage that a pod is charged.

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::object::pod::{Overhead, PodView, ResizeScope, is_terminal};
use crate::object::resource_rules::{REQUESTS_PREFIX, is_extended};
use crate::problem::Problem;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

const LIMITS_PREFIX: &str = "limits.";
/// Counts all pods that are stored, finished ones too.
pub(super) const POD_OBJECTS: &str = "count/pods";
/// Devices requested by class, which quotas count although the name is Kubernetes' own.
pub(super) const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// A pod as quotas see it.
#[derive(Clone, Debug)]
pub struct PodCharge {
    /// The parsed pod.
    pub pod: PodView,
    /// Its usage of everything that quotas can limit.
    pub usage: ResourceList,
    /// Whether it ends by itself at a deadline.
    pub is_terminating: bool,
    /// Whether its affinity looks at pods of other namespaces.
    pub uses_cross_namespace_affinity: bool,
}

impl PodCharge {
    /// Measures a pod at the time `now`; all its malformed quantities are reported.
    pub fn from_api(pod: &Pod, now: Timestamp) -> Result<PodCharge, Vec<Problem>> {
        let view = PodView::from_api(pod)?;
        let mut usage = ResourceList::new();
        usage.insert(ResourceName::new(POD_OBJECTS), one());
        if is_alive(pod, now) {
            let mut problems = Vec::new();
            let (status, scope) = (pod.status.as_ref(), ResizeScope::Containers);
            let effective = view.with_status_resources(status, scope, &mut problems);
            if !problems.is_empty() {
                return Err(problems);
            }
            let requests = effective.requests(Overhead::Included);
            let limits = effective.limits(Overhead::Included);
            usage.add(&compute_usage(&requests, &limits));
        }
        let spec = pod.spec.as_ref();
        let deadline = spec.and_then(|spec| spec.active_deadline_seconds);
        Ok(PodCharge {
            pod: view,
            usage,
            is_terminating: deadline.is_some_and(|seconds| seconds >= 0),
            uses_cross_namespace_affinity: spec.is_some_and(uses_cross_namespace_affinity),
        })
    }
}

/// The usage behind requests and limits of a pod or of one container.
pub(super) fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::new();
    usage.insert(ResourceName::PODS, one());
    for name in [
        ResourceName::CPU,
        ResourceName::MEMORY,
        ResourceName::EPHEMERAL_STORAGE,
    ] {
        if let Some(request) = requests.get(&name) {
            usage.insert(name.clone(), request.clone());
            usage.insert(name.prefixed(REQUESTS_PREFIX), request.clone());
        }
        if let Some(limit) = limits.get(&name) {
            usage.insert(name.prefixed(LIMITS_PREFIX), limit.clone());
        }
    }
    for (name, request) in requests {
        if name.huge_page_size().is_some() {
            usage.insert(name.clone(), request.clone());
            usage.insert(name.prefixed(REQUESTS_PREFIX), request.clone());
        }
        if is_extended(name) || name.as_str().starts_with(DEVICE_CLASS_PREFIX) {
            usage.insert(name.prefixed(REQUESTS_PREFIX), request.clone());
        }
    }
    usage
}

fn one() -> Quantity {
    Quantity::new(1, Format::DecimalSi)
}

/// Finished pods and pods that should long be gone use nothing but their place in storage.
fn is_alive(pod: &Pod, now: Timestamp) -> bool {
    if is_terminal(pod) {
        return false;
    }
    let meta = &pod.metadata;
    let (Some(deleted), Some(grace_secs)) =
        (&meta.deletion_timestamp, meta.deletion_grace_period_seconds)
    else {
        return true;
    };
    let end = deleted
        .0
        .saturating_add(SignedDuration::from_secs(grace_secs));
    end.is_ok_and(|end| now <= end)
}

fn uses_cross_namespace_affinity(spec: &PodSpec) -> bool {
    let Some(affinity) = &spec.affinity else {
        return false;
    };
    let terms = |required: &Option<Vec<PodAffinityTerm>>,
                 preferred: &Option<Vec<WeightedPodAffinityTerm>>| {
        let preferred = preferred.iter().flatten();
        let preferred = preferred.map(|weighted| &weighted.pod_affinity_term);
        let mut all = required.iter().flatten().chain(preferred);
        all.any(names_other_namespaces)
    };
    let together = affinity.pod_affinity.as_ref().is_some_and(|a| {
        terms(
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    together
        || affinity.pod_anti_affinity.as_ref().is_some_and(|a| {
            terms(
                &a.required_during_scheduling_ignored_during_execution,
                &a.preferred_during_scheduling_ignored_during_execution,
            )
        })
}

fn names_other_namespaces(term: &PodAffinityTerm) -> bool {
    let namespaces = term.namespaces.as_deref().unwrap_or_default();
    !namespaces.is_empty() || term.namespace_selector.is_some()
}
