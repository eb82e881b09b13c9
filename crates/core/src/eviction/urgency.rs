//! Which of several shortages a pass is about.

use std::cmp::Reverse;

use crate::quantity::Quantity;
use crate::threshold::{Signal, StarvedResource};

use super::decision::{Starvation, Trigger};
use super::engine::Engine;
use super::message::Shortage;
use super::observation::Readings;

impl Engine {
    /// Upstream defines only that memory comes first. Beyond that: hard before soft, so that a
    /// long grace is never given while a hard line is crossed; then the order of the signals;
    /// then the larger deficit.
    pub(super) fn most_urgent(&self, fresh: &[Trigger], readings: &Readings) -> Option<Starvation> {
        let trigger = fresh.iter().copied().min_by_key(|trigger| {
            let signal = trigger.signal();
            let is_other = signal.resource() != StarvedResource::Memory;
            // A stall comes behind the thresholds, which say more about the shortage.
            let is_stall = matches!(trigger, Trigger::MemoryStall);
            let deficit = Reverse(self.deficit(*trigger, readings));
            let is_soft = self.is_soft(*trigger);
            (is_other, is_soft, is_stall, urgency(signal), deficit)
        })?;
        let resource = trigger.signal().resource();
        let mut same_resource = fresh.iter().filter(|t| t.signal().resource() == resource);
        let is_soft = if self.settings.profile.is_okd() {
            // In 1.9 one hard threshold makes the eviction hard, whichever was first.
            same_resource.all(|trigger| self.is_soft(*trigger))
        } else {
            self.is_soft(trigger)
        };
        Some(Starvation {
            trigger,
            resource,
            is_soft,
        })
    }

    fn is_soft(&self, trigger: Trigger) -> bool {
        match trigger {
            Trigger::Threshold(id, _) => !self.threshold(id).is_hard(),
            Trigger::MemoryStall => false,
        }
    }

    fn deficit(&self, trigger: Trigger, readings: &Readings) -> Quantity {
        let Some(Shortage {
            mut threshold,
            available,
        }) = self.shortage(trigger, readings)
        else {
            return Quantity::ZERO;
        };
        threshold.sub(&available);
        threshold
    }

    pub(super) fn shortage(&self, trigger: Trigger, readings: &Readings) -> Option<Shortage> {
        let Trigger::Threshold(id, signal) = trigger else {
            return None;
        };
        let reading = readings.get(signal)?;
        let capacity = reading.capacity_quantity(signal);
        Some(Shortage {
            threshold: self.threshold(id).value.at_capacity(&capacity),
            available: reading.available_quantity(signal),
        })
    }
}

/// Bytes before inodes, the nodefs first, process ids last.
fn urgency(signal: Signal) -> u8 {
    match signal {
        Signal::MemoryAvailable => 0,
        Signal::AllocatableMemoryAvailable => 1,
        Signal::NodeFsAvailable => 2,
        Signal::ImageFsAvailable => 3,
        Signal::ContainerFsAvailable => 4,
        Signal::NodeFsInodesFree => 5,
        Signal::ImageFsInodesFree => 6,
        Signal::ContainerFsInodesFree => 7,
        Signal::PidAvailable => 8,
    }
}
