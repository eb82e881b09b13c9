//! Requests that the client cancels before the response.
//!
//! A request costs its client a few bytes and the server much more. HTTP/2 lets a client reset a
//! request and send the next at once, without ever having more than a few open: limits on
//! concurrent requests do not catch it ("rapid reset"). A connection that does little else is
//! closed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// More than this many within [`WINDOW`] are not an accident: a well-behaved client that is stopped
/// cancels as many as it has open.
const MAX_RESETS: u32 = 500;
const WINDOW: Duration = Duration::from_secs(1);

/// The requests that a connection's client has cancelled.
#[derive(Debug)]
pub(in crate::server) struct Resets {
    window: Mutex<(Instant, u32)>,
    flooded: Notify,
}

/// A request in progress.
#[derive(Debug)]
pub(in crate::server) struct Answering {
    resets: Arc<Resets>,
    is_answered: bool,
}

impl Resets {
    pub(in crate::server) fn new() -> Arc<Resets> {
        Arc::new(Resets {
            window: Mutex::new((Instant::now(), 0)),
            flooded: Notify::new(),
        })
    }

    /// A request begins.
    pub(in crate::server) fn begin(self: &Arc<Self>) -> Answering {
        Answering {
            resets: Arc::clone(self),
            is_answered: false,
        }
    }

    /// Resolves when there were too many.
    pub(in crate::server) async fn flooded(&self) {
        self.flooded.notified().await;
    }

    fn note(&self, now: Instant) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = &mut *window;
        if now.saturating_duration_since(*since) > WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        if *count > MAX_RESETS {
            self.flooded.notify_one();
        }
    }
}

impl Answering {
    /// The response is complete.
    pub(in crate::server) fn finish(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.is_answered {
            self.resets.note(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_many_resets_at_once_are_a_flood() {
        let resets = Resets::new();
        let now = Instant::now();
        let is_flooded = || resets.flooded().now_or_never().is_some();
        for _ in 0..MAX_RESETS {
            resets.note(now);
        }
        assert!(!is_flooded());
        let later = now + 2 * WINDOW;
        resets.note(later);
        assert!(!is_flooded());
        for _ in 0..MAX_RESETS {
            resets.note(later);
        }
        assert!(is_flooded());
    }

    #[test]
    fn completed_request_is_not_a_reset() {
        let resets = Resets::new();
        resets.begin().finish();
        drop(resets.begin());
        let window = resets.window.lock().unwrap();
        assert_eq!(window.1, 1);
    }
}
