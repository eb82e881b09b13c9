//! Validation of plugin arguments.
//!
//! Matches v1.36 pkg/scheduler/apis/config/validation/validation_pluginargs.go.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use crate::config::document::Node;
use crate::duration::Duration;
use crate::object::syntax::check_label_key;
use crate::problem::Problem;
use crate::resources::ResourceName;
use crate::scheduling::registry::{API_VERSION, GROUP};

use super::{PreemptionArgs, SHAPE_SCORE_SCALE, ScoringStrategy, ShapePoint};

pub(super) fn ignored_resources(
    path: &str,
    resources: &[String],
    groups: &[String],
    problems: &mut Vec<Problem>,
) {
    for (index, name) in resources.iter().enumerate() {
        let path = format!("{path}.ignoredResources[{index}]");
        check_name(path, name, problems);
    }
    for (index, group) in groups.iter().enumerate() {
        let path = format!("{path}.ignoredResourceGroups[{index}]");
        if group.contains('/') {
            let rule = "resource group name can't contain '/'";
            problems.push(Problem::invalid(&path, group, rule));
        }
        check_name(path, group, problems);
    }
}

fn check_name(path: String, name: &str, problems: &mut Vec<Problem>) {
    let broken = check_label_key(name);
    if !broken.is_empty() {
        problems.push(Problem::invalid(path, name, broken.join("; ")));
    }
}

pub(super) fn weights(path: &str, resources: &[(ResourceName, i64)], problems: &mut Vec<Problem>) {
    for (index, (name, weight)) in resources.iter().enumerate() {
        if !(1..=100).contains(weight) {
            let rule = format!("resource weight of {name} not in valid range (0, 100]");
            let path = format!("{path}[{index}].weight");
            problems.push(Problem::invalid_bare(path, weight, rule));
        }
    }
}

pub(super) fn balanced_resources(
    path: &str,
    resources: &[(ResourceName, i64)],
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (index, (name, weight)) in resources.iter().enumerate() {
        if !seen.insert(name) {
            let path = format!("{path}[{index}].name");
            problems.push(Problem::duplicate(path, name.as_str()));
        }
        if *weight != 1 {
            let path = format!("{path}[{index}].weight");
            problems.push(Problem::invalid_bare(path, weight, "must be 1"));
        }
    }
}

/// The strategy of that name, its shape scaled.
pub(super) fn strategy(
    path: &str,
    kind: &str,
    shape: Option<Vec<ShapePoint>>,
    problems: &mut Vec<Problem>,
) -> Option<ScoringStrategy> {
    const SUPPORTED: [&str; 3] = [
        "LeastAllocated",
        "MostAllocated",
        "RequestedToCapacityRatio",
    ];
    let ratio_path = format!("{path}.requestedToCapacityRatio");
    match (kind, shape) {
        ("RequestedToCapacityRatio", Some(points)) => {
            check_shape(&format!("{ratio_path}.shape"), &points, problems);
            let scaled = points.into_iter().map(|point| ShapePoint {
                score: point.score.saturating_mul(SHAPE_SCORE_SCALE),
                ..point
            });
            Some(ScoringStrategy::RequestedToCapacityRatio(scaled.collect()))
        }
        ("RequestedToCapacityRatio", None) => {
            let rule = "must be specified when type is RequestedToCapacityRatio";
            problems.push(Problem::required(ratio_path, rule));
            None
        }
        ("LeastAllocated", None) => Some(ScoringStrategy::LeastAllocated),
        ("MostAllocated", None) => Some(ScoringStrategy::MostAllocated),
        ("LeastAllocated" | "MostAllocated", Some(_)) => {
            let rule = "must be nil when type is not RequestedToCapacityRatio";
            problems.push(Problem::forbidden(ratio_path, rule));
            None
        }
        (other, _) => {
            let path = format!("{path}.type");
            problems.push(Problem::not_supported(path, other, &SUPPORTED));
            None
        }
    }
}

fn check_shape(path: &str, shape: &[ShapePoint], problems: &mut Vec<Problem>) {
    if shape.is_empty() {
        problems.push(Problem::required(
            path,
            "at least one point must be specified",
        ));
    }
    let mut pairs = shape.windows(2).enumerate();
    let falling = pairs.find(|(_, pair)| pair[0].utilization >= pair[1].utilization);
    if let Some((index, pair)) = falling {
        problems.push(Problem::invalid_bare(
            format!("{path}[{}].utilization", index + 1),
            pair[1].utilization,
            "values must be sorted in increasing order",
        ));
    }
    for (index, point) in shape.iter().enumerate() {
        for (field, value, highest) in [
            ("utilization", point.utilization, 100),
            ("score", point.score, 10),
        ] {
            if !(0..=highest).contains(&value) {
                let rule = format!("not in valid range [0, {highest}]");
                let path = format!("{path}[{index}].{field}");
                problems.push(Problem::invalid_bare(path, value, rule));
            }
        }
    }
}

pub(super) fn hard_weight(path: &str, weight: i32, problems: &mut Vec<Problem>) {
    if !(0..=100).contains(&weight) {
        let path = format!("{path}.hardPodAffinityWeight");
        let rule = "not in valid range [0, 100]";
        problems.push(Problem::invalid_bare(path, weight, rule));
    }
}

