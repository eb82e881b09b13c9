//! What would help a pod that waits: the least that would have to change.

use plimsoll_core::scheduling::cluster::{NodeSlot, NodeState};
use plimsoll_core::scheduling::filtered::Filtered;
use plimsoll_core::scheduling::plugin::FilterPlugin;

use super::pending::{Case, Shortage, shortages};
use super::report::NodeVerdict;

/// How many ways out are told.
const FIXES: usize = 3;

/// Ways out, the nearest first: nodes with the fewest filters against them, and among those the
/// ones that lack least. One way per kind of obstacle.
pub(super) fn fixes(case: &Case<'_>, filtered: &Filtered, verdicts: &[NodeVerdict]) -> Vec<String> {
    if let Some(ready) = verdicts.iter().find(|node| node.rejections.is_empty()) {
        let node = &ready.node;
        return vec![format!(
            "{node} would do as things are; the scheduler has not tried again yet, or does not run"
        )];
    }
    let mut ways: Vec<Way<'_>> = filtered
        .nodes
        .iter()
        .filter_map(|(slot, _)| Way::at(case, filtered, *slot))
        .collect();
    ways.sort_by(|a, b| {
        let key = |way: &Way<'_>| (way.plugins.len(), way.is_too_small());
        key(a)
            .cmp(&key(b))
            .then(a.effort().total_cmp(&b.effort()))
            .then_with(|| a.node.view.name.cmp(&b.node.view.name))
    });
    let mut told: Vec<&Way<'_>> = Vec::new();
    for way in &ways {
        if !told.iter().any(|other| other.plugins == way.plugins) {
            told.push(way);
        }
    }
    told.truncate(FIXES);
    let sentences = told.iter().map(|way| way.sentence(case));
    sentences.collect()
}

/// What stands between the pod and one node.
struct Way<'a> {
    node: &'a NodeState,
    plugins: Vec<FilterPlugin>,
    shortages: Vec<Shortage>,
}

impl<'a> Way<'a> {
    /// `None` for a node that no change of a filter's mind would help.
    fn at(case: &Case<'a>, filtered: &Filtered, slot: NodeSlot) -> Option<Way<'a>> {
        let node = case.cycle.cluster.node(slot)?;
        let obstacles = case.obstacles(node, &filtered.state).into_iter();
        let plugins: Vec<FilterPlugin> = obstacles.filter_map(|one| one.plugin).collect();
        (!plugins.is_empty()).then(|| Way {
            node,
            plugins,
            shortages: shortages(case, node),
        })
    }

    /// Whether even the empty node would lack something.
    fn is_too_small(&self) -> bool {
        let mut shortages = self.shortages.iter();
        shortages.any(|shortage| shortage.wanted > shortage.allocatable)
    }

    /// What is lacking, as parts of what the pod asks for.
    #[expect(
        clippy::cast_precision_loss,
        reason = "it is only compared with others of its kind"
    )]
    fn effort(&self) -> f64 {
        let shortages = self.shortages.iter();
        let parts = shortages.map(|one| one.lack() as f64 / one.wanted.max(1) as f64);
        parts.sum()
    }

    fn sentence(&self, case: &Case<'_>) -> String {
        let changes: Vec<String> = self
            .plugins
            .iter()
            .map(|plugin| self.change(case, *plugin))
            .collect();
        format!("{}: {}", self.node.view.name, changes.join("; and "))
    }

    fn change(&self, case: &Case<'_>, plugin: FilterPlugin) -> String {
        let name = &self.node.view.name;
        match plugin {
            FilterPlugin::NodeResourcesFit => self.room(),
            FilterPlugin::TaintToleration => {
                let taints = case.untolerated(self.node).join(" and ");
                format!("let the pod tolerate {taints}")
            }
            FilterPlugin::NodeUnschedulable => format!("kubectl uncordon {name}"),
            FilterPlugin::NodeAffinity => match case.unmatched_labels(self.node) {
                labels if labels.is_empty() => {
                    "give it the labels that the pod's node affinity asks for".to_owned()
                }
                labels => format!("kubectl label node {name} {}", labels.join(" ")),
            },
            FilterPlugin::NodeName => "let the pod name another node, or none".to_owned(),
            FilterPlugin::NodePorts => "free the port there, or ask for another".to_owned(),
            FilterPlugin::PodTopologySpread => {
                "raise maxSkew, or let whenUnsatisfiable be ScheduleAnyway".to_owned()
            }
            FilterPlugin::InterPodAffinity => {
                "change the pod affinity, or the pods that it is about".to_owned()
            }
        }
    }

    fn room(&self) -> String {
        let each = |text: &dyn Fn(&Shortage) -> String| -> String {
            let texts: Vec<String> = self.shortages.iter().map(text).collect();
            texts.join(" and ")
        };
        if self.shortages.is_empty() {
            return "it has as many pods as it may have: delete one, or raise maxPods".to_owned();
        }
        let lacks = each(&|one| format!("{} {}", one.name, one.amount(one.lack())));
        if self.is_too_small() {
            let most = each(&|one| format!("{} {}", one.name, one.amount(one.allocatable)));
            return format!(
                "it is too small by {lacks}: ask for at most {most}, or add a larger node"
            );
        }
        let fitting = each(&|one| format!("{} {}", one.name, one.amount(one.free.max(0))));
        format!("it lacks {lacks}: free that much there, or ask for at most {fitting}")
    }
}
