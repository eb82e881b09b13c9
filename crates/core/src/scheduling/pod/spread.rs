//! Topology spread constraints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use crate::object::selector::LabelSelector;
use crate::problem::Problem;

/// The constraints of a pod, split by what happens when one cannot be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadConstraints {
    /// `DoNotSchedule`.
    pub hard: Vec<SpreadConstraint>,
    /// `ScheduleAnyway`.
    pub soft: Vec<SpreadConstraint>,
    /// Whether the list has anything at all; if not, the scheduler's defaults apply.
    pub is_stated: bool,
}

/// How evenly pods are to be spread over one kind of domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    /// The most by which a domain may exceed the emptiest one.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// Which pods are counted; label values of the pod itself are merged in.
    pub selector: LabelSelector,
    /// With fewer domains than this, the emptiest counts as empty.
    pub min_domains: i32,
    /// Whether nodes that the pod may not run on count.
    pub node_affinity_policy: InclusionPolicy,
    /// Whether nodes with taints that the pod does not tolerate count.
    pub node_taints_policy: InclusionPolicy,
}

/// Whether a rule about nodes applies when nodes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InclusionPolicy {
    /// Nodes that break the rule do not count.
    Honor,
    /// All nodes count.
    Ignore,
}

impl SpreadConstraints {
    /// Reads a list that stands at `path`, for a pod with those labels.
    pub fn from_api(
        path: &str,
        constraints: &[TopologySpreadConstraint],
        pod_labels: &BTreeMap<String, String>,
        problems: &mut Vec<Problem>,
    ) -> SpreadConstraints {
        let mut split = SpreadConstraints {
            is_stated: !constraints.is_empty(),
            ..SpreadConstraints::default()
        };
        for (index, api) in constraints.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let part = match api.when_unsatisfiable.as_str() {
                "DoNotSchedule" => &mut split.hard,
                "ScheduleAnyway" => &mut split.soft,
                other => {
                    let path = format!("{path}.whenUnsatisfiable");
                    problems.push(match other {
                        "" => Problem::required(path, "can not be empty"),
                        _ => Problem::not_supported(
                            path,
                            other,
                            &["DoNotSchedule", "ScheduleAnyway"],
                        ),
                    });
                    continue;
                }
            };
            match SpreadConstraint::from_api(&path, api, pod_labels) {
                Ok(constraint) => part.push(constraint),
                Err(problem) => problems.push(problem),
            }
        }
        split
    }
}

impl SpreadConstraint {
    /// Matches v1.36 plugins/podtopologyspread/common.go, `filterTopologySpreadConstraints`.
    fn from_api(
        path: &str,
        api: &TopologySpreadConstraint,
        pod_labels: &BTreeMap<String, String>,
    ) -> Result<SpreadConstraint, Problem> {
        let selector = LabelSelector::from_api(api.label_selector.as_ref()).map_err(|error| {
            let path = format!("{path}.labelSelector");
            Problem::invalid(path, "", error.to_string())
        })?;
        let policy = |stated: &Option<String>, otherwise: InclusionPolicy| match stated.as_deref() {
            Some("Honor") => InclusionPolicy::Honor,
            Some(_) => InclusionPolicy::Ignore,
            None => otherwise,
        };
        let keys = api.match_label_keys.iter().flatten();
        let own: BTreeMap<String, String> = keys
            .filter_map(|key| Some((key.clone(), pod_labels.get(key)?.clone())))
            .collect();
        Ok(SpreadConstraint {
            max_skew: api.max_skew,
            topology_key: api.topology_key.clone(),
            selector: selector.and(&LabelSelector::from_set(&own)),
            min_domains: api.min_domains.unwrap_or(1),
            node_affinity_policy: policy(&api.node_affinity_policy, InclusionPolicy::Honor),
            node_taints_policy: policy(&api.node_taints_policy, InclusionPolicy::Ignore),
        })
    }
}
