//! Watches every pod of a namespace and records violations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};

/// What has been seen so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The node of every pod that was ever bound, by uid.
    nodes: BTreeMap<String, String>,
    /// The node of every bound pod that exists, by uid.
    present: BTreeMap<String, String>,
    pods_per_node: usize,
    /// What should not have happened.
    violations: Vec<String>,
}

impl Ledger {
    /// Keeps a ledger from here on. No node may have more pods than that.
    pub(crate) fn keep(
        client: Client,
        namespace: &str,
        pods_per_node: usize,
    ) -> (Arc<Mutex<Self>>, impl Future<Output = ()> + use<>) {
        let ledger = Arc::new(Mutex::new(Ledger {
            pods_per_node,
            ..Ledger::default()
        }));
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let events = watcher(pods, watcher::Config::default()).default_backoff();
        let kept = Arc::clone(&ledger);
        let keeping = events.for_each(move |event| {
            if let Ok(event) = event {
                kept.lock().expect("the lock is not poisoned").note(&event);
            }
            std::future::ready(())
        });
        (ledger, keeping)
    }

    /// What should not have happened.
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// How many pods were ever bound.
    pub(crate) fn bound(&self) -> usize {
        self.nodes.len()
    }

    fn note(&mut self, event: &Event<Pod>) {
        match event {
            Event::Init => self.present.clear(),
            Event::InitDone => {}
            Event::InitApply(pod) | Event::Apply(pod) => self.note_pod(pod),
            Event::Delete(pod) => {
                self.present.remove(&pod.uid().unwrap_or_default());
            }
        }
    }

    fn note_pod(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let before = self.nodes.get(&uid);
        if before.is_some() && before != node.as_ref() {
            let name = pod.name_any();
            let moved = format!("{name} was on {before:?} and is on {node:?}");
            self.violations.push(moved);
        }
        let Some(node) = node else { return };
        self.nodes.insert(uid.clone(), node.clone());
        if self.present.insert(uid, node.clone()).is_none() {
            let count = self.present.values().filter(|n| **n == node).count();
            if count > self.pods_per_node {
                self.violations.push(format!("{node} has {count} pods"));
            }
        }
    }
}
