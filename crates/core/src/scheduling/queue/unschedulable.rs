//! Pods that are not tried for now, found by name, by the plugins that rejected them, and by
//! age.

use std::collections::{BTreeMap, BTreeSet};

use super::queued_pod::QueuedPod;
use super::rejector::Plugin;
use super::time::Time;
use crate::object::identity::PodRef;

/// The pool of unschedulable pods.
#[derive(Clone, Debug, Default)]
pub(super) struct UnschedulablePods {
    pods: BTreeMap<PodRef, QueuedPod>,
    /// The pods that an event of each plugin concerns. A gated pod is listed only with the plugin
    /// that gates it: while that one keeps it out, no other can help.
    by_plugin: BTreeMap<Plugin, BTreeSet<PodRef>>,
    /// Since when each has been left alone.
    by_age: BTreeSet<(Time, PodRef)>,
    gated: usize,
}

impl UnschedulablePods {
    /// Adds a pod; the caller has taken out an earlier version.
    pub(super) fn insert(&mut self, queued: QueuedPod) {
        let pod_ref = &queued.pod.pod_ref;
        for plugin in subscribed_plugins(&queued) {
            let pods = self.by_plugin.entry(plugin).or_default();
            pods.insert(pod_ref.clone());
        }
        self.by_age
            .insert((queued.unschedulable_since(), pod_ref.clone()));
        self.gated += usize::from(queued.gating.is_some());
        self.pods.insert(pod_ref.clone(), queued);
    }

    pub(super) fn remove(&mut self, pod_ref: &PodRef) -> Option<QueuedPod> {
        let queued = self.pods.remove(pod_ref)?;
        for plugin in subscribed_plugins(&queued) {
            if let Some(pods) = self.by_plugin.get_mut(&plugin) {
                pods.remove(pod_ref);
            }
        }
        self.by_age
            .remove(&(queued.unschedulable_since(), pod_ref.clone()));
        self.gated -= usize::from(queued.gating.is_some());
        Some(queued)
    }

    pub(super) fn get(&self, pod_ref: &PodRef) -> Option<&QueuedPod> {
        self.pods.get(pod_ref)
    }

    pub(super) fn contains(&self, pod_ref: &PodRef) -> bool {
        self.pods.contains_key(pod_ref)
    }

    /// The pods that an event of one of these plugins may make schedulable, each once.
    pub(super) fn subscribed_to(&self, plugins: &[Plugin]) -> BTreeSet<PodRef> {
        let pods = plugins
            .iter()
            .filter_map(|plugin| self.by_plugin.get(plugin));
        pods.flatten().cloned().collect()
    }

    /// The oldest, for as long as their age is enough.
    pub(super) fn unschedulable_longer_than(&self, is_old: impl Fn(Time) -> bool) -> Vec<PodRef> {
        let old = self.by_age.iter().take_while(|(since, _)| is_old(*since));
        old.map(|(_, pod_ref)| pod_ref.clone()).collect()
    }

    /// Since when the oldest has been left alone.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.by_age.first().map(|(since, _)| *since)
    }

    /// How many there are, gated ones left out.
    pub(super) fn ungated(&self) -> usize {
        self.pods.len() - self.gated
    }

    pub(super) fn gated(&self) -> usize {
        self.gated
    }

    /// In order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedPod> {
        self.pods.values()
    }
}

/// The plugins whose events may wake the pod.
fn subscribed_plugins(queued: &QueuedPod) -> Vec<Plugin> {
    match queued.gating {
        Some(plugin) => vec![plugin],
        None => queued.rejectors.iter().collect(),
    }
}
