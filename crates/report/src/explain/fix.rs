//! Advice for a pending pod: the smallest change that would make it fit.

use plimsoll_core::scheduling::cluster::{NodeSlot, NodeState};
use plimsoll_core::scheduling::filter_results::FilterResults;
use plimsoll_core::scheduling::plugin_names::FilterPlugin;

use super::obstacle::{Shortage, labels_to_add, shortages};
use super::pending::Case;
use super::report::NodeVerdict;

/// The prefixes of taint keys that stand for a condition of the node.
const CONDITION_DOMAINS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// The number of changes shown.
const FIXES: usize = 3;

/// Changes that would make the pod fit, the smallest first: nodes that the fewest filters reject,
/// and among those the nodes that lack least. One change per set of filters.
pub(super) fn fixes(
    case: &Case<'_>,
    filtered: &FilterResults,
    verdicts: &[NodeVerdict],
) -> Vec<String> {
    if let Some(ready) = verdicts.iter().find(|node| node.rejections.is_empty()) {
        return vec![format!(
            "it fits on {} at present: wait for the next attempt of the scheduler",
            ready.node
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
    let mut shown: Vec<&Way<'_>> = Vec::new();
    for way in &ways {
        if !shown.iter().any(|other| other.plugins == way.plugins) {
            shown.push(way);
        }
    }
    shown.truncate(FIXES);
    let sentences = shown.iter().map(|way| way.sentence(case));
    sentences.collect()
}

/// What would make the pod fit on one node.
struct Way<'a> {
    node: &'a NodeState,
    plugins: Vec<FilterPlugin>,
    shortages: Vec<Shortage>,
}

impl<'a> Way<'a> {
    /// `None` for a node that no change would help.
    fn at(case: &Case<'a>, filtered: &FilterResults, slot: NodeSlot) -> Option<Way<'a>> {
        let node = case.cycle.cluster.node(slot)?;
        let obstacles = case.obstacles(node, &filtered.state).into_iter();
        let plugins: Vec<FilterPlugin> = obstacles.filter_map(|one| one.plugin).collect();
        (!plugins.is_empty()).then(|| Way {
            node,
            plugins,
            shortages: shortages(case, node),
        })
    }

    /// Whether the node would be too small without any pod.
    fn is_too_small(&self) -> bool {
        let mut shortages = self.shortages.iter();
        shortages.any(|shortage| shortage.wanted > shortage.allocatable)
    }

    /// The missing amounts, as fractions of the requests.
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
            FilterPlugin::TaintToleration => self.taints(case),
            FilterPlugin::NodeUnschedulable => format!("kubectl uncordon {name}"),
            FilterPlugin::NodeAffinity => {
                let unmet = case.cycle.pod.node_rules.unmet(&self.node.view);
                match labels_to_add(&unmet, self.node) {
                    Some(labels) => format!("kubectl label node {name} {}", labels.join(" ")),
                    None => "change the pod's nodeSelector or required node affinity".to_owned(),
                }
            }
            FilterPlugin::NodeName => "set spec.nodeName to another node, or remove it".to_owned(),
            FilterPlugin::NodePorts => {
                "free the port on the node, or use another hostPort".to_owned()
            }
            FilterPlugin::PodTopologySpread => {
                "raise maxSkew, or set whenUnsatisfiable to ScheduleAnyway".to_owned()
            }
            FilterPlugin::InterPodAffinity => {
                "change the pod's affinity or anti-affinity, or the labels of the pods in the way"
                    .to_owned()
            }
        }
    }

    /// The control plane removes taints of conditions when the condition ends; tolerating them does
    /// not help.
    fn taints(&self, case: &Case<'_>) -> String {
        let is_of_condition = |taint: &&String| {
            let mut domains = CONDITION_DOMAINS.iter();
            domains.any(|domain| taint.starts_with(domain))
        };
        let taints = case.untolerated(self.node);
        let conditions: Vec<&String> = taints.iter().filter(is_of_condition).collect();
        let others = taints.iter().filter(|taint| !is_of_condition(taint));
        let others: Vec<&str> = others.map(String::as_str).collect();
        let mut changes = Vec::new();
        if !conditions.is_empty() {
            let name = &self.node.view.name;
            changes.push(format!(
                "see what is wrong with the node: plimsoll explain node {name}"
            ));
        }
        if !others.is_empty() {
            let taints = others.join(" and ");
            changes.push(format!("add a toleration for {taints} to the pod"));
        }
        changes.join("; and ")
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
                "it is too small by {lacks}: request at most {most}, or add a larger node"
            );
        }
        if self.shortages.iter().any(|one| one.free <= 0) {
            return format!("it lacks {lacks}: free that much there");
        }
        let fitting = each(&|one| format!("{} {}", one.name, one.amount(one.free.max(0))));
        format!("it lacks {lacks}: free that much there, or request at most {fitting}")
    }
}
