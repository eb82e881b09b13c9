//! Creations and deletions of pods that a controller orders, and then waits to see in its watch.

use std::borrow::Borrow;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use plimsoll_client::informer::Key;

use super::expectations::Expectations;
use super::writes::{Writer, for_all, is_not_found, slow_start};

/// Orders pods for one controller. What is ordered must be expected before.
#[derive(Debug)]
pub struct PodOrders<'a> {
    /// The controller.
    pub key: &'a Key,
    /// The controller in events.
    pub about: &'a ObjectReference,
    /// Writes for it.
    pub writer: &'a Writer,
    /// Its expectations; those that will not come true are taken back.
    pub expectations: &'a Expectations,
}

impl PodOrders<'_> {
    /// Creates a pod for each item, see [`slow_start`]. Returns how many were created, and the
    /// first error.
    pub async fn create<T, P: Borrow<Pod>>(
        &self,
        items: Vec<T>,
        pod_of: impl Fn(T) -> P,
    ) -> (usize, Option<kube::Error>) {
        let count = items.len();
        let create = |item| {
            let pod = pod_of(item);
            async move {
                let namespace = &self.key.namespace;
                let created = self.writer.create_pod(namespace, pod.borrow(), self.about);
                created.await
            }
        };
        let (created, error) = slow_start(items, create).await;
        self.expectations.created(self.key, count - created);
        (created, error)
    }

    /// Deletes the pods of those names. Returns the first error, apart from pods that are gone.
    pub async fn delete(&self, names: Vec<String>) -> Option<kube::Error> {
        let deletions = for_all(names, |name: String| async move {
            let namespace = &self.key.namespace;
            let deleted = self.writer.delete_pod(namespace, &name, self.about).await;
            if deleted.is_err() {
                self.expectations.deleted(self.key, &name);
            }
            deleted
        });
        let mut errors = deletions.await.into_iter().filter_map(Result::err);
        errors.find(|error| !is_not_found(error))
    }
}
