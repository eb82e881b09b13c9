//! Objects that are watched one by one, for as long as volumes use them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use plimsoll_client::watching::watch_with_errors;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::SourceError;
use crate::volumes::named::Names;

/// How long the first read of an object may take.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an object is watched after its last use. Volumes read it about every minute.
const IDLE: Duration = Duration::from_secs(300);

/// The objects of one kind that pods on this node name.
pub(super) struct Watched<K> {
    client: Client,
    kind: &'static str,
    /// Whether an object says of itself that it never changes.
    is_immutable: fn(&K) -> bool,
    known: Mutex<BTreeMap<(String, String), Entry<K>>>,
}

struct Entry<K> {
    state: watch::Receiver<State<K>>,
    task: AbortHandle,
    used_at: Instant,
    /// Held by each caller that waits for an answer.
    awaited: Arc<()>,
}

impl<K> Drop for Entry<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum State<K> {
    Unknown,
    Refused(String),
    Absent,
    Present(Arc<K>),
}

impl<K> Watched<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    pub(super) fn new(client: Client, kind: &'static str, is_immutable: fn(&K) -> bool) -> Self {
        Watched {
            client,
            kind,
            is_immutable,
            known: Mutex::default(),
        }
    }

    /// The object as it is now. The first question begins a watch.
    pub(super) async fn get(&self, namespace: &str, name: &str) -> Result<Arc<K>, SourceError> {
        let (mut state, _awaited) = self.state(namespace, name);
        let kind = self.kind;
        let settled = state.wait_for(|state| !matches!(state, State::Unknown | State::Refused(_)));
        let outcome = match tokio::time::timeout(FIRST_READ_TIMEOUT, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Present(object) => Ok(object.clone()),
                _ => Err(SourceError::NotFound {
                    kind,
                    name: name.to_owned(),
                }),
            },
            _ => Err(SourceError::TimedOut { kind }),
        };
        match (&outcome, &*state.borrow()) {
            (Err(SourceError::TimedOut { .. }), State::Refused(why)) => Err(SourceError::Refused(
                format!("failed to sync {kind} cache: {why}"),
            )),
            _ => outcome,
        }
    }

    /// Watches only objects in use, or that a caller waits for, from here on. A node may not read
    /// what no pod of it names any more, and a watch of that would be refused when it is renewed.
    pub(super) fn retain(&self, used: &Names) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, entry| used.contains(name) || Arc::strong_count(&entry.awaited) > 1);
    }

    fn state(&self, namespace: &str, name: &str) -> (watch::Receiver<State<K>>, Arc<()>) {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, entry| now.saturating_duration_since(entry.used_at) < IDLE);
        let key = (namespace.to_owned(), name.to_owned());
        let entry = known
            .entry(key)
            .or_insert_with(|| self.watch(namespace, name));
        entry.used_at = now;
        (entry.state.clone(), Arc::clone(&entry.awaited))
    }

    fn watch(&self, namespace: &str, name: &str) -> Entry<K> {
        let (sender, state) = watch::channel(State::Unknown);
        let api = Api::namespaced(self.client.clone(), namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let task = tokio::spawn(follow(api, config, self.is_immutable, sender));
        Entry {
            state,
            task: task.abort_handle(),
            used_at: Instant::now(),
            awaited: Arc::default(),
        }
    }
}

/// Keeps the state current until the object says that it never changes, or has no receiver.
async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    is_immutable: fn(&K) -> bool,
    state: watch::Sender<State<K>>,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watch_with_errors(api, config);
    pin_mut!(events);
    let mut is_listed = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => is_listed = false,
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                is_listed = true;
                let is_final = is_immutable(&object);
                state.send_replace(State::Present(Arc::new(object)));
                if is_final {
                    // The answer is valid for as long as a receiver exists.
                    state.closed().await;
                    return;
                }
            }
            Ok(Event::InitDone) if !is_listed => drop(state.send_replace(State::Absent)),
            Ok(Event::InitDone) => {}
            Ok(Event::Delete(_)) => drop(state.send_replace(State::Absent)),
            Err(error) => {
                tracing::debug!(%error, "watch interrupted");
                let refused = |state: &mut State<K>| {
                    let is_answered = matches!(state, State::Absent | State::Present(_));
                    if !is_answered {
                        *state = State::Refused(message(&error));
                    }
                    !is_answered
                };
                state.send_if_modified(refused);
            }
        }
    }
}

/// The message of the API server, without the context of the request.
fn message(error: &watcher::Error) -> String {
    use watcher::Error::{InitialListFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status)) => status.message.clone(),
        error => error.to_string(),
    }
}
