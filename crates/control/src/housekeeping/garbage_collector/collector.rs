//! The loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use tokio_util::sync::CancellationToken;

use crate::housekeeping::discovery::{Kind, discover};
use crate::work_queue::WorkQueue;
use plimsoll_client::events::{EventType, Occurrence, Recorder};
use plimsoll_client::informer::{Informers, MetadataChange, MetadataWatch};

use super::decision::{Decision, Owner, decide};
use super::graph::{Graph, Todo};
use super::identity::Identity;
use super::server::{Error, Server};
use super::{FOREGROUND, ORPHAN, has_finalizer};

/// Objects processed concurrently, in each of the two ways.
const WORKERS: usize = 20;
/// How long the watches may take to list everything before work begins.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// The component in events.
const COMPONENT: &str = "garbage-collector-controller";

/// The settings of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often the server's kinds are discovered.
    pub discovery_period: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            discovery_period: Duration::from_secs(30),
        }
    }
}

struct Collector {
    server: Server,
    graph: Mutex<Graph>,
    to_delete: Arc<WorkQueue<Identity>>,
    to_orphan: Arc<WorkQueue<Identity>>,
    recorder: Recorder,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let client = informers.client().clone();
    let collector = Arc::new(Collector {
        recorder: Recorder::counted(client.clone(), COMPONENT, stop.clone()),
        server: Server::new(client),
        graph: Mutex::default(),
        to_delete: WorkQueue::new("garbage_collector_attempt_to_delete"),
        to_orphan: WorkQueue::new("garbage_collector_attempt_to_orphan"),
    });
    let mut watches = BTreeMap::new();
    let work = async {
        while !collector.watch_all(&informers, &mut watches).await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let synced = futures::future::join_all(watches.values().map(MetadataWatch::synced));
        if tokio::time::timeout(SYNC_TIMEOUT, synced).await.is_err() {
            tracing::warn!(
                "timed out waiting for caches to sync, collecting garbage with the kinds that are"
            );
        }
        tokio::join!(
            Arc::clone(&collector).run_delete_worker(),
            Arc::clone(&collector).run_orphan_worker(),
            async {
                loop {
                    tokio::time::sleep(options.discovery_period).await;
                    collector.watch_all(&informers, &mut watches).await;
                }
            }
        );
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Events about events would be without end, and no event is an owner.
fn is_watched(kind: &Kind) -> bool {
    let verbs = ["delete", "list", "watch"];
    kind.resource.plural != "events" && verbs.iter().all(|verb| kind.supports(verb))
}

impl Collector {
    /// Held only between awaits, and what it protects is whole after each of its methods.
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches every kind that exists, and no removed one; returns whether any is known.
    async fn watch_all(
        self: &Arc<Self>,
        informers: &Informers,
        watches: &mut BTreeMap<(String, String), MetadataWatch>,
    ) -> bool {
        let kinds = match discover(self.server.client()).await {
            Ok(kinds) => kinds,
            Err(error) => {
                tracing::warn!(%error, "failed to discover kinds");
                return !watches.is_empty();
            }
        };
        let wanted: BTreeMap<(String, String), Kind> = kinds
            .preferred()
            .iter()
            .filter(|kind| is_watched(kind))
            .map(|kind| {
                let resource = &kind.resource;
                let name = (resource.api_version.clone(), resource.plural.clone());
                (name, kind.clone())
            })
            .collect();
        self.server.set_kinds(kinds);
        watches.retain(|name, _| wanted.contains_key(name));
        for (name, kind) in wanted {
            watches
                .entry(name)
                .or_insert_with(|| self.watch(informers, &kind));
        }
        !watches.is_empty()
    }

    fn watch(self: &Arc<Self>, informers: &Informers, kind: &Kind) -> MetadataWatch {
        let collector = Arc::clone(self);
        let (api_version, name) = (
            kind.resource.api_version.clone(),
            kind.resource.kind.clone(),
        );
        informers.watch_metadata(&kind.resource, move |change| {
            let todos = match change {
                MetadataChange::Applied(metadata) => {
                    let identity = Identity::of(&api_version, &name, metadata);
                    collector.graph().apply(identity, metadata)
                }
                MetadataChange::Deleted(metadata) => {
                    let identity = Identity::of(&api_version, &name, metadata);
                    collector.graph().delete(&identity)
                }
            };
            collector.note(todos);
        })
    }

    fn note(&self, todos: Vec<Todo>) {
        for todo in todos {
            match todo {
                Todo::Delete(identity) => self.to_delete.add(identity),
                Todo::DeleteLater(identity) => self.to_delete.add_failed(identity),
                Todo::Orphan(identity) => self.to_orphan.add(identity),
                Todo::ReportNamespace { object, owner } => self.report(object, &owner),
            }
        }
    }

    fn report(&self, object: Identity, owner: &Identity) {
        let note = format!(
            "ownerRef {owner} does not exist in namespace {:?}",
            object.namespace
        );
        self.recorder.record(Occurrence {
            regarding: ObjectReference {
                api_version: Some(object.api_version),
                kind: Some(object.kind),
                namespace: Some(object.namespace),
                name: Some(object.name),
                uid: Some(object.uid),
                ..ObjectReference::default()
            },
            related: None,
            event_type: EventType::Warning,
            reason: "OwnerRefInvalidNamespace".into(),
            action: "".into(),
            note,
        });
    }

    async fn run_delete_worker(self: Arc<Self>) {
        let queue = Arc::clone(&self.to_delete);
        let work = move |identity: Identity| {
            let collector = Arc::clone(&self);
            async move { collector.attempt_to_delete(&identity).await.map(|()| None) }
        };
        queue.work(WORKERS, work).await;
    }

    async fn run_orphan_worker(self: Arc<Self>) {
        let queue = Arc::clone(&self.to_orphan);
        let work = move |identity: Identity| {
            let collector = Arc::clone(&self);
            async move { collector.orphan_dependents(&identity).await.map(|()| None) }
        };
        queue.work(WORKERS, work).await;
    }

    /// Looks at an object, and deletes it if none of its owners is left.
    async fn attempt_to_delete(&self, identity: &Identity) -> Result<(), Error> {
        let Some(node) = self.graph().node(&identity.uid).cloned() else {
            return Ok(());
        };
        if node.identity != *identity || node.is_being_deleted && !node.is_deleting_dependents {
            return Ok(());
        }
        let latest = match self.server.get(identity).await {
            Err(Error::NamespacedOwner(_)) => return Ok(()),
            latest => latest?,
        };
        let latest = latest.filter(|latest| latest.uid.as_ref() == Some(&identity.uid));
        let Some(latest) = latest else {
            let todos = self.graph().delete_absent(identity);
            self.note(todos);
            return Ok(());
        };
        if node.is_deleting_dependents {
            return self.delete_dependents(identity).await;
        }
        let owners = latest.owner_references.clone().unwrap_or_default();
        if !owners.is_empty() {
            self.collect(identity, &latest, owners).await?;
        }
        match node.is_virtual {
            true => Err(Error::NotReported(identity.clone())),
            false => Ok(()),
        }
    }

    async fn collect(
        &self,
        identity: &Identity,
        latest: &ObjectMeta,
        owners: Vec<OwnerReference>,
    ) -> Result<(), Error> {
        let mut states = Vec::new();
        for owner in owners {
            match self.state_of(&owner, identity).await {
                // Such a reference never becomes valid; the object is left as it is.
                Err(Error::NamespacedOwner(_)) => return Ok(()),
                state => states.push((owner, state?)),
            }
        }
        let dependents = self.graph().dependents(&identity.uid);
        let has_waiting_dependent = dependents.iter().any(|node| node.is_deleting_dependents);
        match decide(
            latest,
            &states,
            !dependents.is_empty(),
            has_waiting_dependent,
        ) {
            Decision::Keep => Ok(()),
            Decision::RemoveReferences(uids) => {
                let owners = states.into_iter().map(|(owner, _)| owner);
                let left: Vec<_> = owners.filter(|owner| !uids.contains(&owner.uid)).collect();
                self.server.set_owners(identity, latest, &left).await
            }
            Decision::Delete {
                policy,
                unblocks_owners,
            } => {
                let mut latest = latest.clone();
                if unblocks_owners {
                    for owner in latest.owner_references.iter_mut().flatten() {
                        owner.block_owner_deletion = Some(false);
                    }
                    let owners = latest.owner_references.clone().unwrap_or_default();
                    self.server.set_owners(identity, &latest, &owners).await?;
                    latest.resource_version = None;
                }
                tracing::info!(
                    object = %identity, ?policy, "deleting object whose owners are gone"
                );
                match self.server.delete(identity, &latest, &policy).await {
                    Err(error) if error.is_not_found() => {
                        let todos = self.graph().delete_absent(identity);
                        self.note(todos);
                        Ok(())
                    }
                    result => result,
                }
            }
        }
    }

    /// The state of an owner of an object, as the server has it.
    async fn state_of(&self, owner: &OwnerReference, dependent: &Identity) -> Result<Owner, Error> {
        let mut identity = Identity::of_owner(owner, &dependent.namespace);
        {
            let absent = &self.graph().absent;
            if absent.contains(&identity.without_namespace()) || absent.contains(&identity) {
                return Ok(Owner::Dangling);
            }
        }
        if !self.server.kind(&identity)?.is_namespaced {
            identity = identity.without_namespace();
        }
        let found = self.server.get(&identity).await?;
        match found.filter(|found| found.uid.as_ref() == Some(&owner.uid)) {
            None => {
                self.graph().absent.add(identity);
                Ok(Owner::Dangling)
            }
            Some(found) => {
                let is_waiting =
                    found.deletion_timestamp.is_some() && has_finalizer(&found, FOREGROUND);
                Ok(match is_waiting {
                    true => Owner::Waiting,
                    false => Owner::Solid,
                })
            }
        }
    }

    /// Deletes an owner when nothing blocks it any more; else processes the blocking dependents.
    async fn delete_dependents(&self, owner: &Identity) -> Result<(), Error> {
        let blocking = self.graph().blocking_dependents(&owner.uid);
        if blocking.is_empty() {
            return self.server.remove_finalizer(owner, FOREGROUND).await;
        }
        for dependent in blocking {
            if !dependent.is_deleting_dependents {
                self.to_delete.add(dependent.identity);
            }
        }
        Ok(())
    }

    /// Takes the references to an owner off its dependents, and then removes its finalizer.
    async fn orphan_dependents(&self, owner: &Identity) -> Result<(), Error> {
        let dependents = self.graph().dependents(&owner.uid);
        for dependent in dependents {
            let identity = dependent.identity;
            let seen = self.server.get(&identity).await?;
            let Some(seen) = seen.filter(|seen| seen.uid.as_ref() == Some(&identity.uid)) else {
                continue;
            };
            let owners = seen.owner_references.clone().unwrap_or_default();
            let left: Vec<_> = owners
                .iter()
                .filter(|o| o.uid != owner.uid)
                .cloned()
                .collect();
            if left.len() == owners.len() {
                continue;
            }
            match self.server.set_owners(&identity, &seen, &left).await {
                Err(error) if error.is_not_found() => {}
                result => result?,
            }
        }
        self.server.remove_finalizer(owner, ORPHAN).await
    }
}
