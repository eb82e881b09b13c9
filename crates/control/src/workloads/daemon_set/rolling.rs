//! Replacing the pods of an old template, a few nodes at a time.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{DaemonSet, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::fraction::{Rounding, scaled};
use crate::workloads::pod_state;
use crate::workloads::revision::REVISION_HASH;

use super::fit::{Fit, Fitness};
use super::placement::Placement;

/// Pods to delete, by name, and nodes to make pods for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Names of nodes.
    pub create: Vec<String>,
    /// Names of pods.
    pub delete: Vec<String>,
}

impl Work {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

fn rolling_update(set: &DaemonSet) -> Option<RollingUpdateDaemonSet> {
    let strategy = set.spec.as_ref()?.update_strategy.as_ref()?;
    match strategy.type_.as_deref() {
        Some("RollingUpdate") => strategy.rolling_update.clone(),
        _ => None,
    }
}

fn limit(value: Option<&IntOrString>, total: i32) -> i32 {
    value
        .and_then(|value| scaled(value, total, Rounding::Up).ok())
        .unwrap_or(0)
}

/// How many nodes of `total` may have two pods.
pub(super) fn max_surge(set: &DaemonSet, total: i32) -> i32 {
    let update = rolling_update(set).unwrap_or_default();
    limit(update.max_surge.as_ref(), total)
}

/// The next step of a roll-out. Where the strategy is another, there is none.
pub fn roll(
    set: &DaemonSet,
    nodes: &[&Node],
    placed: &Placement<'_>,
    hash: &str,
    now: Timestamp,
) -> Work {
    let Some(update) = rolling_update(set) else {
        return Work::default();
    };
    let fitness = Fitness::of(set);
    let mut placed = placed.clone();
    let mut fitting = BTreeSet::new();
    for node in nodes.iter().filter(|node| fitness.on(node) == Fit::Run) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        fitting.insert(name);
        placed.entry(name).or_default();
    }
    let desired = i32::try_from(fitting.len()).unwrap_or(i32::MAX);
    let surge = limit(update.max_surge.as_ref(), desired);
    let mut unavailable = limit(update.max_unavailable.as_ref(), desired);
    if desired > 0 && surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let rolling = Rolling {
        set,
        placed: &placed,
        hash,
        now,
    };
    match surge {
        0 => rolling.replace(as_count(unavailable)),
        surge => rolling.surge(as_count(surge), &fitting),
    }
}

fn as_count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

struct Rolling<'a> {
    set: &'a DaemonSet,
    placed: &'a Placement<'a>,
    hash: &'a str,
    now: Timestamp,
}

/// The pods of a node that are not leaving: at most one of each sort.
struct Pair<'a> {
    newest: Option<&'a Pod>,
    old: Option<&'a Pod>,
}

impl<'a> Rolling<'a> {
    /// `None` if there are more than one of a sort, which is for `manage` to clear up.
    fn pair(&self, pods: &[&'a Pod]) -> Option<Pair<'a>> {
        let mut pair = Pair {
            newest: None,
            old: None,
        };
        for pod in pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        {
            let place = match is_updated(self.set, pod, self.hash) {
                true => &mut pair.newest,
                false => &mut pair.old,
            };
            if place.replace(pod).is_some() {
                return None;
            }
        }
        Some(pair)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = self
            .set
            .spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or(0);
        pod_state::is_available(pod, min_ready, self.now)
    }

    /// Without surge: deletes old pods, first the unavailable ones, then as many others as may be
    /// unavailable. `manage` creates the new ones.
    fn replace(&self, max_unavailable: usize) -> Work {
        let mut unavailable = 0;
        let mut replaceable = Vec::new();
        let mut candidates = Vec::new();
        for pods in self.placed.values() {
            match self.pair(pods) {
                Some(Pair {
                    newest: Some(newest),
                    old: None,
                }) => {
                    unavailable += usize::from(!self.is_available(newest));
                }
                Some(Pair {
                    newest: None,
                    old: Some(old),
                }) => {
                    if !self.is_available(old) {
                        replaceable.push(pod_state::name(old).to_owned());
                        unavailable += 1;
                    } else if unavailable < max_unavailable {
                        candidates.push(pod_state::name(old).to_owned());
                    }
                }
                _ => unavailable += 1,
            }
        }
        candidates.truncate(max_unavailable.saturating_sub(unavailable));
        replaceable.append(&mut candidates);
        Work {
            delete: replaceable,
            create: Vec::new(),
        }
    }

    /// With surge: makes new pods beside old ones, at once where the old one does not serve, and
    /// deletes an old pod when its replacement is available. On nodes that no longer fit, pods go
    /// only as others take over.
    fn surge(&self, max_surge: usize, fitting: &BTreeSet<&str>) -> Work {
        let mut work = Work::default();
        let (mut surging, mut available) = (0, 0);
        let mut candidates = Vec::new();
        let mut misplaced = Vec::new();
        for (node, pods) in self.placed {
            let Some(pair) = self.pair(pods) else {
                surging += 1;
                continue;
            };
            let serving = pair.old.or(pair.newest);
            available += usize::from(serving.is_some_and(|pod| self.is_available(pod)));
            let Some(old) = pair.old else {
                continue;
            };
            let name = || pod_state::name(old).to_owned();
            match (pair.newest, self.is_available(old)) {
                (Some(newest), _) if self.is_available(newest) => work.delete.push(name()),
                (Some(_), _) => surging += 1,
                (None, false) if fitting.contains(node) => work.create.push((*node).to_owned()),
                (None, false) => work.delete.push(name()),
                (None, true) if !fitting.contains(node) => misplaced.push(name()),
                (None, true) if surging < max_surge => candidates.push((*node).to_owned()),
                (None, true) => {}
            }
        }
        misplaced.truncate(available.saturating_sub(fitting.len()));
        work.delete.append(&mut misplaced);
        candidates.truncate(max_surge.saturating_sub(surging));
        work.create.append(&mut candidates);
        work
    }
}

/// Whether a pod is of the current revision, by its hash or by the generation older versions used.
pub(super) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let annotations = set.metadata.annotations.as_ref();
    let generation = annotations.and_then(|a| a.get("deprecated.daemonset.template.generation"));
    let generation: Option<i64> = generation.and_then(|text| text.parse().ok());
    let of_generation = generation.is_some_and(|generation| {
        pod_state::label(pod, "pod-template-generation") == Some(generation.to_string().as_str())
    });
    of_generation || !hash.is_empty() && pod_state::label(pod, REVISION_HASH) == Some(hash)
}
