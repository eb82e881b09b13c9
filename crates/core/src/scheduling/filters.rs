//! All filters of a profile on one node.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::object::identity::{NodeName, PodUid};
use crate::object::node::NodeView;

use super::cluster::{Cluster, NodeState};
use super::plugin_names::{FilterPlugin, Rejection};
use super::plugins::{
    inter_pod_affinity, node_affinity, node_name, node_ports, node_resources_fit,
    node_unschedulable, pod_topology_spread, taint_toleration,
};
use super::pod::{NamedNodes, SchedulingPod};
use super::profile::Profile;

/// The result of the filters before any single node is looked at.
#[derive(Clone, Debug)]
pub struct PreFilter {
    /// Why no node will do.
    pub rejection: Option<Rejection>,
    /// The only nodes that come into question, if the pod names them.
    pub node_names: Option<BTreeSet<NodeName>>,
    /// Filters with nothing to say about this pod, in order.
    pub skipped: Vec<FilterPlugin>,
}

impl PreFilter {
    /// Runs the filters that look at the pod alone; those that count pods use `state`.
    ///
    /// Matches v1.36 framework/runtime/framework.go, `RunPreFilterPlugins`.
    pub fn new(profile: &Profile, pod: &SchedulingPod, state: &FilterState) -> PreFilter {
        let mut pre_filter = PreFilter {
            rejection: None,
            node_names: None,
            skipped: Vec::new(),
        };
        for plugin in &profile.filters {
            let is_skipped = match plugin {
                FilterPlugin::NodeAffinity => {
                    node_affinity::skips_filter(pod, &profile.added_affinity)
                }
                FilterPlugin::NodePorts => node_ports::skips_filter(pod),
                FilterPlugin::PodTopologySpread => state.spread.is_none(),
                FilterPlugin::InterPodAffinity => state.affinity.is_none(),
                _ => false,
            };
            if is_skipped {
                pre_filter.skipped.push(*plugin);
            } else if *plugin == FilterPlugin::NodeAffinity {
                pre_filter.rejection = node_affinity::pre_filter(pod);
                if pre_filter.rejection.is_some() {
                    break;
                }
                if let NamedNodes::Only(names) = &pod.node_rules.named {
                    pre_filter.node_names = Some(names.clone());
                }
            }
        }
        pre_filter
    }

    /// Why the node does not even come into question.
    pub fn reject(&self, node: &NodeName) -> Option<Rejection> {
        if self.rejection.is_some() {
            return self.rejection.clone();
        }
        let names = self.node_names.as_ref()?;
        (!names.contains(node)).then(PreFilter::rejection_of_unnamed)
    }

    /// The rejection of nodes that a pod does not name, if it names any.
    pub(super) fn rejection_of_unnamed() -> Rejection {
        let plugin = FilterPlugin::NodeAffinity;
        Rejection::by_no_plugin(format!("node(s) didn't satisfy plugin(s) [{plugin}]"))
    }
}

/// The counts of the filters that look beyond a node.
///
/// `None` where the filter is not in the profile or has nothing to say.
#[derive(Clone, Debug)]
pub struct FilterState {
    /// Of `PodTopologySpread`.
    pub spread: Option<pod_topology_spread::FilterState>,
    /// Of `InterPodAffinity`.
    pub affinity: Option<inter_pod_affinity::FilterState>,
}

impl FilterState {
    /// Counts over all nodes and their pods.
    pub fn scan(cluster: &Cluster, profile: &Profile, pod: &SchedulingPod) -> FilterState {
        let nodes = || cluster.nodes().map(|(_, node)| node);
        let is_on = |plugin: FilterPlugin| profile.filters.contains(&plugin);
        let spread = is_on(FilterPlugin::PodTopologySpread).then(|| {
            let constraints =
                pod_topology_spread::hard_constraints(pod, &profile.spread, &cluster.owners);
            pod_topology_spread::FilterState::scan(
                pod,
                constraints.into_owned(),
                nodes(),
                profile.comparison_operators,
            )
        });
        let affinity = is_on(FilterPlugin::InterPodAffinity)
            .then(|| inter_pod_affinity::FilterState::scan(pod, cluster, nodes()));
        FilterState {
            spread: spread.flatten(),
            affinity: affinity.flatten(),
        }
    }

