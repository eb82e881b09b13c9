//! Objects that every cluster has: namespaces, roles, priority classes, and in each namespace a
//! service account and the CA certificate.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::try_join_all;
use plimsoll_client::supervision::Weight;
use plimsoll_core::lifecycle::namespace_defaults::{
    DEFAULT_SERVICE_ACCOUNT, DESCRIPTION_ANNOTATION, ROOT_CA_CONFIG_MAP, ROOT_CA_DESCRIPTION,
    ROOT_CA_KEY,
};
use serde_json::{Value, json};

use crate::auth::rbac::{self, Change, Standard};
use crate::cache::{self, EventType};
use crate::kinds::{self, Kind};
use crate::server::Server;
use crate::server::objects::identity;
use crate::server::request::call::{key, time_text};
use crate::server::request::respond;
use crate::store::{self, Outcome, Txn};

/// An etcd that elects a leader, or starts with this server, is available within this time.
const AVAILABLE_WITHIN: Duration = Duration::from_secs(30);

const RETRY_AFTER: Duration = Duration::from_millis(500);

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates the objects that are missing. Existing objects are left alone, except for permissions
/// that the standard roles must grant.
pub(in crate::server) async fn ensure_defaults(server: &Arc<Server>) -> Result<(), String> {
    // In parallel: the store commits many writes with one flush.
    let namespaces = NAMESPACES.map(|name| async move {
        server.ensure("", "namespaces", namespace(name)).await?;
        server.ensure_namespace_defaults(name).await
    });
    try_join_all(namespaces).await?;
    for (name, value, description) in [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
    ] {
        let class = json!({
            "metadata": {"name": name, "generation": 1},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        server
            .ensure("scheduling.k8s.io", "priorityclasses", class)
            .await?;
    }
    server.settle().await?;
    let configuration = server.authentication_configuration();
    server.repair("configmaps", configuration).await?;
    server
        .repair("configmaps", server.kubelet_serving_authority())
        .await?;
    let changes = rbac::reconcile(&Standard::new(), server.as_ref()).into_iter();
    try_join_all(changes.map(|change| server.apply_policy(change))).await?;
    server.settle().await
}

fn namespace(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

/// Creates the default objects of every new namespace, and recreates them when they are deleted
/// from a namespace that stays.
pub(in crate::server) fn follow_namespaces(server: &Arc<Server>) {
    for (plural, task) in [
        ("namespaces", "namespace-defaults-controller"),
        ("serviceaccounts", "serviceaccount-controller"),
        ("configmaps", "root-ca-certificate-publisher-controller"),
    ] {
        let Some(kind) = kinds::by_resource("", "v1", plural) else {
            continue;
        };
        let weak = Arc::downgrade(server);
        let supervisor = &server.supervisor;
        supervisor.keep(task, Weight::Vital, move || {
            follow(weak.clone(), kind).map(Ok)
        });
    }
}

async fn follow(server: Weak<Server>, kind: &'static Kind) {
    loop {
        let Some(strong) = server.upgrade() else {
            return;
        };
        let Some(collection) = strong.cache.collection(kind) else {
            return;
        };
        let (_, mut watcher) = collection.list_and_watch("");
        let mut stop = strong.stopping();
        // Objects that were deleted while the task was not running.
        let namespaces = kinds::by_resource("", "v1", "namespaces");
        let namespaces = namespaces.and_then(|kind| strong.cache.collection(kind));
        for namespace in namespaces.into_iter().flat_map(|all| all.list("", None)) {
            strong
                .ensure_namespace_defaults_or_warn(namespace.name())
                .await;
        }
        drop(strong);
        loop {
            let batch = tokio::select! {
                batch = watcher.next() => batch,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(batch) = batch else { break };
            let Some(server) = server.upgrade() else {
                return;
            };
            for event in batch {
                let Some((event_type, object)) = event.seen(|_| true) else {
                    continue;
                };
                let is_missing = match kind.plural {
                    "namespaces" => event_type == EventType::Added,
                    "serviceaccounts" => {
                        event_type == EventType::Deleted && object.name() == DEFAULT_SERVICE_ACCOUNT
                    }
                    _ => event_type != EventType::Added && object.name() == ROOT_CA_CONFIG_MAP,
                };
                if is_missing {
                    let namespace = match kind.plural {
                        "namespaces" => object.name(),
                        _ => object.namespace(),
                    };
                    server.ensure_namespace_defaults_or_warn(namespace).await;
                }
            }
        }
    }
}

impl Server {
    async fn ensure_namespace_defaults_or_warn(&self, namespace: &str) {
        if let Err(error) = self.ensure_namespace_defaults(namespace).await {
            tracing::warn!(
                namespace,
                error,
                "failed to create default objects of namespace"
            );
        }
    }

    /// Creates a namespace's default service account and CA config map, unless it is terminating.
    pub(in crate::server) async fn ensure_namespace_defaults(
        &self,
        namespace: &str,
    ) -> Result<(), String> {
        let row = kinds::by_resource("", "v1", "namespaces");
        let stored = row.and_then(|row| self.cache.collection(row)?.get(namespace));
        let stored = stored.and_then(|stored| stored.value().ok());
        if stored.is_some_and(|stored| stored["status"]["phase"] == "Terminating") {
            return Ok(());
        }
        let account =
            json!({"metadata": {"name": DEFAULT_SERVICE_ACCOUNT, "namespace": namespace}});
        self.ensure("", "serviceaccounts", account).await?;
        let trusted = json!({
            "metadata": {
                "name": ROOT_CA_CONFIG_MAP,
                "namespace": namespace,
                "annotations": {DESCRIPTION_ANNOTATION: ROOT_CA_DESCRIPTION},
            },
            "data": {ROOT_CA_KEY: self.authority.certificate_pem()},
        });
        self.repair("configmaps", trusted).await
    }

    /// The certificate with which other servers of the cluster verify this server's clients.
    fn authentication_configuration(&self) -> Value {
        json!({
            "metadata": {
                "name": "extension-apiserver-authentication",
                "namespace": "kube-system",
            },
            "data": {"client-ca-file": self.authority.client_ca_pem()},
        })
    }

    /// The certificate with which clients that connect to nodes verify them.
    fn kubelet_serving_authority(&self) -> Value {
        json!({
            "metadata": {"name": "kubelet-serving-ca", "namespace": "kube-system"},
            "data": {ROOT_CA_KEY: self.authority.kubelet_serving_ca_pem()},
        })
    }

    /// Stores an object unless one of that name exists. Every cluster has it, so it is stored even
    /// if the store is full.
    async fn ensure(&self, group: &str, plural: &str, object: Value) -> Result<(), String> {
        let kind = kinds::by_resource(group, "v1", plural)
            .ok_or_else(|| format!("{plural} are not served"))?;
        let object = completed(kind, object);
        let (key, short_key) = self.place(kind, &object)?;
        let collection = self.cache.collection(kind);
        if collection.is_some_and(|all| all.get(&short_key).is_some()) {
            return Ok(());
        }
        let txn = Txn::create(key, cache::encode(&object));
        let stored = self.commit(txn).await;
        stored.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Stores a config map, or its data if the existing one has other data.
    async fn repair(&self, plural: &str, object: Value) -> Result<(), String> {
        let kind = kinds::by_resource("", "v1", plural)
            .ok_or_else(|| format!("{plural} are not served"))?;
        let mut object = completed(kind, object);
        let (key, short_key) = self.place(kind, &object)?;
        let existing = self
            .cache
            .collection(kind)
            .and_then(|all| all.get(&short_key));
        let Some(existing) = existing else {
            let txn = Txn::create(key, cache::encode(&object));
            let stored = self.commit(txn).await;
            return stored.map(|_| ()).map_err(|error| error.to_string());
        };
        let mut found = existing.value().map_err(|error| error.to_string())?;
        if found["data"] == object["data"] {
            return Ok(());
        }
        found["data"] = object["data"].take();
        if let Some(meta) = found["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let txn = Txn::update(key, existing.revision(), cache::encode(&found));
        // After a conflict, the change event triggers another check.
        let stored = self.commit(txn).await;
        stored.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn apply_policy(&self, change: Change) -> Result<(), String> {
        let (policy, object, replaces) = match change {
            Change::Create(policy, object) => (policy, object, false),
            Change::Update(policy, object) | Change::Recreate(policy, object) => {
                (policy, object, true)
            }
        };
        let kind = kinds::by_resource(rbac::GROUP, "v1", policy.resource())
            .ok_or_else(|| format!("{} are not served", policy.resource()))?;
        let mut object = completed(kind, object);
        let (key, short_key) = self.place(kind, &object)?;
        // A standard role that cannot be decoded is replaced like one that grants too little.
        let collection = self.cache.collection(kind);
        let is_unreadable = collection.is_some_and(|all| all.unreadable(&short_key).is_some());
        let replaces = replaces || is_unreadable;
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let bytes = cache::encode(&object);
        let txn = match replaces {
            true => Txn::new().put(key, bytes),
            false => Txn::create(key, bytes),
        };
        match self.commit(txn).await {
            Ok(Outcome::Committed { .. } | Outcome::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(in crate::server) fn place(
        &self,
        kind: &'static Kind,
        object: &Value,
    ) -> Result<(String, String), String> {
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let collection = self.cache.collection(kind);
        let collection = collection.ok_or_else(|| format!("{} are not stored", kind.plural))?;
        let short = key(kind, meta("namespace"), meta("name"));
        Ok((format!("{}{short}", collection.prefix()), short))
    }

    /// Commits, even if the disk is full, and retries while the store is unavailable: these writes
    /// are idempotent.
    async fn commit(&self, txn: Txn) -> Result<Outcome, store::Error> {
        let txn = txn.urgent();
        let deadline = Instant::now() + AVAILABLE_WITHIN;
        loop {
            match self.store.txn(txn.clone()).await {
                Err(error @ store::Error::Unavailable { .. }) if Instant::now() < deadline => {
                    tracing::warn!(%error, "store unavailable, retrying");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits until the cache has applied the writes above.
    async fn settle(&self) -> Result<(), String> {
        let current = self.store.current_revision().await;
        let current = current.map_err(|error| error.to_string())?;
        let reached = self.cache.wait_for(current).await;
        reached.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// The object with its type and identity.
pub(in crate::server) fn completed(kind: &Kind, mut object: Value) -> Value {
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    let meta = &mut object["metadata"];
    if meta["uid"].is_null() {
        meta["uid"] = json!(identity::uid());
    }
    if meta["creationTimestamp"].is_null() {
        meta["creationTimestamp"] = json!(time_text(respond::now()));
    }
    object
}
