//! Pods of this node as the API has them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use crate::pods::anatomy;

/// The latest objects. Mirror pods are known by name, since the pods they stand for have other
/// uids.
#[derive(Debug, Default)]
pub(super) struct ApiPods {
    pods: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    by_uid: BTreeMap<String, Arc<Pod>>,
    mirrors: BTreeMap<(String, String), Arc<Pod>>,
}

fn full_name(pod: &Pod) -> (String, String) {
    (
        anatomy::namespace(pod).to_owned(),
        anatomy::name(pod).to_owned(),
    )
}

impl ApiPods {
    /// Takes a newer object. One that is older than what is known is dropped: answers of writes
    /// and events of the watch come in any order.
    pub(super) fn put(&self, pod: Pod) {
        let mut held = self.lock();
        let uid = anatomy::uid(&pod).to_owned();
        let known = held.by_uid.get(&uid);
        if known.is_some_and(|known| revision(known) > revision(&pod)) {
            return;
        }
        let pod = Arc::new(pod);
        if anatomy::mirror_hash(&pod).is_some() {
            held.mirrors.insert(full_name(&pod), Arc::clone(&pod));
        }
        held.by_uid.insert(uid, pod);
        drop(held);
        self.changed.notify_one();
    }

    /// Forgets an object that is gone.
    pub(super) fn remove(&self, pod: &Pod) {
        let mut held = self.lock();
        held.by_uid.remove(anatomy::uid(pod));
        let name = full_name(pod);
        let mirror = held.mirrors.get(&name);
        if mirror.is_some_and(|mirror| anatomy::uid(mirror) == anatomy::uid(pod)) {
            held.mirrors.remove(&name);
        }
        drop(held);
        self.changed.notify_one();
    }

    /// The object by which the API shows a pod of this node: its own, or its mirror.
    pub(super) fn shown_for(&self, pod: &Pod) -> Option<Arc<Pod>> {
        let held = self.lock();
        let own = held.by_uid.get(anatomy::uid(pod));
        own.or_else(|| {
            held.mirrors
                .get(&full_name(pod))
                .filter(|_| anatomy::is_static(pod))
        })
        .cloned()
    }

    /// The mirror of that namespace and name.
    pub(super) fn mirror(&self, pod: &Pod) -> Option<Arc<Pod>> {
        self.lock().mirrors.get(&full_name(pod)).cloned()
    }

    /// All mirrors.
    pub(super) fn mirrors(&self) -> Vec<Arc<Pod>> {
        self.lock().mirrors.values().cloned().collect()
    }

    /// The uids of all objects.
    pub(super) fn uids(&self) -> Vec<String> {
        self.lock().by_uid.keys().cloned().collect()
    }

    /// The object of that uid.
    pub(super) fn get(&self, uid: &str) -> Option<Arc<Pod>> {
        self.lock().by_uid.get(uid).cloned()
    }

    /// Waits for a change since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resource versions of one server are numbers that only grow; others compare as unknown.
fn revision(pod: &Pod) -> Option<u64> {
    pod.metadata.resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, version: &str, annotations: serde_json::Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web", "namespace": "ns", "uid": uid, "resourceVersion": version,
                "annotations": annotations,
            },
            "spec": {"containers": []},
        }))
        .expect("a pod")
    }

    #[test]
    fn answers_that_come_late_do_not_undo_news() {
        let pods = ApiPods::default();
        pods.put(pod("a", "9", json!({})));
        pods.put(pod("a", "10", json!({})));
        pods.put(pod("a", "9", json!({})));
        let known = pods.get("a").unwrap();
        assert_eq!(known.metadata.resource_version.as_deref(), Some("10"));
    }

    #[test]
    fn a_static_pod_is_shown_by_its_mirror() {
        let pods = ApiPods::default();
        let mirror = pod("m", "1", json!({"kubernetes.io/config.mirror": "hash"}));
        pods.put(mirror.clone());
        let own = pod("s", "", json!({"kubernetes.io/config.source": "file"}));
        assert_eq!(anatomy::uid(&pods.shown_for(&own).unwrap()), "m");
        let other = pod("o", "", json!({}));
        assert!(pods.shown_for(&other).is_none());
        pods.remove(&mirror);
        assert!(pods.shown_for(&own).is_none());
    }
}
