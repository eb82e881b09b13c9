//! Threads for callers that must be served under load.
//!
//! Tasks wait for a thread in the order in which they become ready, for any caller: a client
//! with a thousand requests under way has a thousand tasks in front of all others. So
//! handshakes, and the connections of administrators, nodes and the control plane, have threads of
//! their own, and the kernel shares the cores between these and the others.

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};

/// The threads; gone, with all that they do, when dropped.
#[derive(Debug)]
pub(in crate::server) struct Priority {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Priority {
    /// As many threads as there are cores. Those that have nothing to do cost nothing.
    pub(in crate::server) fn start() -> std::io::Result<Priority> {
        let mut threads = Builder::new_multi_thread();
        let runtime = threads.thread_name("priority").enable_all().build()?;
        Ok(Priority {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Where to start what has priority.
    pub(in crate::server) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The same socket, looked after by these threads.
    pub(in crate::server) fn take(&self, listener: TcpListener) -> std::io::Result<TcpListener> {
        let listener = listener.into_std()?;
        let _inside = self.handle.enter();
        TcpListener::from_std(listener)
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        // A task may not wait for threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
