//! Requests see what decides about them: a role that was bound, a namespace that was deleted, a
//! quota that was lowered, by anybody whose write this server has answered.
//!
//! The cache follows the store and may be a moment behind an answered write. Where that would be
//! noticed, requests wait for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Server;
use super::call::{Call, key};
use crate::kinds::{self, Kind};
use crate::status::Status;
use crate::store::Revision;

/// The kinds that decide about requests for others.
const DECISIVE: [&str; 11] = [
    "namespaces",
    "serviceaccounts",
    "secrets",
    "resourcequotas",
    "limitranges",
    "priorityclasses",
    "runtimeclasses",
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
];

/// How often, and how far apart, a new pod looks for its account, as upstream does.
const ACCOUNT_LOOKS: u32 = 10;
const ACCOUNT_PAUSE: Duration = Duration::from_millis(100);

/// The revision of the last decisive change that was made here.
#[derive(Debug, Default)]
pub(super) struct Decisive(AtomicU64);

impl Decisive {
    /// Notes down a change of a kind.
    pub(super) fn note(&self, kind: &Kind, revision: Revision) {
        if DECISIVE.contains(&kind.plural) {
            self.0.fetch_max(revision, Ordering::Relaxed);
        }
    }
}

impl Server {
    /// Waits until the cache has seen all decisive changes. A cache that does not come that far
    /// is no reason to refuse what needs no fresh answer.
    pub(super) async fn see_decisive_changes(&self) {
        let _ = self
            .cache
            .wait_for(self.decisive.0.load(Ordering::Relaxed))
            .await;
    }

    fn has(&self, plural: &str, namespace: &str, name: &str) -> bool {
        let kind = kinds::by_resource("", "v1", plural);
        let key = kind.map(|kind| (kind, key(kind, namespace, name)));
        key.is_some_and(|(kind, key)| {
            let collection = self.cache.collection(kind);
            collection.is_some_and(|all| all.get(&key).is_some())
        })
    }
}

impl Call<'_> {
    /// Waits for what a new object needs and may have been made a moment ago, here or elsewhere:
    /// its namespace, and for a pod the account that every namespace gets.
    pub(super) async fn see_surroundings(&self) -> Result<(), Status> {
        let namespace = self.target.namespace.as_str();
        if !self.kind.is_namespaced() {
            return Ok(());
        }
        if !self.server.has("namespaces", "", namespace) {
            self.freshen("").await?;
        }
        let is_pod = (self.kind.group, self.kind.kind) == ("", "Pod");
        for _ in 0..ACCOUNT_LOOKS {
            let is_complete = self.server.has("serviceaccounts", namespace, "default");
            if !is_pod || is_complete || !self.server.has("namespaces", "", namespace) {
                break;
            }
            tokio::time::sleep(ACCOUNT_PAUSE).await;
        }
        Ok(())
    }
}
