//! Which of several equally good nodes is taken.
//!
//! Upstream leaves it to chance. Here it is decided by a seed and the number of the attempt, so
//! that the same events always lead to the same cluster, and any engine that follows the rule takes
//! the same node: the first one at or after an offset, in slot order, going round.

use super::cluster::NodeSlot;

/// Numbers the attempts to place pods, and draws an offset for each choice.
///
/// A choice among several feasible nodes draws once, below the number of slots. An attempt that
/// finds no feasible node draws twice, also below the number of slots: where to begin the search
/// for victims, and which of the best candidates to take. Nothing else draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    seed: u64,
    drawn: u64,
    /// Where the search for feasible nodes continues, if it does not evaluate all of them.
    pub next_start: usize,
}

/// The random choices of preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionOffsets {
    /// Where to begin the search for victims.
    pub start: u32,
    /// Which of the best candidates to take.
    pub choice: u32,
}

impl Attempts {
    /// The attempts of an engine with that seed.
    pub fn new(seed: u64) -> Attempts {
        Attempts {
            seed,
            drawn: 0,
            next_start: 0,
        }
    }

    /// The two offsets of an attempt that finds no feasible node.
    pub fn draw_for_preemption(&mut self, slot_count: u32) -> PreemptionOffsets {
        PreemptionOffsets {
            start: self.draw_offset(slot_count),
            choice: self.draw_offset(slot_count),
        }
    }

    /// The next offset below `bound`; zero if there is nothing to choose from.
    pub fn draw_offset(&mut self, bound: u32) -> u32 {
        let mixed = mix(self.seed, self.drawn);
        self.drawn = self.drawn.wrapping_add(1);
        let offset = mixed.checked_rem(u64::from(bound)).unwrap_or(0);
        u32::try_from(offset).unwrap_or(0)
    }
}

/// The n-th number of the sequence of a seed: SplitMix64.
pub fn mix(seed: u64, n: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = seed.wrapping_add(GOLDEN.wrapping_mul(n.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The slot with the smallest (slot - offset) modulo the number of slots.
pub fn choose(
    slots: impl Iterator<Item = NodeSlot>,
    offset: u32,
    slot_count: u32,
) -> Option<NodeSlot> {
    slots.min_by_key(|slot| distance(*slot, offset, slot_count))
}

/// How far the slot is behind the offset, going round. Both are below the number of slots.
pub fn distance(slot: NodeSlot, offset: u32, slot_count: u32) -> u32 {
    if slot.0 >= offset {
        slot.0 - offset
    } else {
        (slot.0 + slot_count).wrapping_sub(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slot_at_or_after_the_offset_is_taken() {
        let slots = [1, 4, 6].map(NodeSlot);
        for (offset, chosen) in [(0, 1), (1, 1), (2, 4), (5, 6), (7, 1)] {
            let got = choose(slots.into_iter(), offset, 8);
            assert_eq!(got, Some(NodeSlot(chosen)), "offset {offset}");
        }
        assert_eq!(choose(std::iter::empty(), 0, 8), None);
    }

    #[test]
    fn the_sequence_is_splitmix64() {
        assert_eq!(mix(0, 0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0, 1), 0x6E78_9E6A_A1B9_65F4);
        let mut attempts = Attempts::new(7);
        assert_eq!(attempts.draw_offset(0), 0);
        assert!(attempts.draw_offset(10) < 10);
    }
}
