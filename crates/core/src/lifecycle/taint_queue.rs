//! Nodes that wait to be given up, at a rate.
//!
//! Matches v1.36 pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::object::identity::NodeName;
use crate::object::timestamp::Timestamp;

use super::token_bucket::TokenBucket;

/// The nodes of a zone that wait for their `NoExecute` taint.
///
/// A node that was added stays known until it is removed, and is not taken twice.
#[derive(Clone, Debug)]
pub struct TaintQueue {
    bucket: TokenBucket,
    known: BTreeSet<NodeName>,
    /// When a node may be taken, in the order of arrival for equal times.
    waiting: BTreeMap<(Timestamp, u64), NodeName>,
    arrivals: u64,
}

impl TaintQueue {
    /// An empty queue that gives out nodes at that rate.
    pub fn new(per_second: f32) -> TaintQueue {
        TaintQueue {
            bucket: TokenBucket::new(per_second),
            known: BTreeSet::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Adds a node; returns whether it was not known.
    pub fn add(&mut self, node: NodeName, now: Timestamp) -> bool {
        let is_new = self.known.insert(node.clone());
        if is_new {
            self.push(node, now);
        }
        is_new
    }

    /// Forgets a node; returns whether it was known.
    pub fn remove(&mut self, node: &NodeName) -> bool {
        self.waiting.retain(|_, waiting| waiting != node);
        self.known.remove(node)
    }

    /// Changes the rate.
    pub fn set_rate(&mut self, per_second: f32, now: Timestamp) {
        self.bucket.set_rate(per_second, now);
    }

    /// Takes the next node, if the rate allows it. As upstream does, a token is spent even if the
    /// next node may not be taken yet.
    pub fn take(&mut self, now: Timestamp) -> Option<NodeName> {
        let (&(time, _), _) = self.waiting.first_key_value()?;
        if !self.bucket.try_take(now) || time > now {
            return None;
        }
        self.waiting.pop_first().map(|(_, node)| node)
    }

    /// Puts a node back that could not be tainted, to be taken after `delay` at the earliest. A
    /// node that was removed in the meantime stays out.
    pub fn put_back(&mut self, node: NodeName, delay: Duration, now: Timestamp) {
        if self.known.contains(&node) {
            // Later than now in any case, so that one pass does not take it twice.
            let delay = delay.saturating_add(Duration::from_nanos(1));
            self.push(node, now.saturating_add(delay));
        }
    }

    fn push(&mut self, node: NodeName, time: Timestamp) {
        self.arrivals += 1;
        self.waiting.insert((time, self.arrivals), node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn nodes_leave_in_order_and_at_the_rate() {
        let mut queue = TaintQueue::new(0.1);
        for (name, now) in [("b", 0), ("a", 0), ("c", 1)] {
            assert!(queue.add(NodeName::from(name), at(now)));
        }
        assert!(!queue.add(NodeName::from("a"), at(2)));
        let mut taken = Vec::new();
        for now in 2..40 {
            if let Some(node) = queue.take(at(now)) {
                taken.push((now, node.to_string()));
            }
        }
        let expected = [(2, "b"), (12, "a"), (22, "c")];
        assert_eq!(taken, expected.map(|(now, name)| (now, name.to_owned())));
        assert!(
            !queue.add(NodeName::from("a"), at(50)),
            "once taken, still known"
        );
        assert!(queue.remove(&NodeName::from("a")));
        assert!(queue.add(NodeName::from("a"), at(50)));
    }

    #[test]
    fn returned_node_is_not_evicted() {
        let mut queue = TaintQueue::new(0.1);
        queue.add(NodeName::from("a"), at(0));
        assert!(queue.remove(&NodeName::from("a")));
        assert!(!queue.remove(&NodeName::from("a")));
        assert_eq!(queue.take(at(1)), None);
    }

    #[test]
    fn failed_node_is_retried_unless_removed() {
        let mut queue = TaintQueue::new(1000.0);
        let node = NodeName::from("a");
        queue.add(node.clone(), at(0));
        assert_eq!(queue.take(at(0)), Some(node.clone()));
        queue.put_back(node.clone(), Duration::from_secs(5), at(0));
        assert_eq!(queue.take(at(5)), None);
        assert_eq!(queue.take(at(6)), Some(node.clone()));
        queue.remove(&node);
        queue.put_back(node, Duration::ZERO, at(6));
        assert_eq!(queue.take(at(10)), None);
    }

    #[test]
    fn rate_of_zero_evicts_nothing() {
        let mut queue = TaintQueue::new(0.1);
        queue.add(NodeName::from("a"), at(0));
        queue.set_rate(0.0, at(0));
        assert_eq!(queue.take(at(1000)), None);
        queue.set_rate(0.1, at(1000));
        assert_eq!(queue.take(at(1009)), None);
        assert!(queue.take(at(1010)).is_some());
    }
}
