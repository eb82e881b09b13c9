//! Sets of small numbers that are counted and walked through by words.

/// A set of numbers below a bound.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

const WORD: usize = 64;

impl Bits {
    /// The empty set of numbers below the bound.
    pub(super) fn new(bound: usize) -> Bits {
        Bits {
            words: vec![0; bound.div_ceil(WORD)],
            len: 0,
        }
    }

    /// How many numbers are in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.words[number / WORD] & bit(number) != 0
    }

    pub(super) fn insert(&mut self, number: usize) {
        self.len += usize::from(!self.contains(number));
        self.words[number / WORD] |= bit(number);
    }

    /// Takes a number out; false if it was not in.
    pub(super) fn remove(&mut self, number: usize) -> bool {
        let was_in = self.contains(number);
        self.len -= usize::from(was_in);
        self.words[number / WORD] &= !bit(number);
        was_in
    }

    /// The number before which there are `rank` others.
    pub(super) fn nth(&self, mut rank: usize) -> Option<usize> {
        for (place, word) in self.words.iter().enumerate() {
            let ones = usize::try_from(word.count_ones()).unwrap_or(WORD);
            if rank < ones {
                let mut word = *word;
                for _ in 0..rank {
                    word &= word - 1;
                }
                return Some(place * WORD + lowest(word));
            }
            rank -= ones;
        }
        None
    }

    /// The first number at or after `from` that is in this set and not in the other.
    pub(super) fn next_without(&self, other: &Bits, from: usize) -> Option<usize> {
        let mut left = u64::MAX << (from % WORD);
        let words = self.words.iter().zip(&other.words).enumerate();
        for (place, (own, other)) in words.skip(from / WORD) {
            let word = own & !other & left;
            if word != 0 {
                return Some(place * WORD + lowest(word));
            }
            left = u64::MAX;
        }
        None
    }
}

fn bit(number: usize) -> u64 {
    1 << (number % WORD)
}

fn lowest(word: u64) -> usize {
    usize::try_from(word.trailing_zeros()).unwrap_or(WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(bound: usize, numbers: &[usize]) -> Bits {
        let mut bits = Bits::new(bound);
        for number in numbers {
            bits.insert(*number);
        }
        bits
    }

    #[test]
    fn numbers_are_found_by_rank() {
        let numbers = [0, 3, 63, 64, 130, 199];
        let bits = set(200, &numbers);
        assert_eq!(bits.len(), 6);
        let found: Vec<usize> = (0..6).filter_map(|rank| bits.nth(rank)).collect();
        assert_eq!(found, numbers);
        assert_eq!(bits.nth(6), None);
    }

    #[test]
    fn the_next_number_skips_those_of_the_other_set() {
        let (bits, other) = (set(200, &[3, 64, 130]), set(200, &[64, 131]));
        for (from, next) in [(0, Some(3)), (3, Some(3)), (4, Some(130)), (131, None)] {
            assert_eq!(bits.next_without(&other, from), next, "from {from}");
        }
    }

    #[test]
    fn removing_twice_counts_once() {
        let mut bits = set(10, &[9, 9]);
        assert!(bits.remove(9));
        assert!(!bits.remove(9));
        assert_eq!(bits.len(), 0);
    }
}
