//! The arguments of a profile's plugins as a configuration would state them.

use serde_json::{Value, json};

use crate::resources::ResourceName;
use crate::scheduling::pod::{InclusionPolicy, SpreadConstraint};

use super::{Profile, SHAPE_SCORE_SCALE, ScoringStrategy};

/// One argument of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Whose it is.
    pub plugin: &'static str,
    /// The path of its field: `scoringStrategy.type`.
    pub field: &'static str,
    /// Its value. Node affinity is a text, as selectors are written.
    pub value: Value,
}

impl Profile {
    /// The arguments that are not the default ones.
    pub fn changed_arguments(&self) -> Vec<Argument> {
        let default = Profile::default().arguments();
        let own = self.arguments().into_iter();
        own.filter(|argument| !default.contains(argument)).collect()
    }

    fn arguments(&self) -> Vec<Argument> {
        let fit = &self.fit;
        let (strategy, shape) = match &fit.strategy {
            ScoringStrategy::LeastAllocated => ("LeastAllocated", Value::Null),
            ScoringStrategy::MostAllocated => ("MostAllocated", Value::Null),
            ScoringStrategy::RequestedToCapacityRatio(points) => {
                let points = points.iter().map(|point| {
                    let score = point.score / SHAPE_SCORE_SCALE;
                    json!({"utilization": point.utilization, "score": score})
                });
                ("RequestedToCapacityRatio", points.collect())
            }
        };
        let balanced = self.balanced_resources.iter().map(|name| (name, 1));
        let affinity = &self.added_affinity;
        let required = affinity.required.as_ref().map(ToString::to_string);
        let preferred = affinity.preferred.as_ref().map(ToString::to_string);
        let (defaulting, constraints) = self.spread_arguments();
        let near = self.inter_pod_affinity;
        let preemption = self.preemption;
        #[rustfmt::skip]
        let all = [
            ("NodeResourcesFit", "ignoredResources", json!(fit.ignored_resources)),
            ("NodeResourcesFit", "ignoredResourceGroups", json!(fit.ignored_resource_groups)),
            ("NodeResourcesFit", "scoringStrategy.type", json!(strategy)),
            ("NodeResourcesFit", "scoringStrategy.resources",
                weighted(fit.resources.iter().map(|(name, weight)| (name, *weight)))),
            ("NodeResourcesFit", "scoringStrategy.requestedToCapacityRatio.shape", shape),
            ("NodeResourcesBalancedAllocation", "resources", weighted(balanced)),
            ("InterPodAffinity", "hardPodAffinityWeight", json!(near.hard_pod_affinity_weight)),
            ("InterPodAffinity", "ignorePreferredTermsOfExistingPods",
                json!(near.ignore_preferred_terms_of_existing_pods)),
            ("PodTopologySpread", "defaultingType", json!(defaulting)),
            ("PodTopologySpread", "defaultConstraints", constraints),
            ("NodeAffinity", "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                json!(required)),
            ("NodeAffinity", "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution",
                json!(preferred)),
            ("DefaultPreemption", "minCandidateNodesPercentage",
                json!(preemption.min_candidate_nodes_percentage)),
            ("DefaultPreemption", "minCandidateNodesAbsolute",
                json!(preemption.min_candidate_nodes_absolute)),
        ];
        let argument = |(plugin, field, value)| Argument {
            plugin,
            field,
            value,
        };
        all.into_iter().map(argument).collect()
    }

    fn spread_arguments(&self) -> (&'static str, Value) {
        if self.spread.is_system {
            return ("System", json!([]));
        }
        let constraints = &self.spread.constraints;
        let hard = constraints.hard.iter().map(|own| (own, "DoNotSchedule"));
        let soft = constraints.soft.iter().map(|own| (own, "ScheduleAnyway"));
        let all = hard.chain(soft);
        (
            "List",
            all.map(|(own, action)| constraint(own, action)).collect(),
        )
    }
}

fn weighted<'a>(resources: impl Iterator<Item = (&'a ResourceName, i64)>) -> Value {
    resources
        .map(|(name, weight)| json!({"name": name.as_str(), "weight": weight}))
        .collect()
}

fn constraint(own: &SpreadConstraint, when_unsatisfiable: &str) -> Value {
    let policy = |policy: InclusionPolicy| match policy {
        InclusionPolicy::Honor => "Honor",
        InclusionPolicy::Ignore => "Ignore",
    };
    json!({
        "maxSkew": own.max_skew,
        "topologyKey": own.topology_key,
        "whenUnsatisfiable": when_unsatisfiable,
        "minDomains": own.min_domains,
        "nodeAffinityPolicy": policy(own.node_affinity_policy),
        "nodeTaintsPolicy": policy(own.node_taints_policy),
    })
}
