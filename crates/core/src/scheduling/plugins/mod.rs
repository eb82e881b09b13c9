//! The plugins, one file each, named as upstream names them.
//!
//! A filter decides whether a pod may run on a node, a score how good the node is. Most look at the
//! pod and the node alone. `PodTopologySpread` and `InterPodAffinity` also need to know what is
//! elsewhere: that is counted once per pod into a state, which then answers for any node, and which
//! follows when pods are taken from a node or put back for trial. The counting is separate from the
//! answering, so that a state can be made by a scan of all nodes or from an index.
//!
//! Upstream's plugins for volumes, dynamic resources and declared node features are not here: what
//! they read is not modelled, and without it they neither reject nor score.

pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_name;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod pod_topology_spread;
pub mod taint_toleration;

/// The best score that a node can get.
pub const MAX_NODE_SCORE: i64 = 100;

/// Scales scores so that the highest becomes 100; all stay zero if none is above.
///
/// Matches v1.36 plugins/helper/normalize_score.go.
fn normalize_to_highest(scores: &mut [i64], is_reversed: bool) {
    let highest = scores.iter().copied().max().unwrap_or(0).max(0);
    for score in scores {
        let scaled = match highest {
            0 => 0,
            highest => MAX_NODE_SCORE.wrapping_mul(*score).wrapping_div(highest),
        };
        *score = if is_reversed {
            MAX_NODE_SCORE.wrapping_sub(scaled)
        } else if highest == 0 {
            *score
        } else {
            scaled
        };
    }
}

/// The integer part, as Go's conversion gives it for all values in range.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is to be dropped; values out of range saturate"
)]
fn truncate(value: f64) -> i64 {
    value as i64
}

/// A number of things as a signed integer.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_scaled_to_the_highest() {
        let mut scores = [1, 3, 0];
        normalize_to_highest(&mut scores, false);
        assert_eq!(scores, [33, 100, 0]);
        let mut scores = [1, 3, 0];
        normalize_to_highest(&mut scores, true);
        assert_eq!(scores, [67, 0, 100]);
        let mut scores = [0, 0];
        normalize_to_highest(&mut scores, false);
        assert_eq!(scores, [0, 0]);
        normalize_to_highest(&mut scores, true);
        assert_eq!(scores, [100, 100]);
    }
}
