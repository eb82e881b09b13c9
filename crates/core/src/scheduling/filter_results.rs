//! The verdicts of all filters on all nodes.

use std::collections::BTreeSet;

use super::cluster::NodeSlot;
use super::diagnosis::Diagnosis;
use super::filters::{FilterState, PreFilter};
use super::plugin_names::{FilterPlugin, Rejection};

/// The verdicts of the filters.
#[derive(Clone, Debug)]
pub struct FilterResults {
    /// Before any node was evaluated.
    pub pre_filter: PreFilter,
    /// The counts behind the verdicts.
    pub state: FilterState,
    /// The evaluated nodes, in order; a feasible one has no rejection.
    pub nodes: Vec<(NodeSlot, Option<Rejection>)>,
}

impl FilterResults {
    /// The nodes that will do, in order.
    pub fn feasible(&self) -> impl Iterator<Item = NodeSlot> {
        let nodes = self.nodes.iter();
        nodes
            .filter(|(_, rejection)| rejection.is_none())
            .map(|(slot, _)| *slot)
    }

    /// The rejection of a node; `None` if it was not evaluated, or is feasible.
    pub fn rejection(&self, slot: NodeSlot) -> Option<&Rejection> {
        let mut nodes = self.nodes.iter();
        let (_, rejection) = nodes.find(|(own, _)| *own == slot)?;
        rejection.as_ref()
    }

    /// Why no node is feasible, for messages.
    pub fn diagnosis(&self, node_count: usize) -> Diagnosis {
        let mut diagnosis = Diagnosis::new(node_count);
        if let Some(rejection) = &self.pre_filter.rejection {
            return diagnosis.before_any_node(rejection);
        }
        for rejection in self.nodes.iter().filter_map(|(_, r)| r.as_ref()) {
            diagnosis.add(rejection, 1);
        }
        diagnosis
    }

    /// The plugins that something has to change for, before the pod is tried again.
    pub fn unschedulable_plugins(&self) -> BTreeSet<&'static str> {
        let by_name = self.pre_filter.node_names.as_ref();
        let by_name = by_name.map(|_| FilterPlugin::NodeAffinity);
        let rejections = self.nodes.iter().filter_map(|(_, r)| r.as_ref());
        let rejections = rejections.chain(&self.pre_filter.rejection);
        let plugins = rejections.filter_map(|rejection| rejection.plugin);
        plugins.chain(by_name).map(FilterPlugin::as_str).collect()
    }
}
