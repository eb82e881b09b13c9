//! Who gets the next place: a pure state machine.
//!
//! Places are shared among users. Nobody has more than a share of them, and a place that becomes
//! free goes to the user who has the fewest, of equals to the one who has waited longest. A user
//! who sends many requests at once queues behind themselves, not in front of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many places there are, and how many requests may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// All places.
    pub places: usize,
    /// The most that one user has.
    pub each: usize,
    /// The most requests that wait.
    pub waiting: usize,
    /// The most of one user that wait.
    pub waiting_each: usize,
}

/// What becomes of a request that asks for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has one.
    Enters,
    /// It waits under this number.
    Waits(u64),
    /// Too many wait already.
    Refused,
}

#[derive(Debug)]
struct Flow<T> {
    taken: usize,
    /// By number, oldest first.
    waiting: BTreeMap<u64, T>,
}

/// The places, and who has and wants them. `T` is how a request that waits is told.
#[derive(Debug)]
pub(super) struct Shares<T> {
    size: Size,
    taken: usize,
    waiting: usize,
    next_number: u64,
    /// Users that have or want places.
    flows: BTreeMap<Arc<str>, Flow<T>>,
    /// Those who may have another and wait for it: places taken, oldest number, user.
    ready: BTreeSet<(usize, u64, Arc<str>)>,
}

