//! A pod.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::claims::ResourceClaims;
use super::features::required_features;
use super::volume::Volume;
use crate::problem::Problem;
use crate::scheduling::pod::{SchedulingPod, SpreadConstraint};

/// The scheduler's view of a pod, pending or assigned, and what only hints ask about. It can be
/// used as the view.
#[derive(Clone, Debug)]
pub struct PodFacts {
    /// The fields that all decisions read.
    pub view: Arc<SchedulingPod>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Its claims for devices.
    pub resource_claims: ResourceClaims,
    /// Features that a node has to declare to run it.
    pub required_features: BTreeSet<&'static str>,
    /// The hard constraints on spreading that the profile sets for a pod without its own: what
    /// [`hard_constraints`](crate::scheduling::plugins::pod_topology_spread::hard_constraints)
    /// gives for it.
    pub default_spread: Vec<SpreadConstraint>,
}

impl PodFacts {
    /// Reads a pod; all its malformed parts are reported. No default constraints apply, as in the
    /// default profile, until the caller sets them.
    pub fn from_api(pod: &Pod) -> Result<PodFacts, Vec<Problem>> {
        let view = SchedulingPod::from_api(pod)?;
        let no_spec = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&no_spec);
        Ok(PodFacts {
            volumes: Volume::of_pod(&view.pod_ref.name, spec),
            resource_claims: ResourceClaims::of_pod(pod),
            required_features: required_features(spec),
            ..PodFacts::new(Arc::new(view))
        })
    }

    /// A pod of which only the view is known: one without volumes, claims for devices, and need
    /// for features of nodes.
    pub fn new(view: Arc<SchedulingPod>) -> PodFacts {
        PodFacts {
            view,
            volumes: Vec::new(),
            resource_claims: ResourceClaims::default(),
            required_features: BTreeSet::new(),
            default_spread: Vec::new(),
        }
    }

    /// Whether it takes up room on a node, or has room set aside on one.
    pub fn is_on_a_node(&self) -> bool {
        self.node_name.is_some() || self.nominated_node_name.is_some()
    }

    /// The constraints with `DoNotSchedule` in force, its own or the default ones.
    pub fn hard_spread(&self) -> &[SpreadConstraint] {
        if self.spread.is_stated {
            &self.spread.hard
        } else {
            &self.default_spread
        }
    }
}

impl Deref for PodFacts {
    type Target = SchedulingPod;

    fn deref(&self) -> &SchedulingPod {
        &self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;
    use serde_json::json;

    #[test]
    fn reads_all_facts_that_hints_use() {
        let mut api = pod("a").build();
        api.spec = serde_json::from_value(json!({
            "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}],
            "hostNetwork": true, "hostUsers": false,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}],
        }))
        .unwrap();
        let facts = PodFacts::from_api(&api).unwrap();
        assert_eq!(facts.host_ports.len(), 1);
        assert_eq!(facts.volumes[0].claim_name(), Some("data"));
        assert!(facts.resource_claims.includes("mine"));
        assert_eq!(facts.required_features.len(), 1);
        assert!(!facts.is_on_a_node());
    }
}
