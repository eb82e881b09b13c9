//! CPU-bound work in async tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Building a list of more objects than this takes long.
pub(in crate::server) const LONG_LIST: usize = 500;

/// Runs CPU-bound work while the thread's other tasks move to another thread.
pub(in crate::server) fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A current-thread runtime has no other thread.
        _ => work(),
    }
}
