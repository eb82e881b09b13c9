//! Which controller is to be woken by a change of a pod.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as ApiLabelSelector, OwnerReference,
};
use kube::Resource;
use plimsoll_core::object::selector::LabelSelector;

use crate::work_queue::WorkQueue;
use plimsoll_client::informer::{Change, Informer, Key, Subscription};

use super::expectations::Expectations;
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
            Change::Added(pod) => match controller_of(&pod.metadata) {
                Some(reference) => {
                    if let Some(key) = self.resolve(pod, reference) {
                        self.expectations.created(&key, 1);
                        self.wake(key);
                    }
                }
                None => self.wake_matching(pod),
            },
            Change::Updated { before, after } => self.updated(before, after),
        }
    }

    fn updated(&self, before: &Pod, after: &Pod) {
        let (old, new) = (
            controller_of(&before.metadata),
            controller_of(&after.metadata),
        );
        let has_moved = old != new;
        if let Some(old) = old.filter(|_| has_moved)
            && let Some(key) = self.resolve(before, old)
        {
            self.wake(key);
        }
        match new {
            Some(new) => {
                if let Some(key) = self.resolve(after, new) {
                    self.wake(key);
                }
            }
            None if has_moved || before.metadata.labels != after.metadata.labels => {
                self.wake_matching(after);
            }
            None => {}
        }
    }

    fn deleted(&self, pod: &Pod) {
        let reference = controller_of(&pod.metadata);
        if let Some(key) = reference.and_then(|reference| self.resolve(pod, reference)) {
            self.expectations.deleted(&key, pod_state::name(pod));
            self.wake(key);
        }
    }

    /// The controller that the reference names, if it is of this kind and the very one.
    pub fn resolve(&self, pod: &Pod, reference: &OwnerReference) -> Option<Key> {
        if !self.kind.is_named_by(reference) {
            return None;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let key = Key::new(namespace, reference.name.as_str());
        let controller = self.controllers.get(&key)?;
        (controller.meta().uid.as_ref() == Some(&reference.uid)).then_some(key)
    }

    fn wake(&self, key: Key) {
        if self.delay.is_zero() {
            self.queue.add(key);
        } else {
            self.queue.add_after(key, self.delay);
        }
    }

    /// A controller may want to adopt it.
    fn wake_matching(&self, pod: &Pod) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let Some(labels) = &pod.metadata.labels else {
            return;
        };
        for controller in self.controllers.in_namespace(namespace) {
            let selector = (self.selector)(&controller);
            let selector = LabelSelector::from_api(selector.as_ref());
            if selector.is_ok_and(|selector| !selector.is_empty() && selector.matches(labels)) {
                self.wake(Key::of(controller.meta()));
            }
        }
    }
}
