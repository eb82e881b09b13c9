//! `NodeResourcesFit`: is there enough left, and how much.

use std::borrow::Cow;

use crate::object::resource_rules::is_extended;
use crate::resources::ResourceName;
use crate::scheduling::cluster::NodeState;
use crate::scheduling::plugin_names::{Code, FilterPlugin, Rejection};
use crate::scheduling::pod::{SchedulingPod, is_scalar_resource_name};
use crate::scheduling::profile::{FitArgs, ScoringStrategy, ShapePoint};

use super::{MAX_NODE_SCORE, count, truncate};

/// Why the pod may not run on the node, by resources that the profile does not ignore.
pub fn filter(pod: &SchedulingPod, args: &FitArgs, node: &NodeState) -> Option<Rejection> {
    rejection(pod, node, |name| is_ignored(name, args))
}

/// Why the pod may not run on the node: all reasons, not just the first.
///
/// More than the node has at all cannot be helped by removing pods. Matches v1.36
/// plugins/noderesources/fit.go, `fitsRequest`.
pub fn rejection(
    pod: &SchedulingPod,
    node: &NodeState,
    is_ignored: impl Fn(&ResourceName) -> bool,
) -> Option<Rejection> {
    let mut reasons = Vec::new();
    let mut code = Code::Unschedulable;
    if count(node.pods().len()) >= node.allowed_pods {
        reasons.push(Cow::Borrowed("Too many pods"));
    }
    let mut check = |wanted: i64, allocatable: i64, used: i64, reason: Cow<'static, str>| {
        if wanted > allocatable.wrapping_sub(used) {
            reasons.push(reason);
            if wanted > allocatable {
                code = Code::UnschedulableAndUnresolvable;
            }
        }
    };
    let (request, allocatable, used) =
        (&pod.requests.incoming, &node.allocatable, node.requested());
    for (wanted, allocatable, used, reason) in [
        (
            request.milli_cpu,
            allocatable.milli_cpu,
            used.milli_cpu,
            "Insufficient cpu",
        ),
        (
            request.memory,
            allocatable.memory,
            used.memory,
            "Insufficient memory",
        ),
        (
            request.ephemeral_storage,
            allocatable.ephemeral_storage,
            used.ephemeral_storage,
            "Insufficient ephemeral-storage",
        ),
    ] {
        if wanted > 0 {
            check(wanted, allocatable, used, Cow::Borrowed(reason));
        }
    }
    for (name, wanted) in &request.scalars {
        if *wanted != 0 && !is_ignored(name) {
            let reason = Cow::Owned(format!("Insufficient {name}"));
            check(*wanted, allocatable.get(name), used.get(name), reason);
        }
    }
    (!reasons.is_empty()).then_some(Rejection {
        plugin: Some(FilterPlugin::NodeResourcesFit),
        code,
        reasons,
    })
}

fn is_ignored(name: &ResourceName, args: &FitArgs) -> bool {
    let group = || name.as_str().split('/').next().unwrap_or_default();
    is_extended(name)
        && (args.ignored_resources.contains(name.as_str())
            || args.ignored_resource_groups.contains(group()))
}

/// How much is used of a resource, with and without the pod, and how much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) allocatable: i64,
    pub(super) without_pod: i64,
    pub(super) with_pod: i64,
}

impl Usage {
    /// `None` for what is not scored: devices that the pod does not request, and anything of which
    /// the node has none.
    pub(super) fn of(
        name: &ResourceName,
        wanted: i64,
        node: &NodeState,
        used: impl Fn(&ResourceName) -> i64,
    ) -> Option<Usage> {
        if wanted == 0 && is_scalar_resource_name(name) {
            return None;
        }
        let allocatable = node.allocatable.get(name);
        let without_pod = used(name);
        (allocatable != 0).then(|| Usage {
            allocatable,
            without_pod,
            with_pod: without_pod.wrapping_add(wanted),
        })
    }
}

/// How good the node is by the profile's strategy. Matches v1.36 plugins/noderesources.
pub fn score(pod: &SchedulingPod, args: &FitArgs, node: &NodeState) -> i64 {
    let used = |name: &ResourceName| {
        if *name == ResourceName::CPU {
            node.non_zero_milli_cpu()
        } else if *name == ResourceName::MEMORY {
            node.non_zero_memory()
        } else {
            node.requested().get(name)
        }
    };
    let mut sum = 0i64;
    let mut weights = 0i64;
    for (name, weight) in &args.resources {
        let wanted = pod.requests.scoring.get(name);
        let Some(usage) = Usage::of(name, wanted, node, used) else {
            continue;
        };
        let score = match &args.strategy {
            ScoringStrategy::LeastAllocated => least_allocated(usage),
            ScoringStrategy::MostAllocated => most_allocated(usage),
            ScoringStrategy::RequestedToCapacityRatio(shape) => {
                match on_line(shape, utilization(usage)) {
                    // What scores nothing does not water down the rest either.
                    score if score <= 0 => continue,
                    score => score,
                }
            }
        };
        sum = sum.wrapping_add(score.wrapping_mul(*weight));
        weights = weights.wrapping_add(*weight);
    }
    match (&args.strategy, weights) {
        (_, 0) => 0,
        (ScoringStrategy::RequestedToCapacityRatio(_), _) => {
            truncate((sum as f64 / weights as f64).round())
        }
        _ => sum.wrapping_div(weights),
    }
}

fn least_allocated(usage: Usage) -> i64 {
    if usage.with_pod > usage.allocatable {
        return 0;
    }
    let left = usage.allocatable.wrapping_sub(usage.with_pod);
    let scaled = left.wrapping_mul(MAX_NODE_SCORE);
    scaled.wrapping_div(usage.allocatable)
}

fn most_allocated(usage: Usage) -> i64 {
    let used = usage.with_pod.min(usage.allocatable);
    let scaled = used.wrapping_mul(MAX_NODE_SCORE);
    scaled.wrapping_div(usage.allocatable)
}

/// Percent of the resource in use.
fn utilization(usage: Usage) -> i64 {
    if usage.with_pod > usage.allocatable {
        return 100;
    }
    usage
        .with_pod
        .wrapping_mul(100)
        .wrapping_div(usage.allocatable)
}

/// The value at `x` of the line through the points; level before the first and after the last.
fn on_line(shape: &[ShapePoint], x: i64) -> i64 {
    let Some(next) = shape.iter().position(|point| x <= point.utilization) else {
        return shape.last().map_or(0, |point| point.score);
    };
    let Some(before) = next.checked_sub(1) else {
        return shape[next].score;
    };
    let (from, to) = (shape[before], shape[next]);
    let rise = to.score.wrapping_sub(from.score);
    let part = rise.wrapping_mul(x.wrapping_sub(from.utilization));
    let run = to.utilization.wrapping_sub(from.utilization);
    from.score.wrapping_add(part.checked_div(run).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_shape_rounds_toward_zero() {
        let shape =
            [(0, 100), (30, 0)].map(|(utilization, score)| ShapePoint { utilization, score });
        assert_eq!(on_line(&shape, 0), 100);
        assert_eq!(on_line(&shape, 10), 67);
        assert_eq!(on_line(&shape, 99), 0);
    }

    #[test]
    fn the_two_simple_strategies_mirror_each_other() {
        let usage = Usage {
            allocatable: 3000,
            without_pod: 0,
            with_pod: 1000,
        };
        assert_eq!(least_allocated(usage), 66);
        assert_eq!(most_allocated(usage), 33);
        let over = Usage {
            with_pod: 4000,
            ..usage
        };
        assert_eq!((least_allocated(over), most_allocated(over)), (0, 100));
    }
}
