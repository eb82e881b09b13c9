//! Plugin arguments as configuration files have them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeAffinity, TopologySpreadConstraint};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::document::{Node, item_path};
use crate::config::shape::{Field, Shape};
use crate::object::selector::{NodeSelector, PreferredNodeAffinity};
use crate::problem::{Kind, Position, Problem};
use crate::resources::ResourceName;
use crate::scheduling::pod::SpreadConstraints;
use crate::scheduling::registry;

use super::{Profile, ScoringStrategy, ShapePoint, SpreadDefaults, checks, plugin_args_fields};

/// The position of values that are not in a file.
const NO_POSITION: Position = Position { line: 1, column: 1 };

/// Unknown fields are reported from the tree, so they are ignored here.
macro_rules! arguments {
    ($(struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct $name {
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
    struct VolumeBindingJson {
        bind_timeout_seconds: Option<i64>,
        shape: Option<Vec<PointJson>>,
    }
    struct DynamicResourcesJson {
        filter_timeout: Option<String>,
        binding_timeout: Option<String>,
    }
    struct PreemptionJson {
        min_candidate_nodes_percentage: Option<i32>,
        min_candidate_nodes_absolute: Option<i32>,
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StrategyJson {
    #[serde(rename = "type")]
    kind: String,
    resources: Option<Vec<ResourceJson>>,
    requested_to_capacity_ratio: Option<RatioJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceJson {
    name: String,
    weight: i64,
}

#[derive(Deserialize)]
struct RatioJson {
    shape: Option<Vec<PointJson>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PointJson {
    utilization: i64,
    score: i64,
}

impl Profile {
    /// The same profile with the arguments of a `pluginConfig` list; all problems are reported.
    ///
    /// Omitted arguments of a plugin take upstream's defaults.
    pub fn with_plugin_config(mut self, list: &[Value]) -> Result<Profile, Vec<Problem>> {
        let list = Node::from_json(&list.into(), NO_POSITION);
        let mut problems = Vec::new();
        self.apply_plugin_config(&list, "pluginConfig", &mut problems);
        if problems.is_empty() {
            return Ok(self);
        }
        let without_place = |problem: Problem| problem.at(None);
        Err(problems.into_iter().map(without_place).collect())
    }

    /// Takes over the arguments of a `pluginConfig` list that stands at `path`, as far as they can
    /// be read.
    pub(in crate::scheduling) fn apply_plugin_config(
        &mut self,
        list: &Node,
        path: &str,
        problems: &mut Vec<Problem>,
    ) {
        Shape::Records(plugin_args_fields::PLUGIN_CONFIG).check(list, path, problems);
        let mut seen = BTreeSet::new();
        for (index, entry) in list.as_sequence().unwrap_or_default().iter().enumerate() {
            let path = item_path(path, index);
            let Some(name) = entry.get("name").and_then(Node::as_text) else {
                continue;
            };
            if !seen.insert(name) {
                problems.push(Problem::duplicate(path, name));
            } else if registry::REMOVED.contains(&name) {
                problems.push(registry::removed(&path, name));
            } else if registry::find(name).is_none() {
                let path = format!("{path}.name");
                problems.push(registry::no_such(&path, name, "plugin"));
            } else if let Some(fields) = plugin_args_fields::of(name) {
                let path = format!("{path}.args");
                self.apply_args(name, entry.get("args"), fields, path, problems);
            }
        }
    }

    fn apply_args(
        &mut self,
        plugin: &str,
        args: Option<&Node>,
        fields: &'static [Field],
        path: String,
        problems: &mut Vec<Problem>,
    ) {
        let nothing = Node::from_json(&Value::Null, NO_POSITION);
        let args = args.unwrap_or(&nothing);
        let before = problems.len();
        Shape::Record(fields).check(args, &path, problems);
        checks::type_of(plugin, args, &path, problems);
        // Values are checked in spite of unknown names, but not of wrong types.
        let mut found = problems[before..].iter();
        if found.any(|problem| problem.kind == Kind::TypeInvalid) {
            return;
        }
        // Duplicate keys of the tree have been reported.
        let json = args.to_json(&path, &mut Vec::new());
        let args = Arguments {
            path,
            json: &json,
            problems,
        };
        match plugin {
            "NodeResourcesFit" => args.fit(self),
            "NodeResourcesBalancedAllocation" => args.balanced(self),
            "InterPodAffinity" => args.inter_pod_affinity(self),
            "PodTopologySpread" => args.spread(self),
            "NodeAffinity" => args.node_affinity(self),
            "DefaultPreemption" => args.preemption(self),
            "VolumeBinding" => args.volume_binding(),
            "DynamicResources" => args.dynamic_resources(),
            _ => {}
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

/// The arguments of one plugin while they are applied to the profile.
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

    /// Nothing here binds volumes; the arguments are only checked.
    fn volume_binding(mut self) {
        let Some(json) = self.read::<VolumeBindingJson>() else {
            return;
        };
        let shape = json.shape.map(|points| {
            let points = points.into_iter();
            points
                .map(|point| (point.utilization, point.score))
                .collect::<Vec<_>>()
        });
        let seconds = json.bind_timeout_seconds;
        checks::volume_binding(&self.path, seconds, shape.as_deref(), self.problems);
    }

    /// Nothing here allocates devices; the arguments are only checked.
    fn dynamic_resources(mut self) {
        let Some(json) = self.read::<DynamicResourcesJson>() else {
            return;
        };
        let parse = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let (filter, binding) = (parse(json.filter_timeout), parse(json.binding_timeout));
        checks::dynamic_resources(&self.path, filter, binding, self.problems);
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
