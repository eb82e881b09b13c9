//! Sets of small numbers that are counted and walked through in blocks of 64.

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
            words: vec![0; blocks_in(bound)],
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

    /// The numbers of a block, as bits.
    pub(super) fn block(&self, block: usize) -> u64 {
        self.words[block]
    }
}

/// How many blocks the numbers below a bound make.
pub(super) fn blocks_in(bound: usize) -> usize {
    bound.div_ceil(WORD)
}

/// The block that a number is in.
pub(super) fn block_of(number: usize) -> usize {
    number / WORD
}

/// The numbers of a block whose bits are set, in order.
pub(super) fn numbers(block: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let is_left = bits != 0;
        let number = block * WORD + lowest(bits);
        bits &= bits.wrapping_sub(1);
        is_left.then_some(number)
    })
}

/// All blocks of the numbers below `bound`, from that of `first` on, going round to it again, with
/// the bits of the numbers that are meant: all once.
pub(super) fn blocks_from(first: usize, bound: usize) -> impl Iterator<Item = (usize, u64)> {
    let (middle, blocks) = (block_of(first), blocks_in(bound));
    let not_before = u64::MAX << (first % WORD);
    let later = (middle + 1..blocks).chain(0..middle);
    let whole = later.map(|block| (block, u64::MAX));
    std::iter::once((middle, not_before))
        .chain(whole)
        .chain(std::iter::once((middle, !not_before)))
}

/// The bits up to that of a number.
pub(super) fn up_to(number: usize) -> u64 {
    u64::MAX >> (WORD - 1 - number % WORD)
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
    fn wrapping_iteration_visits_every_number_once() {
        for first in [0, 5, 63, 64, 130, 199] {
            let blocks = blocks_from(first, 200);
            let walk: Vec<usize> = blocks
                .flat_map(|(block, bits)| numbers(block, bits))
                .collect();
            let walk: Vec<usize> = walk.into_iter().filter(|number| *number < 200).collect();
            let expected: Vec<usize> = (first..200).chain(0..first).collect();
            assert_eq!(walk, expected, "from {first}");
        }
    }

    #[test]
    fn bits_up_to_a_number_include_it() {
        for number in [0, 5, 63, 64, 127] {
            let block = block_of(number);
            assert_eq!(numbers(block, up_to(number)).last(), Some(number));
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
