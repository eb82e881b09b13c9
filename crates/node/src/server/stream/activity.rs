//! Whether anything still happens on a connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Counts what has moved, so that a connection on which nothing moves can be given up.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU64);

impl Activity {
    pub(super) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends when nothing has moved for at least `idle`, and before twice as long.
    pub(super) async fn stall(&self, idle: Duration) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            sleep(idle).await;
            let now = self.0.load(Ordering::Relaxed);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stalls_only_when_nothing_moves() {
        let activity = Activity::default();
        let start = Instant::now();
        let moving = async {
            for _ in 0..5 {
                sleep(Duration::from_secs(8)).await;
                activity.note();
            }
        };
        tokio::join!(moving, activity.stall(Duration::from_secs(10)));
        assert!(start.elapsed() >= Duration::from_secs(50));
        assert!(start.elapsed() <= Duration::from_secs(60));
    }
}
