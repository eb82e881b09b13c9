//! Requests see what decides about them: a role that was bound, a namespace that was deleted, a
//! quota that was lowered, by anybody whose write this server has answered.
//!
//! The cache follows the store and may be a moment behind an answered write. Where that would be
//! noticed, requests wait for it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Server;
use crate::kinds::Kind;
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
}
