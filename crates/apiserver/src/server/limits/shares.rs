//! Fair scheduling of seats among users: a pure state machine.
//!
//! No user has more than a share of the seats, and a seat that becomes free goes to the user that
//! has the fewest, among equals to the one that has waited longest. A user that sends many requests
//! at once waits behind its own requests, not in front of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of seats, and how many requests may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// All seats.
    pub seats: usize,
    /// Maximum of seats per user.
    pub each: usize,
    /// Maximum of waiting requests.
    pub waiting: usize,
    /// Maximum of waiting requests per user.
    pub waiting_each: usize,
}

/// The outcome of a request for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dispatch {
    /// The request has a seat.
    Now,
    /// The request waits with this number.
    Queued(u64),
    /// The queue is full.
    Rejected,
}

#[derive(Debug)]
struct Flow<T> {
    taken: usize,
    /// By number, oldest first.
    waiting: BTreeMap<u64, T>,
}

/// The seats, with their holders and waiting requests. `T` notifies a waiting request.
#[derive(Debug)]
pub(super) struct Shares<T> {
    size: Size,
    taken: usize,
    waiting: usize,
    next_number: u64,
    /// Users that hold or wait for seats.
    flows: BTreeMap<Arc<str>, Flow<T>>,
    /// Users that may have another seat and wait for one: seats taken, oldest number, user.
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

    /// Requests a seat for a user. `ticket` is kept if the request has to wait.
    pub(super) fn ask(&mut self, user: &str, ticket: impl FnOnce() -> T) -> (Arc<str>, Dispatch) {
        let known = self
            .flows
            .get_key_value(user)
            .map(|(user, _)| Arc::clone(user));
        let user = known.unwrap_or_else(|| user.into());
        let flow = self.flows.get(&user);
        let (taken, waiting) = flow.map_or((0, 0), |flow| (flow.taken, flow.waiting.len()));
        // If seats are free, every user that waits already has its share.
        let dispatch = if self.taken < self.size.seats && taken < self.size.each {
            self.taken += 1;
            self.flow(&user).taken += 1;
            Dispatch::Now
        } else if self.waiting < self.size.waiting && waiting < self.size.waiting_each {
            let number = self.next_number;
            self.next_number += 1;
            self.waiting += 1;
            self.remove_ready(&user);
            self.flow(&user).waiting.insert(number, ticket());
            self.insert_ready(&user);
            Dispatch::Queued(number)
        } else {
            Dispatch::Rejected
        };
        (user, dispatch)
    }

    /// Releases a seat; returns the tickets of the requests that get one.
    pub(super) fn release(&mut self, user: &Arc<str>) -> Vec<T> {
        self.remove_ready(user);
        self.taken = self.taken.saturating_sub(1);
        if let Some(flow) = self.flows.get_mut(user) {
            flow.taken = flow.taken.saturating_sub(1);
        }
        self.insert_ready(user);
        self.dispatch()
    }

    /// Cancels a waiting request. Returns false if it got a seat meanwhile.
    pub(super) fn cancel(&mut self, user: &Arc<str>, number: u64) -> bool {
        self.remove_ready(user);
        let flow = self.flows.get_mut(user);
        let was_waiting = flow.is_some_and(|flow| flow.waiting.remove(&number).is_some());
        if was_waiting {
            self.waiting -= 1;
        }
        self.insert_ready(user);
        was_waiting
    }

    fn dispatch(&mut self) -> Vec<T> {
        let mut tickets = Vec::new();
        while self.taken < self.size.seats {
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
            self.insert_ready(&user);
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

    /// Call before a flow changes.
    fn remove_ready(&mut self, user: &Arc<str>) {
        if let Some(key) = self.ready_key(user) {
            self.ready.remove(&key);
        }
    }

    /// Call after a flow has changed.
    fn insert_ready(&mut self, user: &Arc<str>) {
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

    fn shares(seats: usize, each: usize) -> Shares<&'static str> {
        Shares::new(Size {
            seats,
            each,
            waiting: 8,
            waiting_each: 4,
        })
    }

    fn ask(shares: &mut Shares<&'static str>, user: &str, ticket: &'static str) -> Dispatch {
        shares.ask(user, || ticket).1
    }

    #[test]
    fn user_cannot_exceed_its_share() {
        let mut shares = shares(4, 2);
        assert_eq!(ask(&mut shares, "a", "a1"), Dispatch::Now);
        assert_eq!(ask(&mut shares, "a", "a2"), Dispatch::Now);
        assert_eq!(ask(&mut shares, "a", "a3"), Dispatch::Queued(0));
        assert_eq!(ask(&mut shares, "b", "b1"), Dispatch::Now);
        assert_eq!(shares.release(&"b".into()), [""; 0]);
        assert_eq!(shares.release(&"a".into()), ["a3"]);
        assert_eq!(shares.taken(), 2);
    }

    #[test]
    fn next_seat_is_given_to_the_user_with_the_fewest() {
        let mut shares = shares(2, 2);
        for ticket in ["a1", "a2", "a3", "a4"] {
            ask(&mut shares, "a", ticket);
        }
        assert_eq!(ask(&mut shares, "b", "b1"), Dispatch::Queued(2));
        assert_eq!(ask(&mut shares, "c", "c1"), Dispatch::Queued(3));
        assert_eq!(shares.release(&"a".into()), ["b1"]);
        // Both users have none, and this one has waited longer.
        assert_eq!(shares.release(&"a".into()), ["a3"]);
        assert_eq!(shares.release(&"b".into()), ["c1"]);
        assert_eq!(shares.release(&"c".into()), ["a4"]);
    }

    #[test]
    fn one_user_cannot_fill_the_queue() {
        let mut shares = shares(1, 1);
        ask(&mut shares, "a", "a0");
        for _ in 0..4 {
            assert!(matches!(ask(&mut shares, "a", "a"), Dispatch::Queued(_)));
        }
        assert_eq!(ask(&mut shares, "a", "a"), Dispatch::Rejected);
        assert!(matches!(ask(&mut shares, "b", "b"), Dispatch::Queued(_)));
        assert_eq!(shares.release(&"a".into()), ["a"]);
    }

    #[test]
    fn cancelled_request_leaves_no_state() {
        let mut shares = shares(1, 1);
        ask(&mut shares, "a", "a1");
        let Dispatch::Queued(number) = ask(&mut shares, "b", "b1") else {
            panic!("the only seat is taken");
        };
        assert!(shares.cancel(&"b".into(), number));
        assert!(!shares.cancel(&"b".into(), number));
        assert_eq!(shares.release(&"a".into()), [""; 0]);
        assert_eq!((shares.taken(), shares.waiting()), (0, 0));
        assert!(shares.flows.is_empty() && shares.ready.is_empty());
    }
}
