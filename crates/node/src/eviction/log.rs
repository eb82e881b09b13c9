//! What the log says about a decision: thresholds, ranking, and the pods that are evicted.

use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::{Decision, Eviction, Input, KillOutcome, Verdict};

/// How many pods of a ranking are logged. The record has more; these are the next to be evicted.
const RANKED: usize = 5;

/// A pass that ends with a record.
pub(super) fn pass(record: &Record) {
    let decision = &record.decision;
    for line in decision.lines.iter().filter(|line| line.is_due) {
        let (available, threshold) = (line.available_quantity(), line.threshold_quantity());
        tracing::info!(
            signal = line.signal,
            available = available.map(display),
            threshold = threshold.map(display),
            "eviction threshold met"
        );
    }
    for reclaimed in &decision.reclaims {
        tracing::info!(reclaimed, "attempted to reclaim before evicting pods");
    }
    if !decision.evictions.is_empty() && !decision.ranking.is_empty() {
        let pods = decision.ranking.iter().take(RANKED);
        let pods: Vec<&str> = pods.map(|ranked| ranked.pod.as_str()).collect();
        tracing::info!(?pods, of = record.pods.len(), "pods ranked for eviction");
    }
}

/// A pod that is evicted.
pub(super) fn evicted(eviction: &Eviction, outcome: KillOutcome) {
    tracing::info!(
        pod = %eviction.pod_ref, outcome = outcome.as_str(),
        grace_period_seconds = eviction.grace_period_seconds, reason = eviction.message,
        "evicted pod"
    );
}

/// A decision to wait.
pub(super) fn waiting(decision: &Decision, input: &Input<'_>) {
    let Input::Observed { observation, .. } = input else {
        return;
    };
    if observation.is_oom_killed && decision.verdict == Verdict::WaitingForOomKill {
        tracing::info!("container OOM-killed; waiting for its memory before evicting pods");
    }
}
