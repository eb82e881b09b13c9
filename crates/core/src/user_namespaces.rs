//! Which ids of the node the users of a pod's user namespace have.
//!
//! Each pod with `hostUsers: false` has a range of its own, so that root in it has no power over the
//! node's files or those of another pod. Matches v1.36 pkg/kubelet/userns/userns_manager.go; unlike
//! there, the ids of a user `kubelet` in `/etc/subuid` are not used: every range above the first
//! is free to be given.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::identity::PodUid;

/// `userNamespaces.idsPerPod` where nothing is set, and what it must be a multiple of.
pub const DEFAULT_IDS_PER_POD: u32 = 65_536;

/// Ids of the node, one after the other, that a pod's users and groups have: root has the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdRange {
    /// The id of root.
    pub first: u32,
    /// How many there are.
    pub length: u32,
}

/// Why a pod cannot have a range, or not the one that was noted for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdRangeError {
    /// All ranges are given.
    #[error("could not find an empty slot to allocate a user namespace")]
    NoneLeft,
    /// Noted under another `userNamespaces.idsPerPod`.
    #[error("wrong user namespace length {0}")]
    Length(u32),
    /// Not where a range begins.
    #[error("wrong user namespace offset specified {0}")]
    Offset(u32),
    /// The first range is the node's own.
    #[error("id {0} is out of range")]
    OfNode(u32),
    /// The pod has another one.
    #[error("different user namespace range already used by pod {0:?}")]
    Different(String),
    /// Another pod has it.
    #[error("range picked for pod {0:?} already taken")]
    Taken(String),
}

/// The ranges of all pods of a node.
#[derive(Clone, Debug)]
pub struct IdRanges {
    length: u32,
    by_pod: BTreeMap<PodUid, u32>,
    /// Numbers of ranges, counted from the node's own, which is 0.
    taken: BTreeSet<u32>,
}

impl IdRanges {
    /// Ranges of that many ids. Fewer than a pod needs count as the default.
    pub fn new(ids_per_pod: u32) -> IdRanges {
        IdRanges {
            length: ids_per_pod.max(DEFAULT_IDS_PER_POD),
            by_pod: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// Gives a pod the lowest free range, or the one that it has.
    pub fn allocate(&mut self, pod: &PodUid) -> Result<IdRange, IdRangeError> {
        if let Some(number) = self.by_pod.get(pod) {
            return Ok(self.range(*number));
        }
        let free =
            (1..=self.last()).zip(self.taken.iter().map(Some).chain(std::iter::repeat(None)));
        let mut free = free.filter(|(number, taken)| *taken != Some(number));
        let (number, _) = free.next().ok_or(IdRangeError::NoneLeft)?;
        self.taken.insert(number);
        self.by_pod.insert(pod.clone(), number);
        Ok(self.range(number))
    }

    /// Takes up a range that was given before the agent was restarted.
    pub fn record(&mut self, pod: &PodUid, range: IdRange) -> Result<(), IdRangeError> {
        let IdRange { first, length } = range;
        if length != self.length {
            return Err(IdRangeError::Length(length));
        }
        if first % length != 0 {
            return Err(IdRangeError::Offset(first));
        }
        let number = first / length;
        if number == 0 || number > self.last() {
            return Err(IdRangeError::OfNode(first));
        }
        let name = || pod.as_str().to_owned();
        match self.by_pod.get(pod) {
            Some(own) if *own == number => return Ok(()),
            Some(_) => return Err(IdRangeError::Different(name())),
            None => {}
        }
        if !self.taken.insert(number) {
            return Err(IdRangeError::Taken(name()));
        }
        self.by_pod.insert(pod.clone(), number);
        Ok(())
    }

    /// Takes a pod's range back; the next pod may have it.
    pub fn release(&mut self, pod: &PodUid) {
        if let Some(number) = self.by_pod.remove(pod) {
            self.taken.remove(&number);
        }
    }

    fn range(&self, number: u32) -> IdRange {
        IdRange {
            first: number * self.length,
            length: self.length,
        }
    }

    /// The last range that ends below 2³².
    fn last(&self) -> u32 {
        let all = (1_u64 << 32) / u64::from(self.length);
        u32::try_from(all - 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(name: &str) -> PodUid {
        PodUid::from(name)
    }

    fn range(first: u32) -> IdRange {
        IdRange {
            first,
            length: 65_536,
        }
    }

    #[test]
    fn each_pod_has_a_range_of_its_own_above_the_nodes() {
        let mut ranges = IdRanges::new(DEFAULT_IDS_PER_POD);
        assert_eq!(ranges.allocate(&uid("a")), Ok(range(65_536)));
        assert_eq!(ranges.allocate(&uid("b")), Ok(range(131_072)));
        assert_eq!(ranges.allocate(&uid("c")), Ok(range(196_608)));
        assert_eq!(ranges.allocate(&uid("a")), Ok(range(65_536)));
        ranges.release(&uid("b"));
        ranges.release(&uid("b"));
        assert_eq!(ranges.allocate(&uid("d")), Ok(range(131_072)));
        assert_eq!(ranges.allocate(&uid("e")), Ok(range(262_144)));
    }

    #[test]
    fn a_recorded_range_is_not_given_again() {
        let mut ranges = IdRanges::new(DEFAULT_IDS_PER_POD);
        assert_eq!(ranges.record(&uid("a"), range(65_536)), Ok(()));
        assert_eq!(ranges.record(&uid("a"), range(65_536)), Ok(()));
        assert_eq!(ranges.allocate(&uid("b")), Ok(range(131_072)));
        assert_eq!(ranges.allocate(&uid("a")), Ok(range(65_536)));
    }

    #[test]
    fn a_range_that_no_pod_may_have_is_refused() {
        let mut ranges = IdRanges::new(DEFAULT_IDS_PER_POD);
        ranges.allocate(&uid("a")).unwrap();
        for (pod, first, length, problem) in [
            ("b", 131_072, 131_072, "wrong user namespace length 131072"),
            (
                "b",
                100_000,
                65_536,
                "wrong user namespace offset specified 100000",
            ),
            ("b", 0, 65_536, "id 0 is out of range"),
            (
                "b",
                65_536,
                65_536,
                "range picked for pod \"b\" already taken",
            ),
            (
                "a",
                131_072,
                65_536,
                "different user namespace range already used by pod \"a\"",
            ),
        ] {
            let refused = ranges.record(&uid(pod), IdRange { first, length });
            assert_eq!(refused.unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn ranges_end_where_ids_do() {
        let mut ranges = IdRanges::new(1 << 31);
        let upper = IdRange {
            first: 1 << 31,
            length: 1 << 31,
        };
        assert_eq!(ranges.allocate(&uid("a")), Ok(upper));
        assert_eq!(ranges.allocate(&uid("b")), Err(IdRangeError::NoneLeft));
        let mut none = IdRanges::new(u32::MAX - 65_535);
        assert_eq!(none.allocate(&uid("a")), Err(IdRangeError::NoneLeft));
    }
}
