//! Plugin arguments as configuration files have them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeAffinity, TopologySpreadConstraint};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::object::selector::{NodeSelector, PreferredNodeAffinity};
use crate::problem::Problem;
use crate::resources::ResourceName;
use crate::scheduling::pod::SpreadConstraints;

use super::{Profile, ScoringStrategy, ShapePoint, SpreadDefaults, checks};

/// Plugins whose arguments are known upstream and have no effect here.
const WITHOUT_EFFECT: [&str; 2] = ["DynamicResources", "VolumeBinding"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginConfig {
    name: String,
    #[serde(default)]
    args: Value,
}

/// The members that say which type the arguments are of; the plugin's name says it already.
macro_rules! arguments {
    ($(struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        #[derive(Default)]
        struct $name {
            #[serde(rename = "apiVersion")]
            _api_version: Option<String>,
            #[serde(rename = "kind")]
            _kind: Option<String>,
            $($field: $type,)*
        }
    )*};
}

arguments! {
    struct FitJson {
        ignored_resources: Option<Vec<String>>,
        ignored_resource_groups: Option<Vec<String>>,
        scoring_strategy: Option<StrategyJson>,
    }
    struct BalancedJson {
        resources: Option<Vec<ResourceJson>>,
    }
    struct InterPodAffinityJson {
        hard_pod_affinity_weight: Option<i32>,
        ignore_preferred_terms_of_existing_pods: bool,
    }
    struct SpreadJson {
        default_constraints: Option<Vec<TopologySpreadConstraint>>,
        defaulting_type: Option<String>,
    }
    struct NodeAffinityJson {
        added_affinity: Option<NodeAffinity>,
    }
    struct PreemptionJson {
        min_candidate_nodes_percentage: Option<i32>,
        min_candidate_nodes_absolute: Option<i32>,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StrategyJson {
    #[serde(rename = "type", default)]
    kind: String,
    resources: Option<Vec<ResourceJson>>,
    requested_to_capacity_ratio: Option<RatioJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceJson {
    name: String,
    #[serde(default)]
    weight: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RatioJson {
    shape: Option<Vec<PointJson>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct PointJson {
    utilization: i64,
    score: i64,
}

impl Profile {
    /// The same profile with the arguments of a `pluginConfig` list; all problems are reported.
    ///
    /// What a plugin's arguments leave out takes upstream's default.
    pub fn with_plugin_config(mut self, list: &[Value]) -> Result<Profile, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, entry) in list.iter().enumerate() {
            let path = format!("pluginConfig[{index}]");
            let Some(entry) = read::<PluginConfig>(&path, entry, &mut problems) else {
                continue;
            };
            if !seen.insert(entry.name.clone()) {
                problems.push(Problem::duplicate(path, &entry.name));
                continue;
            }
            let args = Arguments {
                path: format!("{path}.args"),
                json: &entry.args,
                problems: &mut problems,
            };
            match entry.name.as_str() {
                "NodeResourcesFit" => args.fit(&mut self),
                "NodeResourcesBalancedAllocation" => args.balanced(&mut self),
                "InterPodAffinity" => args.inter_pod_affinity(&mut self),
                "PodTopologySpread" => args.spread(&mut self),
                "NodeAffinity" => args.node_affinity(&mut self),
                "DefaultPreemption" => args.preemption(&mut self),
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => problems.push(Problem::not_supported(
                    format!("{path}.name"),
                    name,
                    &[
                        "DefaultPreemption",
                        "InterPodAffinity",
                        "NodeAffinity",
                        "NodeResourcesBalancedAllocation",
                        "NodeResourcesFit",
                        "PodTopologySpread",
                    ],
                )),
            }
        }
        if problems.is_empty() {
            Ok(self)
        } else {
            Err(problems)
        }
    }
}

fn read<T: DeserializeOwned>(path: &str, json: &Value, problems: &mut Vec<Problem>) -> Option<T> {
    match T::deserialize(json) {
        Ok(read) => Some(read),
        Err(error) => {
            problems.push(Problem::wrong_type(path, json, error.to_string()));
            None
        }
    }
}

/// The arguments of one plugin, on their way into the profile.
struct Arguments<'a> {
    path: String,
    json: &'a Value,
    problems: &'a mut Vec<Problem>,
}

impl Arguments<'_> {
    fn read<T: DeserializeOwned + Default>(&mut self) -> Option<T> {
        if self.json.is_null() {
            return Some(T::default());
        }
        read(&self.path, self.json, self.problems)
    }

    fn fit(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<FitJson>() else {
            return;
        };
        let (path, problems) = (self.path, self.problems);
        let ignored = json.ignored_resources.unwrap_or_default();
        let groups = json.ignored_resource_groups.unwrap_or_default();
        checks::ignored_resources(&path, &ignored, &groups, problems);
        let mut fit = Profile::default().fit;
        fit.ignored_resources = ignored.into_iter().collect();
        fit.ignored_resource_groups = groups.into_iter().collect();
        if let Some(strategy) = json.scoring_strategy {
            let path = format!("{path}.scoringStrategy");
            let resources = weighted(strategy.resources);
            if !resources.is_empty() {
                checks::weights(&format!("{path}.resources"), &resources, problems);
                fit.resources = resources;
            }
            let shape = strategy.requested_to_capacity_ratio.map(|ratio| {
                let points = ratio.shape.unwrap_or_default().into_iter();
                points
                    .map(|point| ShapePoint {
                        utilization: point.utilization,
                        score: point.score,
                    })
                    .collect()
            });
            let chosen = checks::strategy(&path, &strategy.kind, shape, problems);
            fit.strategy = chosen.unwrap_or(ScoringStrategy::LeastAllocated);
        }
        profile.fit = fit;
    }

    fn balanced(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<BalancedJson>() else {
            return;
        };
        let resources = weighted(json.resources);
        profile.balanced_resources = if resources.is_empty() {
            Profile::default().balanced_resources
        } else {
            let path = format!("{}.resources", self.path);
            checks::balanced_resources(&path, &resources, self.problems);
            resources.into_iter().map(|(name, _)| name).collect()
        };
    }

    fn inter_pod_affinity(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<InterPodAffinityJson>() else {
            return;
        };
        let args = &mut profile.inter_pod_affinity;
        args.hard_pod_affinity_weight = json.hard_pod_affinity_weight.unwrap_or(1);
        args.ignore_preferred_terms_of_existing_pods = json.ignore_preferred_terms_of_existing_pods;
        checks::hard_weight(&self.path, args.hard_pod_affinity_weight, self.problems);
    }

    fn spread(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<SpreadJson>() else {
            return;
        };
        let list = json.default_constraints.unwrap_or_default();
        let kind = json.defaulting_type.unwrap_or_default();
        checks::spread_defaults(&self.path, &kind, &list, self.problems);
        profile.spread = if kind == "List" {
            let path = format!("{}.defaultConstraints", self.path);
            let no_labels = Default::default();
            let constraints = SpreadConstraints::from_api(&path, &list, &no_labels, self.problems);
            SpreadDefaults {
                is_system: false,
                constraints,
            }
        } else {
            SpreadDefaults::system()
        };
    }

    fn node_affinity(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<NodeAffinityJson>() else {
            return;
        };
        let affinity = json.added_affinity.unwrap_or_default();
        let path = format!("{}.addedAffinity", self.path);
        let required = affinity.required_during_scheduling_ignored_during_execution;
        profile.added_affinity.required = required.map(|selector| {
            let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution");
            NodeSelector::from_api(&path, &selector)
        });
        let wrong = profile.added_affinity.required.iter();
        self.problems
            .extend(wrong.flat_map(|selector| selector.problems().to_vec()));
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution;
        let preferred = preferred.filter(|terms| !terms.is_empty());
        profile.added_affinity.preferred = preferred.and_then(|terms| {
            let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution");
            PreferredNodeAffinity::from_api(&terms)
                .map_err(|found| self.problems.extend(checks::under(&path, found)))
                .ok()
        });
    }

    fn preemption(mut self, profile: &mut Profile) {
        let Some(json) = self.read::<PreemptionJson>() else {
            return;
        };
        let default = Profile::default().preemption;
        let args = &mut profile.preemption;
        args.min_candidate_nodes_percentage = json
            .min_candidate_nodes_percentage
            .unwrap_or(default.min_candidate_nodes_percentage);
        args.min_candidate_nodes_absolute = json
            .min_candidate_nodes_absolute
            .unwrap_or(default.min_candidate_nodes_absolute);
        checks::preemption(&self.path, *args, self.problems);
    }
}

/// Resources with their weights; a weight of zero is one that was left out.
fn weighted(resources: Option<Vec<ResourceJson>>) -> Vec<(ResourceName, i64)> {
    let resources = resources.unwrap_or_default().into_iter();
    resources
        .map(|resource| {
            let weight = if resource.weight == 0 {
                1
            } else {
                resource.weight
            };
            (ResourceName::new(resource.name), weight)
        })
        .collect()
}
