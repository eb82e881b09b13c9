//! Work that takes long without waiting for anything.

use tokio::runtime::{Handle, RuntimeFlavor};

/// A list of more objects than this takes long.
pub(super) const LONG_LIST: usize = 500;

/// Runs it so that other requests go on meanwhile: the thread's other tasks move to another one.
pub(super) fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // There is no other thread.
        _ => work(),
    }
}
