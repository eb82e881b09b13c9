//! `NodeResourcesBalancedAllocation`: resources are better used in the same proportion.
//!
//! f_i = min(1, used_i / allocatable_i), std = standard deviation of the f_i
//! balance = (1 - std) * 100, score = 50 + (50 + balance with the pod - balance without it) / 2

use crate::resources::ResourceName;
use crate::scheduling::cluster::NodeState;
use crate::scheduling::pod::SchedulingPod;

use super::node_resources_fit::Usage;
use super::{MAX_NODE_SCORE, count, truncate};

/// Whether there is nothing to score by: the pod requests none of the resources.
pub fn skips_score(pod: &SchedulingPod, resources: &[ResourceName]) -> bool {
    let mut resources = resources.iter();
    resources.all(|name| pod.requests.on_node.get(name) == 0)
}

/// Whether the pod makes the node more or less balanced; 75 if neither.
///
/// Matches v1.36 plugins/noderesources/balanced_allocation.go.
pub fn score(pod: &SchedulingPod, resources: &[ResourceName], node: &NodeState) -> i64 {
    const HALF: i64 = MAX_NODE_SCORE / 2;
    let usages: Vec<Usage> = resources
        .iter()
        .filter_map(|name| {
            let wanted = pod.requests.on_node.get(name);
            Usage::of(name, wanted, node, |name| node.requested().get(name))
        })
        .collect();
    let with_pod = balance(&usages, |usage| usage.with_pod);
    let without_pod = balance(&usages, |usage| usage.without_pod);
    let gain = with_pod.wrapping_sub(without_pod);
    HALF.wrapping_add(HALF.wrapping_add(gain) / 2)
}

fn balance(usages: &[Usage], used: fn(&Usage) -> i64) -> i64 {
    let fractions: Vec<f64> = usages
        .iter()
        .map(|usage| (used(usage) as f64 / usage.allocatable as f64).min(1.0))
        .collect();
    let deviation = match fractions.as_slice() {
        [] | [_] => 0.0,
        [a, b] => ((a - b) / 2.0).abs(),
        many => {
            let number = count(many.len()) as f64;
            let mean = many.iter().sum::<f64>() / number;
            let squares = many.iter().map(|f| (f - mean) * (f - mean));
            (squares.sum::<f64>() / number).sqrt()
        }
    };
    truncate((1.0 - deviation) * MAX_NODE_SCORE as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usages(pairs: &[(i64, i64)]) -> Vec<Usage> {
        let pairs = pairs.iter();
        pairs
            .map(|&(with_pod, allocatable)| Usage {
                allocatable,
                without_pod: 0,
                with_pod,
            })
            .collect()
    }

    #[test]
    fn equal_fractions_are_balanced_and_one_alone_too() {
        let with_pod = |pairs: &[(i64, i64)]| balance(&usages(pairs), |usage| usage.with_pod);
        assert_eq!(with_pod(&[(1, 4), (2, 8)]), 100);
        assert_eq!(with_pod(&[(1, 4)]), 100);
        assert_eq!(with_pod(&[(4, 4), (0, 8)]), 50);
        assert_eq!(with_pod(&[(9, 4), (0, 8)]), 50);
        assert_eq!(with_pod(&[(1, 1), (0, 1), (0, 1)]), 52);
    }
}
