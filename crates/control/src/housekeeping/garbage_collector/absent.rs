//! Owners that are known not to exist.

use std::collections::{HashSet, VecDeque};

use super::identity::Identity;

/// How many are remembered; the oldest is forgotten for the next.
const REMEMBERED: usize = 500;

/// Owners that the server said do not exist. Uids are never used again, so this stays true.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    known: HashSet<Identity>,
    order: VecDeque<Identity>,
}

impl AbsentOwners {
    pub(super) fn add(&mut self, owner: Identity) {
        if !self.known.insert(owner.clone()) {
            return;
        }
        self.order.push_back(owner);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, owner: &Identity) -> bool {
        self.known.contains(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_five_hundred_are_remembered() {
        let owner = |number: usize| Identity {
            kind: String::new(),
            api_version: String::new(),
            namespace: String::new(),
            name: String::new(),
            uid: number.to_string(),
        };
        let mut absent = AbsentOwners::default();
        for number in 0..600 {
            absent.add(owner(number));
            absent.add(owner(number));
        }
        assert!(!absent.contains(&owner(99)));
        assert!(absent.contains(&owner(100)) && absent.contains(&owner(599)));
    }
}
