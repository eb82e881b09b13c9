//! Why the processes of a pod are killed, for its worker.

use std::sync::{Arc, OnceLock};

use plimsoll_core::eviction::Eviction;

use super::status::Forced;

/// That the processes of a pod are killed by something else than its worker, and why. It is given
/// before the first of them dies, so that the worker that sees them dead knows the reason. To give
/// it takes no lock and no memory.
#[derive(Debug, Default)]
pub struct KillNotice(OnceLock<Arc<Eviction>>);

impl KillNotice {
    /// Gives it. It is not taken back, and the first reason stays.
    pub fn give(&self, eviction: &Arc<Eviction>) {
        // A second one has nothing to add.
        let _ = self.0.set(Arc::clone(eviction));
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.get().is_some()
    }

    /// What the pod's status says from then on.
    pub(crate) fn forced(&self) -> Option<Forced> {
        self.0.get().map(|eviction| Forced::evicted(eviction))
    }
}
