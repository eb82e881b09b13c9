//! Rejections by number, with how many nodes each holds for.

use crate::scheduling::plugin_names::Rejection;

/// A number that stands for a rejection.
pub(super) type ReasonId = u16;

/// The ways in which a class is rejected: few, as they combine few texts.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    all: Vec<(Rejection, usize)>,
}

impl Reasons {
    pub(super) fn get(&self, id: ReasonId) -> &Rejection {
        &self.all[usize::from(id)].0
    }

    /// The number of a rejection.
    pub(super) fn intern(&mut self, rejection: Rejection) -> ReasonId {
        let known = self.all.iter().position(|(own, _)| *own == rejection);
        let number = known.unwrap_or_else(|| {
            self.all.push((rejection, 0));
            self.all.len() - 1
        });
        u16::try_from(number).expect("a pod can be rejected in few ways")
    }

    /// One more node is rejected so.
    pub(super) fn add(&mut self, id: ReasonId) {
        self.all[usize::from(id)].1 += 1;
    }

    /// One node less is rejected so.
    pub(super) fn remove(&mut self, id: ReasonId) {
        self.all[usize::from(id)].1 -= 1;
    }

    /// The rejections in force, with how many nodes each holds for.
    pub(super) fn in_force(&self) -> impl Iterator<Item = (&Rejection, usize)> {
        let all = self.all.iter();
        all.filter(|(_, nodes)| *nodes > 0)
            .map(|(rejection, nodes)| (rejection, *nodes))
    }
}
