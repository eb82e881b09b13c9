//! Being told to stop.

use tokio::signal::unix::{SignalKind, signal};

/// Returns on the first SIGTERM or SIGINT. A second one ends the process at once.
pub(crate) async fn stopped() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        // Without handlers the signals end the process, which is what they are for.
        return std::future::pending().await;
    };
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    next().await;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    });
}