impl<T> Shares<T> {
    pub(super) fn new(size: Size) -> Shares<T> {
        Shares {
            size,
            taken: 0,
            waiting: 0,
            next_number: 0,
            flows: BTreeMap::new(),
            ready: BTreeSet::new(),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// A request of a user asks for a place. `ticket` is kept if it has to wait.
    pub(super) fn ask(&mut self, user: &str, ticket: impl FnOnce() -> T) -> (Arc<str>, Asked) {
        let known = self
            .flows
            .get_key_value(user)
            .map(|(user, _)| Arc::clone(user));
        let user = known.unwrap_or_else(|| user.into());
        let flow = self.flows.get(&user);
        let (taken, waiting) = flow.map_or((0, 0), |flow| (flow.taken, flow.waiting.len()));
        // Where places are free, everybody who waits has their share.
        let asked = if self.taken < self.size.places && taken < self.size.each {
            self.taken += 1;
            self.flow(&user).taken += 1;
            Asked::Enters
        } else if self.waiting < self.size.waiting && waiting < self.size.waiting_each {
            let number = self.next_number;
            self.next_number += 1;
            self.waiting += 1;
            self.forget_ready(&user);
            self.flow(&user).waiting.insert(number, ticket());
            self.note_ready(&user);
            Asked::Waits(number)
        } else {
            Asked::Refused
        };
        (user, asked)
    }

    /// A request gives its place back; the tickets of those that got one.
    pub(super) fn leave(&mut self, user: &Arc<str>) -> Vec<T> {
        self.forget_ready(user);
        self.taken = self.taken.saturating_sub(1);
        if let Some(flow) = self.flows.get_mut(user) {
            flow.taken = flow.taken.saturating_sub(1);
        }
        self.note_ready(user);
        self.let_in()
    }

    /// A request does not wait any more. False if it got a place meanwhile.
    pub(super) fn give_up(&mut self, user: &Arc<str>, number: u64) -> bool {
        self.forget_ready(user);
        let flow = self.flows.get_mut(user);
        let was_waiting = flow.is_some_and(|flow| flow.waiting.remove(&number).is_some());
        if was_waiting {
            self.waiting -= 1;
        }
        self.note_ready(user);
        was_waiting
    }

    fn let_in(&mut self) -> Vec<T> {
        let mut tickets = Vec::new();
        while self.taken < self.size.places {
            let Some((_, _, user)) = self.ready.pop_first() else {
                break;
            };
            let Some(flow) = self.flows.get_mut(&user) else {
                continue;
            };
            if let Some((_, ticket)) = flow.waiting.pop_first() {
                flow.taken += 1;
                self.taken += 1;
                self.waiting -= 1;
                tickets.push(ticket);
            }
            self.note_ready(&user);
        }
        tickets
    }

    fn flow(&mut self, user: &Arc<str>) -> &mut Flow<T> {
        let flow = self.flows.entry(Arc::clone(user));
        flow.or_insert_with(|| Flow {
            taken: 0,
            waiting: BTreeMap::new(),
        })
    }

    fn ready_key(&self, user: &Arc<str>) -> Option<(usize, u64, Arc<str>)> {
        let flow = self.flows.get(user)?;
        let (number, _) = flow.waiting.first_key_value()?;
        (flow.taken < self.size.each).then(|| (flow.taken, *number, Arc::clone(user)))
    }

    /// To be called before a flow changes.
    fn forget_ready(&mut self, user: &Arc<str>) {
        if let Some(key) = self.ready_key(user) {
            self.ready.remove(&key);
        }
    }

    /// To be called after a flow has changed.
    fn note_ready(&mut self, user: &Arc<str>) {
        if let Some(key) = self.ready_key(user) {
            self.ready.insert(key);
        }
        let is_idle = |flow: &Flow<T>| flow.taken == 0 && flow.waiting.is_empty();
        if self.flows.get(user).is_some_and(is_idle) {
            self.flows.remove(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(places: usize, each: usize) -> Shares<&'static str> {
        Shares::new(Size {
            places,
            each,
            waiting: 8,
            waiting_each: 4,
        })
    }

    fn ask(shares: &mut Shares<&'static str>, user: &str, ticket: &'static str) -> Asked {
        shares.ask(user, || ticket).1
    }

    #[test]
    fn nobody_has_more_than_a_share() {
        let mut shares = shares(4, 2);
        assert_eq!(ask(&mut shares, "a", "a1"), Asked::Enters);
        assert_eq!(ask(&mut shares, "a", "a2"), Asked::Enters);
        assert_eq!(ask(&mut shares, "a", "a3"), Asked::Waits(0));
        assert_eq!(ask(&mut shares, "b", "b1"), Asked::Enters);
        assert_eq!(shares.leave(&"b".into()), [""; 0]);
        assert_eq!(shares.leave(&"a".into()), ["a3"]);
        assert_eq!(shares.taken(), 2);
    }

    #[test]
    fn the_next_place_goes_to_the_user_who_has_the_fewest() {
        let mut shares = shares(2, 2);
        for ticket in ["a1", "a2", "a3", "a4"] {
            ask(&mut shares, "a", ticket);
        }
        assert_eq!(ask(&mut shares, "b", "b1"), Asked::Waits(2));
        assert_eq!(ask(&mut shares, "c", "c1"), Asked::Waits(3));
        assert_eq!(shares.leave(&"a".into()), ["b1"]);
        // Both have none, and this one has waited longer.
        assert_eq!(shares.leave(&"a".into()), ["a3"]);
        assert_eq!(shares.leave(&"b".into()), ["c1"]);
        assert_eq!(shares.leave(&"c".into()), ["a4"]);
    }

    #[test]
    fn one_user_cannot_fill_the_queue() {
        let mut shares = shares(1, 1);
        ask(&mut shares, "a", "a0");
        for _ in 0..4 {
            assert!(matches!(ask(&mut shares, "a", "a"), Asked::Waits(_)));
        }
        assert_eq!(ask(&mut shares, "a", "a"), Asked::Refused);
        assert!(matches!(ask(&mut shares, "b", "b"), Asked::Waits(_)));
        assert_eq!(shares.leave(&"a".into()), ["a"]);
    }

    #[test]
    fn a_request_that_gives_up_leaves_nothing_behind() {
        let mut shares = shares(1, 1);
        ask(&mut shares, "a", "a1");
        let Asked::Waits(number) = ask(&mut shares, "b", "b1") else {
            panic!("the only place is taken");
        };
        assert!(shares.give_up(&"b".into(), number));
        assert!(!shares.give_up(&"b".into(), number));
        assert_eq!(shares.leave(&"a".into()), [""; 0]);
        assert_eq!((shares.taken(), shares.waiting()), (0, 0));
        assert!(shares.flows.is_empty() && shares.ready.is_empty());
    }
}