    fn change(
        &mut self,
        profile: &Profile,
        pod: &SchedulingPod,
        changed: &SchedulingPod,
        node: &NodeView,
        by: i64,
    ) {
        if let Some(spread) = &mut self.spread {
            let comparison = profile.comparison_operators;
            spread.change(pod, changed, node, by, comparison);
        }
        if let Some(affinity) = &mut self.affinity {
            affinity.change(pod, changed, node, by);
        }
    }
}

/// A node and the counts, on trial: what if these pods came or went?
#[derive(Clone, Debug)]
pub struct Trial {
    /// The node with the pods that it would have.
    pub node: NodeState,
    /// The counts as they would be.
    pub state: FilterState,
}

/// One scheduling cycle: a pod that is to be placed, the cluster and a profile.
#[derive(Clone, Copy, Debug)]
pub struct Cycle<'a> {
    /// The nodes and pods.
    pub cluster: &'a Cluster,
    /// The profile's filters and scores.
    pub profile: &'a Profile,
    /// The pod.
    pub pod: &'a SchedulingPod,
}

impl Cycle<'_> {
    /// Why one filter rejects the node; `None` too if it has nothing to say about the pod.
    pub fn filter_by(
        &self,
        plugin: FilterPlugin,
        node: &NodeState,
        state: &FilterState,
    ) -> Option<Rejection> {
        let Cycle { profile, pod, .. } = self;
        let comparison = profile.comparison_operators;
        let view = &node.view;
        match plugin {
            FilterPlugin::NodeUnschedulable => node_unschedulable::filter(pod, view, comparison),
            FilterPlugin::NodeName => node_name::filter(pod, view),
            FilterPlugin::TaintToleration => taint_toleration::filter(pod, view, comparison),
            FilterPlugin::NodeAffinity => node_affinity::filter(pod, &profile.added_affinity, view),
            FilterPlugin::NodePorts => node_ports::filter(pod, node),
            FilterPlugin::NodeResourcesFit => node_resources_fit::filter(pod, &profile.fit, node),
            FilterPlugin::PodTopologySpread => state.spread.as_ref()?.filter(pod, &view.labels),
            FilterPlugin::InterPodAffinity => state.affinity.as_ref()?.filter(pod, &view.labels),
        }
    }

    /// Why the node is rejected: the first filter that does so decides.
    pub fn filter(&self, node: &NodeState, state: &FilterState) -> Option<Rejection> {
        let mut filters = self.profile.filters.iter();
        filters.find_map(|plugin| self.filter_by(*plugin, node, state))
    }

    /// Why the node is rejected, with regard for pods that wait for room there.
    ///
    /// The pod must fit both with those of equal or higher priority in place, as it must not take
    /// what was freed for them, and without them, as they may never come. Matches v1.36
    /// framework/runtime/framework.go, `RunFilterPluginsWithNominatedPods`.
    pub fn filter_with_nominated(
        &self,
        node: &NodeState,
        state: &FilterState,
    ) -> Option<Rejection> {
        let with_them = self.with_nominated(node, state, Some(&self.pod.uid));
        let rejection = with_them.and_then(|trial| self.filter(&trial.node, &trial.state));
        rejection.or_else(|| self.filter(node, state))
    }

    /// The node with those pods in place that wait for room there and go before the pod.
    ///
    /// `None` if there are none. `own` is the pod's own place among them, which does not count.
    pub fn with_nominated(
        &self,
        node: &NodeState,
        state: &FilterState,
        own: Option<&PodUid>,
    ) -> Option<Trial> {
        let nominated = self.cluster.nominated_pods(&node.view.name).iter();
        let mut ahead = nominated
            .filter(|other| other.priority >= self.pod.priority && Some(&other.uid) != own)
            .peekable();
        ahead.peek()?;
        let mut trial = Trial {
            node: node.clone(),
            state: state.clone(),
        };
        for other in ahead {
            self.add_on_trial(&mut trial, other);
        }
        Some(trial)
    }

    /// Puts a pod on the node of the trial.
    pub fn add_on_trial(&self, trial: &mut Trial, added: &Arc<SchedulingPod>) {
        trial.node.add_pod(Arc::clone(added));
        let view = &trial.node.view;
        trial.state.change(self.profile, self.pod, added, view, 1);
    }

    /// Takes a pod off the node of the trial.
    pub fn remove_on_trial(&self, trial: &mut Trial, removed: &SchedulingPod) {
        trial.node.remove_pod(removed);
        let view = &trial.node.view;
        trial
            .state
            .change(self.profile, self.pod, removed, view, -1);
    }
}
