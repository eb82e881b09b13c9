//! The best node of a class, by groups.
//!
//! Filters and scores that look beyond a node give the same answer for all nodes of a group. They
//! run once per group, with the same arithmetic as in `plugins`; what is normalised over all
//! feasible nodes is normalised over the groups that have any, which is the same.

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection, ScorePlugin};
use crate::scheduling::plugins::{
    MAX_NODE_SCORE, inter_pod_affinity, node_affinity, pod_topology_spread, taint_toleration,
};
use crate::scheduling::profile::Profile;
use crate::scheduling::tie_break::distance;

use super::class::{Class, KEY_PREFIX, NO_LABEL};
use super::counters::{Counter, Grain, Role};
use super::groups::Group;

/// The nodes that will do, by groups.
pub(super) struct Feasible<'a> {
    class: &'a Class,
    groups: Vec<&'a Group>,
    /// How many nodes.
    pub(super) count: usize,
}

impl Class {
    /// The groups whose nodes will do.
    pub(super) fn feasible(&self, profile: &Profile) -> Feasible<'_> {
        let groups = self.groups.live();
        let groups: Vec<&Group> = groups
            .filter(|group| self.reject_group(&group.key, profile).is_none())
            .collect();
        Feasible {
            class: self,
            count: groups.iter().map(|group| group.len()).sum(),
            groups,
        }
    }

    /// Why the nodes of a group are rejected, which by themselves would do.
    pub(super) fn reject_group(&self, key: &[i64], profile: &Profile) -> Option<Rejection> {
        profile.filters.iter().find_map(|plugin| match plugin {
            FilterPlugin::PodTopologySpread => self.reject_by_spread(key),
            FilterPlugin::InterPodAffinity => self.reject_by_affinity(key),
            _ => None,
        })
    }

    /// The counters with their values in a group key.
    fn counters_in<'a>(&'a self, key: &'a [i64]) -> impl Iterator<Item = (&'a Counter, i64)> {
        self.counters
            .all
            .iter()
            .zip(key[KEY_PREFIX..].iter().copied())
    }

    /// Matches `plugins::pod_topology_spread`, `FilterState::filter`.
    fn reject_by_spread(&self, key: &[i64]) -> Option<Rejection> {
        for (counter, part) in self.counters_in(key) {
            let Role::HardSpread(number) = counter.role else {
                continue;
            };
            if part == NO_LABEL {
                return Some(pod_topology_spread::rejection_without_label());
            }
            let constraint = &self.constraints.hard[number];
            let wanted = usize::try_from(constraint.min_domains).unwrap_or(0);
            let least = if counter.domain_count() < wanted {
                0
            } else {
                counter.least().unwrap_or(i64::from(i32::MAX))
            };
            let own = i64::from(constraint.selector.matches(&self.pod.labels));
            if value(counter, part) + own - least > i64::from(constraint.max_skew) {
                return Some(pod_topology_spread::rejection_by_skew());
            }
        }
        None
    }

    /// Matches `plugins::inter_pod_affinity`, `FilterState::filter`.
    fn reject_by_affinity(&self, key: &[i64]) -> Option<Rejection> {
        let mut are_near = true;
        let mut is_occupied = false;
        let mut is_minded = false;
        for (counter, part) in self.counters_in(key) {
            let is_above_zero = part != NO_LABEL && value(counter, part) > 0;
            match counter.role {
                Role::Affinity if part == NO_LABEL => {
                    return Some(inter_pod_affinity::rejection_by_affinity());
                }
                Role::Affinity => are_near &= is_above_zero,
                Role::AntiAffinity => is_occupied |= is_above_zero,
                Role::ExistingAntiAffinity => is_minded |= is_above_zero,
                _ => {}
            }
        }
        let is_first = || self.near == 0 && self.constraints.matches_all_affinity_terms(&self.pod);
        if !are_near && !is_first() {
            Some(inter_pod_affinity::rejection_by_affinity())
        } else if is_occupied {
            Some(inter_pod_affinity::rejection_by_anti_affinity())
        } else {
            is_minded.then(inter_pod_affinity::rejection_by_existing)
        }
    }
}

/// The count that a part of a group key stands for.
fn value(counter: &Counter, part: i64) -> i64 {
    match counter.grain {
        Grain::Domain => u32::try_from(part).map_or(0, |place| counter.count(place)),
        Grain::Count | Grain::Node => part,
    }
}

/// The best total, by groups.
pub(super) struct Best<'a> {
    /// The total.
    pub(super) total: i64,
    groups: Vec<&'a Group>,
}

impl Best<'_> {
    /// Of the best nodes, the first at or after the offset, going round.
    pub(super) fn choose(&self, offset: u32, slot_count: u32) -> Option<NodeSlot> {
        let groups = self.groups.iter();
        let slots = groups.filter_map(|group| group.best_from(offset).map(NodeSlot));
        slots.min_by_key(|slot| distance(*slot, offset, slot_count))
    }
}

impl<'a> Feasible<'a> {
    /// Any of the nodes.
    pub(super) fn first(&self) -> Option<NodeSlot> {
        self.groups.first()?.first().map(NodeSlot)
    }

