//! Read-after-write consistency of access control: every request sees a role that was bound, a
//! namespace that was deleted or a quota that was lowered by any write this server has
//! acknowledged.
//!
//! The cache follows the store and may be a moment behind an acknowledged write. Where that
//! matters, requests wait for the cache.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Server;
use super::call::Call;
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::Revision;

/// The kinds that decide about other requests.
const ACCESS_CONTROL_KINDS: [&str; 11] = [
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

/// How often, and at which interval, a new pod waits for its service account, as upstream does.
const ACCOUNT_ATTEMPTS: u32 = 10;
const ACCOUNT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The revision of the last change that this server made to one of [`ACCESS_CONTROL_KINDS`].
#[derive(Debug, Default)]
pub(super) struct Barrier(AtomicU64);

impl Barrier {
    /// Records a change of a kind.
    pub(super) fn record(&self, kind: &Kind, revision: Revision) {
        if ACCESS_CONTROL_KINDS.contains(&kind.plural) {
            self.0.fetch_max(revision, Ordering::Relaxed);
        }
    }
}

impl Server {
    /// Waits until the cache has applied all changes of [`ACCESS_CONTROL_KINDS`]. A cache that does
    /// not catch up in time is no reason to reject a request that needs no fresh data.
    pub(super) async fn wait_for_access_changes(&self) {
        let _ = self
            .cache
            .wait_for(self.consistency.0.load(Ordering::Relaxed))
            .await;
    }

    fn has(&self, plural: &str, key: &str) -> bool {
        let collection = self.cache.stored(plural);
        collection.is_some_and(|all| all.get(key).is_some())
    }
}

impl Call<'_> {
    /// Waits for objects that a new object needs and that may have just been created, here or
    /// elsewhere: its namespace, and for a pod the default service account of the namespace.
    pub(super) async fn wait_for_namespace_and_account(&self) -> Result<(), Status> {
        let namespace = self.target.namespace.as_str();
        if !self.kind.is_namespaced() {
            return Ok(());
        }
        if !self.server.has("namespaces", namespace) {
            self.wait_until_fresh("").await?;
        }
        let is_pod = (self.kind.group, self.kind.kind) == ("", "Pod");
        if !is_pod {
            return Ok(());
        }
        let account = format!("{namespace}/default");
        for _ in 0..ACCOUNT_ATTEMPTS {
            let is_complete = self.server.has("serviceaccounts", &account);
            if is_complete || !self.server.has("namespaces", namespace) {
                break;
            }
            tokio::time::sleep(ACCOUNT_RETRY_INTERVAL).await;
        }
        Ok(())
    }
}
