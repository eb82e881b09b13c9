//! A roll-out a few pods at a time.

use super::desired_state::Strategy;
use super::rollout::{Plan, Progress, Rollout};
use super::status::is_complete;

impl Rollout<'_> {
    /// Grows the newest set as far as the surge allows; or, if it has grown enough for now,
    /// shrinks the old ones as far as availability allows.
    pub(super) fn roll(mut self) -> Plan {
        self.ensure_newest();
        if !self.grow_newest() && !self.shrink_old() {
            let status = self.view.deployment.status.clone().unwrap_or_default();
            if is_complete(&self, &status) {
                self.clean_up();
            }
        }
        self.finish(Progress::Estimated)
    }

    fn grow_newest(&mut self) -> bool {
        let Some(index) = self.newest else {
            return false;
        };
        let size = self.sets[index].replicas();
        let wanted = match size > self.wanted.replicas {
            true => self.wanted.replicas,
            false => self.size_of_newest(size),
        };
        self.scale(index, wanted)
    }

    /// The size the newest set may have now, when it has `size`.
    pub(super) fn size_of_newest(&self, size: i32) -> i32 {
        if self.wanted.strategy == Strategy::Recreate {
            return self.wanted.replicas;
        }
        let room = self
            .wanted
            .max_total()
            .saturating_sub(self.total_replicas());
        let missing = self.wanted.replicas.saturating_sub(size);
        size.saturating_add(room.min(missing).max(0))
    }

    pub(super) fn total_replicas(&self) -> i32 {
        let sizes = self.sets.iter().map(super::rollout::SetState::replicas);
        sizes.fold(0, i32::saturating_add)
    }

    /// Unavailable pods of the newest set count as missing already, so that a broken version does
    /// not take the old one down with it.
    fn shrink_old(&mut self) -> bool {
        let Some(newest) = self.newest else {
            return false;
        };
        let old = self.active(self.old());
        if old.is_empty() {
            return false;
        }
        let newest = &self.sets[newest];
        let not_available = newest.replicas().saturating_sub(newest.available());
        let spare = self
            .total_replicas()
            .saturating_sub(self.wanted.min_available())
            .saturating_sub(not_available);
        if spare <= 0 {
            return false;
        }
        let broken = self.remove_unhealthy(&old, spare);
        let surplus = self.remove_surplus(&old);
        broken || surplus
    }

    /// Pods that are not available go first, because they serve nothing. The set deletes its
    /// unready pods before others.
    fn remove_unhealthy(&mut self, old: &[usize], most: i32) -> bool {
        let mut removed = 0;
        for index in old {
            let set = &self.sets[*index];
            let unhealthy = set.replicas().saturating_sub(set.available());
            let count = unhealthy.min(most - removed);
            if count > 0 {
                let size = set.replicas() - count;
                self.scale(*index, size);
                removed += count;
            }
        }
        removed > 0
    }

    /// Then available ones, down to the fewest that must remain.
    fn remove_surplus(&mut self, old: &[usize]) -> bool {
        let available = self.sets.iter().map(super::rollout::SetState::available);
        let available = available.fold(0, i32::saturating_add);
        let most = available.saturating_sub(self.wanted.min_available());
        let mut removed = 0;
        for index in old {
            let size = self.sets[*index].replicas();
            let count = size.min(most - removed);
            if count > 0 {
                self.scale(*index, size - count);
                removed += count;
            }
        }
        removed > 0
    }
}
