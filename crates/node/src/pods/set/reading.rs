//! What others want to know of pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::Pods;
use super::entry::Entry;

impl Pods {
    /// All pods that sources have, with their latest status.
    pub fn list(&self) -> Vec<Pod> {
        let table = self.table();
        let entries = table.entries.values();
        entries
            .filter(|entry| !entry.is_orphan)
            .map(|entry| {
                let status = entry.record.state().status.clone();
                Pod {
                    status: Some(status),
                    ..Pod::clone(&entry.wanted)
                }
            })
            .collect()
    }

    /// The pod of that uid, with the resources allocated to it.
    pub fn get(&self, uid: &str) -> Option<Arc<Pod>> {
        self.table().entries.get(uid).map(Entry::pod)
    }

    /// Pods that hold resources, with the resources allocated to them: those of QoS cgroups, and
    /// those that can be evicted.
    pub fn active(&self) -> Vec<Arc<Pod>> {
        self.table().active_pods()
    }

    /// Whether all pods of all sources are known, and each has a report, so that anything else on the
    /// machine is orphaned. An agent that has just started finds its containers before it knows the pods
    /// that they belong to.
    pub fn are_all_known(&self) -> bool {
        self.are_all_reported() && self.table().waiting.is_empty()
    }

    /// Whether sources have listed all pods, and each that may have something on the machine has a
    /// report.
    pub fn are_all_reported(&self) -> bool {
        let table = self.table();
        let reports = self.reports();
        let mut uids = table.entries.keys();
        table.is_ready() && uids.all(|uid| reports.get(uid).is_some())
    }

    /// Whether sources have listed all pods, though some may not have been observed yet.
    pub fn are_all_listed(&self) -> bool {
        self.table().is_ready()
    }
}
