//! The health of the agent: its tasks run, and its loops complete in time.

use std::time::Duration;

use super::pressure::Journals;
use crate::eviction::Journal;
use crate::pods::Pods;
use plimsoll_client::supervision::{Problem, Supervisor};

/// After so long without a look at the runtime the agent hangs. Upstream's `relistThreshold`.
const RELIST_THRESHOLD: Duration = Duration::from_secs(3 * 60);
/// After so long without a look at the node eviction hangs. It looks every ten seconds at least; a
/// kill may hold it up.
const EVICTION_THRESHOLD: Duration = Duration::from_secs(2 * 60);

/// What keeps the node going.
#[derive(Clone, Debug)]
pub(super) struct Vitals {
    pub(super) supervisor: Supervisor,
    pub(super) journal: Journals,
    pub(super) pods: Pods,
}

impl Vitals {
    /// What keeps the node from being ready.
    pub(super) fn problems(&self) -> Vec<String> {
        let failed = self.supervisor.problems().into_iter();
        let failed =
            failed.map(|Problem { task, reason }| format!("kubelet task {task} failed: {reason}"));
        let mut problems: Vec<String> = failed.collect();
        match self.journal.borrow().as_ref().map(Journal::age) {
            None => problems.push("eviction manager has not started".to_owned()),
            Some(age) => problems.extend(late("eviction manager", age, EVICTION_THRESHOLD)),
        }
        let relisted = late("pleg", self.pods.relist_age(), RELIST_THRESHOLD);
        problems.extend(relisted.map(|late| format!("PLEG is not healthy: {late}")));
        problems
    }

    /// Waits until eviction has begun, so that a node is not ready for an instant only; not for
    /// long, so that a node that cannot evict is registered and reports it.
    pub(super) async fn begun(&self, patience: Duration) {
        let mut journal = self.journal.clone();
        let begun = journal.wait_for(Option::is_some);
        let _ = tokio::time::timeout(patience, begun).await;
    }
}

/// In upstream's words.
fn late(what: &str, age: Duration, threshold: Duration) -> Option<String> {
    let whole = |duration: Duration| format!("{}s", duration.as_secs());
    (age > threshold).then(|| {
        format!(
            "{what} was last seen active {} ago; threshold is {}",
            whole(age),
            whole(threshold)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_loop_is_named() {
        let threshold = Duration::from_secs(180);
        assert_eq!(late("pleg", threshold, threshold), None);
        let text = "pleg was last seen active 181s ago; threshold is 180s";
        let found = late("pleg", Duration::from_secs(181), threshold);
        assert_eq!(found.as_deref(), Some(text));
    }
}