pub(super) fn spread_defaults(
    path: &str,
    kind: &str,
    list: &[TopologySpreadConstraint],
    problems: &mut Vec<Problem>,
) {
    if !["", "System", "List"].contains(&kind) {
        let path = format!("{path}.defaultingType");
        problems.push(Problem::not_supported(path, kind, &["System", "List"]));
    } else if kind != "List" && !list.is_empty() {
        let path = format!("{path}.defaultingType");
        let rule = "when .defaultConstraints are not empty";
        problems.push(Problem::invalid(path, kind, rule));
    }
    for (index, constraint) in list.iter().enumerate() {
        let path = format!("{path}.defaultConstraints[{index}]");
        if constraint.max_skew <= 0 {
            problems.push(Problem::invalid_bare(
                format!("{path}.maxSkew"),
                constraint.max_skew,
                "not in valid range (0, inf)",
            ));
        }
        let key_path = format!("{path}.topologyKey");
        if constraint.topology_key.is_empty() {
            problems.push(Problem::required(key_path, "can not be empty"));
        } else {
            check_name(key_path, &constraint.topology_key, problems);
        }
        if constraint.label_selector.is_some() {
            problems.push(Problem::forbidden(
                format!("{path}.labelSelector"),
                "constraint must not define a selector, as they deduced for each pod",
            ));
        }
        let key = (&constraint.topology_key, &constraint.when_unsatisfiable);
        let mut earlier = list[..index].iter();
        if earlier.any(|other| (&other.topology_key, &other.when_unsatisfiable) == key) {
            let pair = format!("{{{}, {}}}", key.0, key.1);
            problems.push(Problem::duplicate(path, &pair));
        }
    }
}

pub(super) fn preemption(path: &str, args: PreemptionArgs, problems: &mut Vec<Problem>) {
    let percentage = args.min_candidate_nodes_percentage;
    let absolute = args.min_candidate_nodes_absolute;
    let percentage_path = format!("{path}.minCandidateNodesPercentage");
    let absolute_path = format!("{path}.minCandidateNodesAbsolute");
    if !(0..=100).contains(&percentage) {
        let rule = "not in valid range [0, 100]";
        problems.push(Problem::invalid_bare(&percentage_path, percentage, rule));
    }
    if absolute < 0 {
        let rule = "not in valid range [0, inf)";
        problems.push(Problem::invalid_bare(&absolute_path, absolute, rule));
    }
    if percentage == 0 && absolute == 0 {
        let rule = "cannot be zero at the same time as minCandidateNodesAbsolute";
        problems.push(Problem::invalid_bare(&percentage_path, 0, rule));
        let rule = "cannot be zero at the same time as minCandidateNodesPercentage";
        problems.push(Problem::invalid_bare(&absolute_path, 0, rule));
    }
}

/// Arguments may say of which type they are; then they must be of the plugin's.
///
/// Matches v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types.go, `decodeNestedObjects`.
pub(super) fn type_of(plugin: &str, args: &Node, path: &str, problems: &mut Vec<Problem>) {
    let stated = |key: &str| args.get(key).and_then(Node::as_text);
    let path = |key: &str| format!("{path}.{key}");
    if let Some(version) = stated("apiVersion").filter(|version| *version != API_VERSION) {
        let problem = Problem::not_supported(path("apiVersion"), version, &[API_VERSION]);
        problems.push(problem);
    }
    let expected = format!("{plugin}Args");
    if let Some(kind) = stated("kind").filter(|kind| *kind != expected) {
        let rule = format!(
            "args for plugin {plugin} were not of type {expected}.{GROUP}, got {kind}.{GROUP}"
        );
        problems.push(Problem::invalid(path("kind"), kind, rule));
    }
}

pub(super) fn volume_binding(
    path: &str,
    bind_timeout_seconds: Option<i64>,
    shape: Option<&[(i64, i64)]>,
    problems: &mut Vec<Problem>,
) {
    if let Some(seconds) = bind_timeout_seconds.filter(|seconds| *seconds < 0) {
        let rule = "invalid BindTimeoutSeconds, should not be a negative value";
        let path = format!("{path}.bindTimeoutSeconds");
        problems.push(Problem::invalid_bare(path, seconds, rule));
    }
    if let Some(points) = shape {
        let points = points.iter().map(|(utilization, score)| {
            format!("{{\"Utilization\":{utilization},\"Score\":{score}}}")
        });
        let shown = format!("[{}]", points.collect::<Vec<_>>().join(","));
        let rule = "unexpected field `shape`, remove it or turn on the feature gate \
                    StorageCapacityScoring";
        problems.push(Problem::invalid_bare(format!("{path}.shape"), shown, rule));
    }
}

pub(super) fn dynamic_resources(
    path: &str,
    filter_timeout: Option<Duration>,
    binding_timeout: Option<Duration>,
    problems: &mut Vec<Problem>,
) {
    let (filter_rule, binding_rule) = ("must be zero or positive", "must be at least 1 second");
    for (field, timeout, least, rule) in [
        ("filterTimeout", filter_timeout, Duration::ZERO, filter_rule),
        (
            "bindingTimeout",
            binding_timeout,
            Duration::from_secs(1),
            binding_rule,
        ),
    ] {
        if let Some(timeout) = timeout.filter(|timeout| *timeout < least) {
            let path = format!("{path}.{field}");
            problems.push(Problem::invalid(path, &timeout.to_string(), rule));
        }
    }
}

/// The problems of something that stands at `path`.
pub(super) fn under(path: &str, problems: Vec<Problem>) -> impl Iterator<Item = Problem> {
    problems.into_iter().map(move |problem| Problem {
        path: format!("{path}{}", problem.path),
        ..problem
    })
}
