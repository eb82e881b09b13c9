//! Which controller is to be woken by a change of a pod.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use kube::Resource;

use crate::work_queue::WorkQueue;
use plimsoll_client::informer::{Change, Informer, Key, Subscription};

use super::expectations::Expectations;
use super::owners::{adopters_in, owner_in};
use super::ownership::{ControllerKind, controller_of};
use super::pod_state;

/// The controllers of a kind that own pods.
pub struct PodOwners<K> {
    /// Their kind.
    pub kind: ControllerKind,
    /// All of them.
    pub controllers: Arc<Informer<K>>,
    /// The selector of one of them.
    pub selector: fn(&K) -> Option<ApiLabelSelector>,
    /// Where they are put when something concerns them.
    pub queue: Arc<WorkQueue<Key>>,
    /// The expectations they wait for.
    pub expectations: Arc<Expectations>,
    /// How long changes of pods are gathered before the controller is woken.
    pub delay: Duration,
}

impl<K> fmt::Debug for PodOwners<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodOwners")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<K: Resource<DynamicType = ()> + Send + Sync + 'static> PodOwners<K> {
    /// Wakes controllers for as long as the subscriptions live.
    pub fn watch(self: &Arc<Self>, pods: &Informer<Pod>) -> [Subscription; 2] {
        let owners = Arc::clone(self);
        let of_controllers = self.controllers.on_change(move |change| {
            let key = change.key();
            if matches!(change, Change::Deleted(_)) {
                owners.expectations.forget(&key);
            }
            owners.queue.add(key);
        });
        let owners = Arc::clone(self);
        [
            of_controllers,
            pods.on_change(move |change| owners.observe(change)),
        ]
    }

    fn observe(&self, change: &Change<Pod>) {
        match change {
            Change::Deleted(pod) => self.deleted(pod),
            // Deletion starts with a timestamp; a loop that waits for it need not wait for its end.
            Change::Added(pod) | Change::Updated { after: pod, .. }
                if pod.metadata.deletion_timestamp.is_some() =>
            {
                self.deleted(pod);
            }
            Change::Added(pod) if controller_of(&pod.metadata).is_none() => self.wake_adopters(pod),
            Change::Added(pod) => {
                if let Some(key) = self.owner_of(pod) {
                    self.expectations.created(&key, 1);
                    self.wake(key);
                }
            }
            Change::Updated { before, after } => self.updated(before, after),
        }
    }

    fn updated(&self, before: &Pod, after: &Pod) {
        let (old, new) = (
            controller_of(&before.metadata),
            controller_of(&after.metadata),
        );
        let has_moved = old != new;
        if has_moved {
            self.wake_owner(before);
        }
        if new.is_some() {
            self.wake_owner(after);
        } else if has_moved || before.metadata.labels != after.metadata.labels {
            self.wake_adopters(after);
        }
    }

    fn deleted(&self, pod: &Pod) {
        if let Some(key) = self.owner_of(pod) {
            self.expectations.deleted(&key, pod_state::name(pod));
            self.wake(key);
        }
    }

    /// The controller of the pod, if it is of this kind and the very one.
    pub fn owner_of(&self, pod: &Pod) -> Option<Key> {
        owner_in(&self.controllers, self.kind, &pod.metadata)
    }

    fn wake(&self, key: Key) {
        if self.delay.is_zero() {
            self.queue.add(key);
        } else {
            self.queue.add_after(key, self.delay);
        }
    }

    fn wake_owner(&self, pod: &Pod) {
        if let Some(key) = self.owner_of(pod) {
            self.wake(key);
        }
    }

    fn wake_adopters(&self, pod: &Pod) {
        for key in adopters_in(&self.controllers, self.selector, &pod.metadata) {
            self.wake(key);
        }
    }
}