    /// The nodes with the best total; `None` if a score is out of bounds.
    pub(super) fn best(&self, profile: &Profile) -> Option<Best<'a>> {
        let mut totals = vec![0i64; self.groups.len()];
        for (plugin, weight) in &profile.scores {
            let Some(scores) = self.scores(*plugin, profile) else {
                continue;
            };
            for (total, score) in totals.iter_mut().zip(scores) {
                if !(0..=MAX_NODE_SCORE).contains(&score) {
                    return None;
                }
                *total = total.wrapping_add(score.wrapping_mul(*weight));
            }
        }
        for (total, group) in totals.iter_mut().zip(&self.groups) {
            *total = total.wrapping_add(group.best()?);
        }
        let best = totals.iter().copied().max()?;
        let groups = self.groups.iter().zip(&totals);
        let groups = groups.filter(|(_, total)| **total == best);
        Some(Best {
            total: best,
            groups: groups.map(|(group, _)| *group).collect(),
        })
    }

    /// Normalised scores by group, of the plugins that look beyond a node or are normalised.
    fn scores(&self, plugin: ScorePlugin, profile: &Profile) -> Option<Vec<i64>> {
        let class = self.class;
        let members = |place: usize| self.groups.iter().map(move |group| group.key[place]);
        match plugin {
            ScorePlugin::TaintToleration => {
                let mut scores: Vec<i64> = members(0).collect();
                taint_toleration::normalize(&mut scores);
                Some(scores)
            }
            ScorePlugin::NodeAffinity => {
                if node_affinity::skips_score(&class.pod, &profile.added_affinity) {
                    return None;
                }
                let mut scores: Vec<i64> = members(1).collect();
                node_affinity::normalize(&mut scores);
                Some(scores)
            }
            ScorePlugin::PodTopologySpread if !class.constraints.soft.is_empty() => {
                Some(self.spread_scores())
            }
            ScorePlugin::InterPodAffinity if class.opinions > 0 => Some(self.affinity_scores()),
            _ => None,
        }
    }

    fn affinity_scores(&self) -> Vec<i64> {
        let groups = self.groups.iter();
        let mut scores: Vec<i64> = groups
            .map(|group| {
                let parts = self.class.counters_in(&group.key);
                let worths = parts.filter(|(c, part)| c.role == Role::Worth && *part != NO_LABEL);
                worths
                    .map(|(counter, part)| value(counter, part))
                    .fold(0, i64::wrapping_add)
            })
            .collect();
        inter_pod_affinity::normalize(&mut scores);
        scores
    }

    /// Matches `plugins::pod_topology_spread`, `ScoreState`.
    fn spread_scores(&self) -> Vec<i64> {
        let constraints = &self.class.constraints;
        let places: Vec<usize> = soft_places(self.class);
        let is_ignored: Vec<bool> = self
            .groups
            .iter()
            .map(|group| {
                let mut parts = places.iter().map(|place| group.key[*place]);
                constraints.requires_all_keys && parts.any(|part| part == NO_LABEL)
            })
            .collect();
        let scored = || {
            let groups = self.groups.iter().zip(&is_ignored);
            groups
                .filter(|(_, ignored)| !**ignored)
                .map(|(group, _)| *group)
        };
        let weights: Vec<f64> = places
            .iter()
            .map(|place| {
                let counter = &self.class.counters.all[place - KEY_PREFIX];
                let size = if counter.grain == Grain::Node {
                    scored().map(Group::len).sum()
                } else {
                    let mut domains: Vec<i64> = scored().map(|g| g.key[*place] >> 1).collect();
                    domains.sort_unstable();
                    domains.dedup();
                    domains.len()
                };
                pod_topology_spread::domain_weight(size)
            })
            .collect();
        let groups = self.groups.iter().zip(&is_ignored);
        let mut scores: Vec<i64> = groups
            .map(|(group, ignored)| match ignored {
                true => 0,
                false => self.spread_score(group, &places, &weights),
            })
            .collect();
        pod_topology_spread::normalize(&mut scores, &is_ignored);
        scores
    }

    fn spread_score(&self, group: &Group, places: &[usize], weights: &[f64]) -> i64 {
        let constraints = self.class.constraints.soft.iter();
        let mut score = 0.0;
        for ((constraint, place), weight) in constraints.zip(places).zip(weights) {
            let counter = &self.class.counters.all[place - KEY_PREFIX];
            let part = group.key[*place];
            let has_label = match counter.grain {
                Grain::Node => part != NO_LABEL,
                _ => part != NO_LABEL && part & 1 == 1,
            };
            if !has_label {
                continue;
            }
            let existing = match counter.grain {
                Grain::Node => part,
                _ => u32::try_from(part >> 1).map_or(0, |domain| counter.count(domain)),
            };
            score += pod_topology_spread::domain_score(existing, *weight, constraint);
        }
        pod_topology_spread::rounded(score)
    }
}

/// Where in group keys the soft constraints stand, in their order.
fn soft_places(class: &Class) -> Vec<usize> {
    let numbers = 0..class.constraints.soft.len();
    numbers
        .filter_map(|number| {
            let mut counters = class.counters.all.iter();
            let place = counters.position(|c| c.role == Role::SoftSpread(number))?;
            Some(KEY_PREFIX + place)
        })
        .collect()
}
