//! `ImageLocality`: nodes that have the images already are better.
//!
//! sum   = over the pod's images on the node: size * (nodes that have it / all nodes)
//! score = 100 * (clamp(sum, lo, hi) - lo) / (hi - lo), lo = 23 MiB, hi = 1000 MiB per container

use crate::scheduling::cluster::{ImageStates, NodeState};
use crate::scheduling::pod::SchedulingPod;

use super::{MAX_NODE_SCORE, count, truncate};

const MEBIBYTE: i64 = 1024 * 1024;
const LOWEST: i64 = 23 * MEBIBYTE;
const HIGHEST_PER_CONTAINER: i64 = 1000 * MEBIBYTE;

/// How much of what the pod needs is on the node. Matches v1.36 plugins/imagelocality.
pub fn score(
    pod: &SchedulingPod,
    node: &NodeState,
    images: &ImageStates,
    node_count: usize,
) -> i64 {
    let names = pod.images.names.iter();
    let on_node = names.filter(|name| node.view.images.contains_key(*name));
    let sum = on_node
        .filter_map(|name| images.get(name))
        .map(|(size, nodes)| {
            let spread = f64::from(nodes) / count(node_count) as f64;
            truncate(size as f64 * spread)
        })
        .fold(0, i64::wrapping_add);
    scale(sum, pod.images.container_count)
}

fn scale(sum: i64, container_count: i64) -> i64 {
    let highest = HIGHEST_PER_CONTAINER.wrapping_mul(container_count);
    let sum = if sum < LOWEST {
        LOWEST
    } else {
        sum.min(highest)
    };
    let above = sum.wrapping_sub(LOWEST);
    let span = highest.wrapping_sub(LOWEST);
    MAX_NODE_SCORE.wrapping_mul(above).wrapping_div(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_runs_from_the_lowest_to_the_highest_sum() {
        assert_eq!(scale(0, 1), 0);
        assert_eq!(scale(LOWEST, 2), 0);
        assert_eq!(scale(i64::MAX, 2), 100);
        assert_eq!(scale(LOWEST + 977 * MEBIBYTE / 2, 1), 50);
    }
}
