//! A sign from whoever kills a pod's processes to whoever sees them dead.

use std::sync::atomic::{AtomicBool, Ordering};

/// That a pod's processes are killed by somebody else than its worker, who says why right after. To
/// give it takes no lock and no memory.
#[derive(Debug, Default)]
pub struct Sign(AtomicBool);

impl Sign {
    /// Gives it. It is not taken back.
    pub fn give(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
