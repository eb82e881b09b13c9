//! Nodes that differ, for a class of pods, only in how good they are by themselves.
//!
//! Everything that a placement elsewhere can change about many nodes at once, such as the number of
//! pods in a zone, is the same for all nodes of a group. So it is computed once per group, and
//! within a group the best node is the one with the best score of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A number that stands for a group.
pub(super) type GroupId = u32;

/// No group: the node is rejected by itself, or gone.
pub(super) const NO_GROUP: GroupId = u32::MAX;

/// The common values of the nodes of a group; see `class`.
pub(super) type GroupKey = Box<[i64]>;

/// The groups of a class.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    by_key: BTreeMap<GroupKey, GroupId>,
    live: Vec<GroupId>,
}

/// Some nodes, the best first, those equally good by slot.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: GroupKey,
    nodes: BTreeSet<(Reverse<i64>, u32)>,
    /// Where it stands among the live groups.
    place: usize,
}

impl Groups {
    /// Groups that have nodes.
    pub(super) fn live(&self) -> impl Iterator<Item = &Group> {
        self.live.iter().map(|id| self.get(*id))
    }

    pub(super) fn get(&self, id: GroupId) -> &Group {
        &self.all[index(id)]
    }

    /// The group with the key, made if there is none.
    pub(super) fn intern(&mut self, key: &[i64]) -> GroupId {
        if let Some(id) = self.by_key.get(key) {
            return *id;
        }
        let id = u32::try_from(self.all.len()).expect("no more groups than there were changes");
        self.all.push(Group {
            key: key.into(),
            nodes: BTreeSet::new(),
            place: 0,
        });
        self.by_key.insert(key.into(), id);
        id
    }

    pub(super) fn insert(&mut self, id: GroupId, slot: u32, score: i64) {
        let group = &mut self.all[index(id)];
        if group.nodes.is_empty() {
            group.place = self.live.len();
            self.live.push(id);
        }
        group.nodes.insert((Reverse(score), slot));
    }

    pub(super) fn remove(&mut self, id: GroupId, slot: u32, score: i64) {
        let group = &mut self.all[index(id)];
        group.nodes.remove(&(Reverse(score), slot));
        if !group.nodes.is_empty() {
            return;
        }
        let place = group.place;
        self.live.swap_remove(place);
        if let Some(moved) = self.live.get(place) {
            self.all[index(*moved)].place = place;
        }
    }

    /// Whether most groups are empty, so that it pays to rebuild them.
    pub(super) fn needs_rebuild(&self) -> bool {
        self.all.len() > 1024 && self.all.len() > 8 * self.live.len()
    }
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The score of its best nodes.
    pub(super) fn best(&self) -> Option<i64> {
        self.nodes.first().map(|(Reverse(score), _)| *score)
    }

    /// Of its best nodes, the first at or after the offset, going round.
    pub(super) fn best_from(&self, offset: u32) -> Option<u32> {
        let best = Reverse(self.best()?);
        let after = self.nodes.range((best, offset)..=(best, u32::MAX)).next();
        after.or(self.nodes.first()).map(|(_, slot)| *slot)
    }

    /// Any of its nodes.
    pub(super) fn first(&self) -> Option<u32> {
        self.nodes.first().map(|(_, slot)| *slot)
    }
}

fn index(id: GroupId) -> usize {
    usize::try_from(id).expect("32 bits fit in an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_node_at_or_after_the_offset_is_found() {
        let mut groups = Groups::default();
        let id = groups.intern(&[1]);
        for (slot, score) in [(1, 5), (4, 7), (6, 7), (9, 3)] {
            groups.insert(id, slot, score);
        }
        let group = groups.get(id);
        for (offset, slot) in [(0, 4), (4, 4), (5, 6), (7, 4)] {
            assert_eq!(group.best_from(offset), Some(slot), "offset {offset}");
        }
    }

    #[test]
    fn empty_groups_are_not_live() {
        let mut groups = Groups::default();
        let (a, b) = (groups.intern(&[1]), groups.intern(&[2]));
        groups.insert(a, 0, 1);
        groups.insert(b, 1, 1);
        groups.remove(a, 0, 1);
        let live: Vec<&[i64]> = groups.live().map(|group| &*group.key).collect();
        assert_eq!(live, [&[2]]);
        groups.remove(b, 1, 1);
        groups.insert(a, 0, 1);
        assert_eq!(groups.live().count(), 1);
    }
}
