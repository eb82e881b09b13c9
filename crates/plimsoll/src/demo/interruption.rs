//! Signals that end the demo early.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP. While it exists, further signals do not interrupt the cleanup.
pub(super) struct Interruption {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interruption {
    pub(super) fn listen() -> Result<Interruption> {
        let listen = |kind| signal(kind).context("cannot install signal handlers");
        Ok(Interruption {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Returns on the first of them.
    pub(super) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
