//! Flushing the queue as time passes.

use std::time::Duration;

use super::backoff::{Backoff, is_backing_off};
use super::in_flight::Trigger;
use super::queued_pod::QueuedPod;
use super::scheduling_queue::SchedulingQueue;
use super::time::Time;
use super::wake::Strategy;

const LEFTOVER_CHECK_PERIOD: Duration = Duration::from_secs(30);

const BACKOFF_COMPLETE: &str = "BackoffComplete";
const UNSCHEDULABLE_TIMEOUT: &str = "UnschedulableTimeout";

impl SchedulingQueue {
    /// Does what the passing of time demands: ends backoffs, and every thirty seconds wakes pods
    /// that have been unschedulable for too long.
    pub fn flush(&mut self, now: Time) {
        let has_ended = |queued: &QueuedPod| !is_backing_off(queued.backoff_expiry, now);
        while let Some(queued) = self.backoff.pop_first_if(has_ended) {
            self.insert_active(queued, BACKOFF_COMPLETE, now);
        }
        while let Some(queued) = self.error_backoff.pop_first_if(has_ended) {
            self.insert_active(queued, BACKOFF_COMPLETE, now);
        }
        if now >= self.next_leftover_check {
            let check = self.last_leftover_check(now);
            self.next_leftover_check = check + LEFTOVER_CHECK_PERIOD;
            self.flush_leftovers(check, now);
        }
    }

    /// The last moment up to `now` at which leftovers are to be looked for. Being called late then
    /// makes no difference to which pods are leftovers.
    fn last_leftover_check(&self, now: Time) -> Time {
        let next = self.next_leftover_check;
        let late = now.saturating_since(next).as_nanos();
        next + periods(late / LEFTOVER_CHECK_PERIOD.as_nanos())
    }

    fn flush_leftovers(&mut self, check: Time, now: Time) {
        let max = self.settings.max_unschedulable;
        let leftovers = self
            .unschedulable
            .unschedulable_longer_than(|since| check.saturating_since(since) > max);
        for pod_ref in &leftovers {
            if let Some(mut queued) = self.unschedulable.remove(pod_ref) {
                queued.was_flushed = true;
                queued.flushed_at = check;
                self.unschedulable.insert(queued);
                self.wake(pod_ref, Strategy::AfterBackoff, UNSCHEDULABLE_TIMEOUT, now);
            }
        }
        if !leftovers.is_empty() {
            self.in_flight.record(Trigger::UnschedulableTimeout);
        }
    }

    /// When [`flush`](SchedulingQueue::flush) will have something to do at the latest; `None` if
    /// never, as long as nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let firsts = [self.backoff.first(), self.error_backoff.first()];
        let expiries = firsts.into_iter().flatten();
        let ends = expiries.filter_map(|first| Some(first.backoff_expiry? + Backoff::WINDOW));
        let oldest = self.unschedulable.oldest();
        let leftovers = oldest.map(|since| self.first_leftover_check_for(since));
        ends.chain(leftovers).min()
    }

    /// The first check at which a pod that has been left alone since then is a leftover.
    fn first_leftover_check_for(&self, since: Time) -> Time {
        let due = since + self.settings.max_unschedulable;
        let next = self.next_leftover_check;
        if next > due {
            return next;
        }
        let ahead = due.saturating_since(next).as_nanos();
        next + periods(ahead / LEFTOVER_CHECK_PERIOD.as_nanos() + 1)
    }
}

fn periods(count: u128) -> Duration {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    LEFTOVER_CHECK_PERIOD.saturating_mul(count)
}
