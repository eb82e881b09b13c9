//! The verdicts of a class on all nodes, as the plain engine would have them.

use std::collections::BTreeMap;

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::filter_results::FilterResults;
use crate::scheduling::filters::{Cycle, FilterState, PreFilter};
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::plugins::{inter_pod_affinity, pod_topology_spread};

use super::Engine;
use super::class::Class;
use super::counters::{Counter, Role};
use super::groups::NO_GROUP;

impl Engine {
    /// The verdicts on nodes where pods of the same or a higher priority wait for room.
    pub(super) fn verdicts_with_nominated(
        &self,
        class: &Class,
        cycle: &Cycle<'_>,
    ) -> BTreeMap<NodeSlot, Option<Rejection>> {
        let pod = cycle.pod;
        let nominations = cycle.cluster.nominations();
        let ahead = nominations.filter(|(_, pods)| {
            let mut pods = pods.iter();
            pods.any(|other| other.priority >= pod.priority && other.uid != pod.uid)
        });
        let mut ahead = ahead.peekable();
        if ahead.peek().is_none() {
            return BTreeMap::new();
        }
        let state = self.filter_state(class, cycle);
        ahead
            .filter_map(|(name, _)| {
                let slot = cycle.cluster.slot(name)?;
                let node = cycle.cluster.node(slot)?;
                Some((slot, cycle.filter_with_nominated(node, &state)))
            })
            .collect()
    }

    /// The counts of a class as the filters know them.
    pub(super) fn filter_state(&self, class: &Class, cycle: &Cycle<'_>) -> FilterState {
        let counters = || class.counters.all.iter();
        let hard = class.constraints.hard.clone();
        let counts = counters().filter(|c| matches!(c.role, Role::HardSpread(_)));
        let counts = counts.map(|counter| counter.spread_counts(&self.topology));
        let spread = (!hard.is_empty())
            .then(|| pod_topology_spread::FilterState::new(hard, counts.collect()));
        let by_value = |role: Role| {
            let all = counters().filter(move |counter| counter.role == role);
            all.flat_map(|counter| self.named_counts(counter))
        };
        let filters = &cycle.profile.filters;
        let affinity = filters.contains(&FilterPlugin::InterPodAffinity).then(|| {
            inter_pod_affinity::FilterState::with_counts(
                cycle.pod,
                cycle.cluster,
                by_value(Role::Affinity),
                by_value(Role::AntiAffinity),
                by_value(Role::ExistingAntiAffinity),
            )
        });
        FilterState {
            spread,
            affinity: affinity.flatten(),
        }
    }

    fn named_counts<'a>(
        &'a self,
        counter: &'a Counter,
    ) -> impl Iterator<Item = (String, String, i64)> + 'a {
        let key = self.topology.key(counter.key);
        let counts = counter.non_zero();
        counts.map(|(domain, n)| (key.name.clone(), key.value(domain).to_owned(), n))
    }

    /// All verdicts of a class, for a pod that nothing will do for.
    pub(super) fn filtered(
        &self,
        class: &Class,
        cycle: &Cycle<'_>,
        ahead: &BTreeMap<NodeSlot, Option<Rejection>>,
    ) -> FilterResults {
        let state = self.filter_state(class, cycle);
        let pre_filter = PreFilter::new(cycle.profile, cycle.pod, &state);
        let verdict = |slot: NodeSlot| {
            if let Some(verdict) = ahead.get(&slot) {
                return verdict.clone();
            }
            let cell = &class.cells[slot.index()];
            match cell.verdict {
                Some(number) => Some(class.reasons.get(number).clone()),
                None if cell.group == NO_GROUP => None,
                None => {
                    let key = &class.groups.get(cell.group).key;
                    class.reject_group(key, cycle.profile)
                }
            }
        };
        let order = self.order.slots().iter();
        FilterResults {
            nodes: order.map(|slot| (*slot, verdict(*slot))).collect(),
            pre_filter,
            state,
        }
    }
}
