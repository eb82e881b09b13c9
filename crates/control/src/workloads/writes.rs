//! Writes that all workload loops make, and the events about them.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::future::Future;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use plimsoll_client::events::{Note, Recorder};
use plimsoll_client::informer::{Informers, Key};

use super::pod_state;

/// How many requests of one batch are under way at once.
const IN_FLIGHT: usize = 64;

/// A write that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what}: {}", message_of(.source))]
pub struct WriteError {
    /// The object that was to be written.
    pub what: Cow<'static, str>,
    /// Why.
    pub source: kube::Error,
}

/// Names the object that could not be written.
pub fn failed(what: impl Into<Cow<'static, str>>) -> impl FnOnce(kube::Error) -> WriteError {
    let what = what.into();
    |source| WriteError { what, source }
}

/// A client with a voice.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    recorder: Recorder,
}

impl Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Writes with the client of the informers and records events of that component until `stop`.
    pub fn of(informers: &Informers, component: &'static str, stop: &CancellationToken) -> Writer {
        let client = informers.client().clone();
        let recorder = Recorder::counted(client.clone(), component, stop.clone());
        Writer { client, recorder }
    }

    /// The objects of a kind in a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Records an event about an object.
    pub fn record_event(&self, about: &ObjectReference, note: Note) {
        self.recorder.record_note(about.clone(), note);
    }

    /// Creates a pod of a controller and records an event. In a namespace that is terminating
    /// nothing can be created, and no event is recorded.
    pub async fn create_pod(
        &self,
        namespace: &str,
        pod: &Pod,
        controller: &ObjectReference,
    ) -> Result<(), kube::Error> {
        match self
            .api::<Pod>(namespace)
            .create(&PostParams::default(), pod)
            .await
        {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod_state::name(&pod));
                self.record_event(controller, Note::normal("SuccessfulCreate", message));
                Ok(())
            }
            Err(error) if is_namespace_terminating(&error) => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", message_of(&error));
                self.record_event(controller, Note::warning("FailedCreate", message));
                Err(error)
            }
        }
    }

    /// Deletes a pod of a controller and records an event.
    pub async fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        controller: &ObjectReference,
    ) -> Result<(), kube::Error> {
        let api = self.api::<Pod>(namespace);
        match api.delete(name, &DeleteParams::default()).await {
            Ok(_) => {
                let message = format!("Deleted pod: {name}");
                self.record_event(controller, Note::normal("SuccessfulDelete", message));
                Ok(())
            }
            Err(error) if is_not_found(&error) => Err(error),
            Err(error) => {
                let message = format!("Error deleting: {}", message_of(&error));
                self.record_event(controller, Note::warning("FailedDelete", message));
                Err(error)
            }
        }
    }

    /// Patches an object strategically.
    pub async fn patch<K>(&self, key: &Key, patch: &Value) -> Result<K, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>(&key.namespace);
        let patch = Patch::Strategic(patch);
        api.patch(&key.name, &PatchParams::default(), &patch).await
    }

    /// Writes the status of an object. A newer version of the object is not overwritten.
    pub async fn replace_status<K>(&self, object: &K) -> Result<K, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let key = Key::of(object.meta());
        let api = self.api::<K>(&key.namespace);
        api.replace_status(&key.name, &PostParams::default(), object)
            .await
    }
}

/// Does something to all items, many at once; answers the results in the order of the items.
pub async fn for_all<T, R, F>(items: Vec<T>, act: impl Fn(T) -> F) -> Vec<R>
where
    F: Future<Output = R>,
{
    let acts = futures::stream::iter(items).map(act);
    acts.buffered(IN_FLIGHT).collect().await
}

/// Does something to items in batches of one, two, four and so on, and stops after a batch with a
/// failure: what the first item is refused for, a hundred others would be refused for too. Answers
/// how many succeeded, and the first error.
///
/// Matches v1.36 pkg/controller/replicaset/replica_set.go, `slowStartBatch`.
pub async fn slow_start<T, E, F>(items: Vec<T>, act: impl Fn(T) -> F) -> (usize, Option<E>)
where
    F: Future<Output = Result<(), E>>,
{
    let mut items = items.into_iter();
    let mut succeeded = 0;
    let mut size = 1;
    loop {
        let batch: Vec<T> = items.by_ref().take(size).collect();
        if batch.is_empty() {
            return (succeeded, None);
        }
        let mut first_error = None;
        for result in for_all(batch, &act).await {
            match result {
                Ok(()) => succeeded += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if first_error.is_some() {
            return (succeeded, first_error);
        }
        size *= 2;
    }
}

/// The server's message, or why the request failed.
pub fn message_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether there is no such object.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// Whether there is such an object already.
pub fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}

/// Whether another client changed the object meanwhile.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict())
}

/// Whether the object has another uid or lacks the reference: it is not the one that was meant.
pub fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
}

/// Whether creations are refused because the namespace goes away.
pub fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[tokio::test]
    async fn batches_double_until_one_fails() {
        let seen = Mutex::new(Vec::new());
        let act = |item: usize| {
            seen.lock().unwrap().push(item);
            async move { if item == 5 { Err("no") } else { Ok(()) } }
        };
        let result = slow_start((0..20).collect(), act).await;
        // The third batch is 3 to 6.
        assert_eq!(result, (6, Some("no")));
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6]);
        let all = slow_start((0..100).collect(), |_: usize| async { Ok::<_, ()>(()) }).await;
        assert_eq!(all, (100, None));
    }
}
