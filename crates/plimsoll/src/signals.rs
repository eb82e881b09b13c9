//! SIGTERM and SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::logging::STATUS;

/// SIGTERM and SIGINT, from now on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Ends with the first SIGTERM or SIGINT, without a log line: for commands that run until Ctrl-C.
pub(crate) async fn interrupted() {
    match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(terminate), Ok(interrupt)) => {
            let mut signals = Signals {
                terminate,
                interrupt,
            };
            signals.next().await;
        }
        // Without handlers the signals end the process, which is what they are for.
        _ => std::future::pending().await,
    }
}

/// A token that is cancelled on the first SIGTERM or SIGINT. A second one ends the process at once.
pub(crate) fn stop_token() -> CancellationToken {
    let stop = CancellationToken::new();
    let (Ok(terminate), Ok(interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        // Without handlers the signals end the process, as by default.
        return stop;
    };
    let mut signals = Signals {
        terminate,
        interrupt,
    };
    let stopping = stop.clone();
    tokio::spawn(async move {
        let received = signals.next().await;
        tracing::info!(target: STATUS, "received {received}, stopping");
        stopping.cancel();
        let received = signals.next().await;
        tracing::info!(target: STATUS, "received {received} again, exiting at once");
        std::process::exit(130);
    });
    stop
}
