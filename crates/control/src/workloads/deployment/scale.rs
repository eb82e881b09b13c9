//! A deployment that is resized, perhaps in the middle of a roll-out.

use super::annotations::{self, DESIRED_REPLICAS, MAX_REPLICAS};
use super::desired_state::Strategy;
use super::rollout::{Plan, Progress, Rollout, SetState, age};

impl Rollout<'_> {
    /// Whether the size was changed since the sets were last scaled.
    pub(super) fn is_resized(&self) -> bool {
        self.active(0..self.sets.len()).into_iter().any(|index| {
            let metadata = &self.sets[index].desired.metadata;
            let desired = annotations::remembered_size(metadata, DESIRED_REPLICAS);
            desired.is_some_and(|desired| desired != self.wanted.replicas)
        })
    }

    /// Resizes without rolling anything out.
    pub(super) fn rescale(mut self) -> Plan {
        self.find_newest();
        self.resize();
        if self.wanted.is_paused && self.requested_rollback().is_none() {
            self.clean_up();
        }
        self.finish(Progress::Left)
    }

    fn resize(&mut self) {
        let all = 0..self.sets.len();
        match self.active(all).as_slice() {
            [] => {
                // The youngest set stands for the deployment while none has pods.
                if let Some(index) = self.newest.or_else(|| self.old().pop()) {
                    self.scale_or_remember(index, self.wanted.replicas);
                }
            }
            // Upstream does not remember the size of a set that happens to have it already, takes
            // every later pass for a resize, and never ends the roll-out.
            [only] => self.scale_or_remember(*only, self.wanted.replicas),
            several => {
                let several = several.to_vec();
                if self.is_saturated() {
                    for index in self.active(self.old()) {
                        self.scale(index, 0);
                    }
                } else if self.wanted.strategy == Strategy::RollingUpdate {
                    self.resize_in_proportion(several);
                }
            }
        }
    }

    /// Whether the newest set has all the pods and all are available.
    fn is_saturated(&self) -> bool {
        let Some(index) = self.newest else {
            return false;
        };
        let set = &self.sets[index];
        let desired = annotations::get(&set.desired.metadata, DESIRED_REPLICAS);
        let desired: Option<i32> = desired.and_then(|text| text.parse().ok());
        set.replicas() == self.wanted.replicas
            && desired == Some(self.wanted.replicas)
            && set.available() == self.wanted.replicas
    }

    /// Spreads what is to be added or removed over the sets by their sizes, so that a roll-out in
    /// the middle stays in the middle. The largest set takes what rounding leaves over; of sets of
    /// one size, younger ones grow first and older ones shrink first.
    fn resize_in_proportion(&mut self, mut sets: Vec<usize>) {
        let total: i32 = sets
            .iter()
            .map(|index| self.sets[*index].replicas())
            .fold(0, i32::saturating_add);
        let allowed = match self.wanted.replicas > 0 {
            true => self.wanted.max_total(),
            false => 0,
        };
        let to_add = allowed.saturating_sub(total);
        sets.sort_by(|a, b| {
            let (a, b) = (&self.sets[*a], &self.sets[*b]);
            let by_age = age(&a.found).cmp(&age(&b.found));
            let by_age = if to_add > 0 { by_age.reverse() } else { by_age };
            b.replicas().cmp(&a.replicas()).then(by_age)
        });
        let mut added = 0;
        let mut sizes: Vec<i32> = Vec::with_capacity(sets.len());
        for index in &sets {
            let set = &self.sets[*index];
            let proportion = self.proportion(set, to_add, added);
            sizes.push(set.replicas().saturating_add(proportion));
            added += proportion;
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = largest.saturating_add(to_add - added).max(0);
        }
        for (index, size) in sets.into_iter().zip(sizes) {
            self.scale_or_remember(index, size);
        }
    }

    /// The sizes are remembered even where they do not change: every later pass would otherwise be
    /// taken for a resize.
    fn scale_or_remember(&mut self, index: usize, size: i32) {
        if !self.scale(index, size) {
            annotations::remember_sizes(&mut self.sets[index].desired.metadata, &self.wanted);
        }
    }

    /// A set's part of what is to be added, or removed if negative; never more than is left.
    fn proportion(&self, set: &SetState, to_add: i32, added: i32) -> i32 {
        let left = to_add - added;
        if set.replicas() == 0 || left == 0 {
            return 0;
        }
        let fraction = self.fraction(set);
        match to_add > 0 {
            true => fraction.min(left),
            false => fraction.max(left),
        }
    }

    /// `replicas * max_total / max_total_before - replicas`, rounded half up.
    fn fraction(&self, set: &SetState) -> i32 {
        let size = set.replicas();
        if self.wanted.replicas == 0 {
            return -size;
        }
        let remembered = annotations::remembered_size(&set.desired.metadata, MAX_REPLICAS);
        let reported = || {
            self.view
                .deployment
                .status
                .as_ref()
                .and_then(|status| status.replicas)
        };
        let before = remembered
            .filter(|before| *before != 0)
            .or_else(reported)
            .unwrap_or(0);
        if before <= 0 {
            return 0;
        }
        let (size, before) = (i64::from(size), i64::from(before));
        let scaled = (2 * size * i64::from(self.wanted.max_total()) + before) / (2 * before);
        i32::try_from(scaled - size).unwrap_or(i32::MAX)
    }
}
