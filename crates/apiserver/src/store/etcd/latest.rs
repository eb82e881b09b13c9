//! Coalesces concurrent queries for the latest revision.
//!
//! Every consistent read needs it, and etcd's members have to agree on each response. A response is
//! valid for every caller that asked before the query was sent, so callers that arrive during a
//! query share the next.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::{Error, Revision};

/// Shares one response among all callers that may use it.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// How many callers have asked.
    asked: AtomicU64,
    /// For how many of them the last response is valid, and the response.
    answered: Mutex<(u64, Revision)>,
}

impl Latest {
    /// The latest revision as of this call or later; `ask` sends the query.
    pub(super) async fn get(
        &self,
        ask: impl AsyncFnOnce() -> Result<Revision, Error>,
    ) -> Result<Revision, Error> {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut answered = self.answered.lock().await;
        if answered.0 >= number {
            return Ok(answered.1);
        }
        let good_for = self.asked.load(Ordering::Acquire);
        let revision = ask().await?;
        *answered = (good_for, revision);
        Ok(revision)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn callers_share_queries_and_never_get_an_older_revision() {
        let latest = Arc::new(Latest::default());
        let (clock, questions) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
        let asking = (0..100).map(|_| {
            let (latest, clock, questions) = (latest.clone(), clock.clone(), questions.clone());
            tokio::spawn(async move {
                let now = clock.fetch_add(1, Ordering::SeqCst);
                let answer = latest.get(async || {
                    questions.fetch_add(1, Ordering::SeqCst);
                    let answer = clock.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(answer)
                });
                assert!(answer.await.unwrap() >= now);
            })
        });
        for task in asking.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert!(questions.load(Ordering::SeqCst) < 10);
    }

    #[tokio::test]
    async fn failure_affects_only_the_querying_caller() {
        let latest = Latest::default();
        let failed = latest.get(async || Err(Error::Closed)).await;
        assert!(failed.is_err());
        assert_eq!(latest.get(async || Ok(7)).await.unwrap(), 7);
    }
}
