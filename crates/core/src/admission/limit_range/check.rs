//! Whether a pod or claim keeps within the LimitRanges of its namespace.

use crate::admission::draft::Place;
use crate::admission::forbidden::forbidden_message;
use crate::object::claim::ClaimView;
use crate::object::limit_range::{LimitItem, LimitRangeView, LimitType};
use crate::object::pod::{ContainerKind, PodView, Requirements};
use crate::problem::joined;
use crate::resources::{ResourceList, ResourceName};

use super::constraint::{Constraint, Subject, Violation};

/// A LimitRange that refuses an object, with every violation.
///
/// LimitRanges after it were not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Its place in the order the LimitRanges were given.
    pub index: usize,
    /// Its name.
    pub limit_range: String,
    /// What is broken; never empty. Upstream's order among the resources of one container is
    /// random, ours is by name.
    pub violations: Vec<Violation>,
}

impl Refusal {
    /// The distinct texts, sorted.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.violations.iter().map(ToString::to_string).collect();
        reasons.sort();
        reasons.dedup();
        reasons
    }

    /// The message of the 403 answer; `resource` is the plural name, `name` the object's.
    pub fn status_message(&self, resource: &str, name: &str) -> String {
        let reasons = self.violations.iter().map(ToString::to_string);
        forbidden_message(resource, name, &joined(reasons))
    }
}

/// Checks each LimitRange in turn; the first one with a violation refuses the pod.
pub fn check_pod(pod: &PodView, limit_ranges: &[LimitRangeView]) -> Result<(), Refusal> {
    first_refusal(limit_ranges, |item| match item.limit_type {
        LimitType::Container => container_violations(pod, item),
        LimitType::Pod => pod_violations(pod, item),
        LimitType::PersistentVolumeClaim | LimitType::Other(_) => Vec::new(),
    })
}

/// The same for a claim: only its request counts.
pub fn check_claim(claim: &ClaimView, limit_ranges: &[LimitRangeView]) -> Result<(), Refusal> {
    let subject = Subject {
        requests: &claim.requests,
        limits: &ResourceList::new(),
    };
    first_refusal(limit_ranges, |item| {
        if item.limit_type != LimitType::PersistentVolumeClaim {
            return Vec::new();
        }
        let constraints = [
            (Constraint::Min, &item.min),
            (Constraint::MaxRequest, &item.max),
        ];
        violations(item, &constraints, subject, None)
    })
}

fn first_refusal(
    limit_ranges: &[LimitRangeView],
    check: impl Fn(&LimitItem) -> Vec<Violation>,
) -> Result<(), Refusal> {
    for (index, limit_range) in limit_ranges.iter().enumerate() {
        let violations: Vec<Violation> = limit_range.items.iter().flat_map(&check).collect();
        if !violations.is_empty() {
            return Err(Refusal {
                index,
                limit_range: limit_range.name.clone(),
                violations,
            });
        }
    }
    Ok(())
}

fn container_violations(pod: &PodView, item: &LimitItem) -> Vec<Violation> {
    let containers = pod.containers.iter().chain(&pod.init_containers);
    let each = containers.flat_map(|container| {
        let place = Place {
            name: container.name.clone(),
            is_init: container.kind != ContainerKind::App,
        };
        let subject = Subject {
            requests: &container.resources.requests,
            limits: &container.resources.limits,
        };
        violations(item, &item_constraints(item), subject, Some(&place))
    });
    each.collect()
}

fn pod_violations(pod: &PodView, item: &LimitItem) -> Vec<Violation> {
    let requests = pod_sum(pod, |r| &r.requests);
    let limits = pod_sum(pod, |r| &r.limits);
    let subject = Subject {
        requests: &requests,
        limits: &limits,
    };
    violations(item, &item_constraints(item), subject, None)
}

/// The sum over containers, replaced by the pod-level values of cpu and memory.
///
/// Unlike the scheduler's sum this leaves out the overhead, and pod-level huge pages do not count.
fn pod_sum(pod: &PodView, part: fn(&Requirements) -> &ResourceList) -> ResourceList {
    let mut sum = pod.aggregate(part);
    for name in [ResourceName::CPU, ResourceName::MEMORY] {
        let pod_level = pod.resources.as_ref().and_then(|r| part(r).get(&name));
        if let Some(quantity) = pod_level {
            sum.insert(name, quantity.clone());
        }
    }
    sum
}

fn item_constraints(item: &LimitItem) -> [(Constraint, &ResourceList); 3] {
    [
        (Constraint::Min, &item.min),
        (Constraint::Max, &item.max),
        (
            Constraint::MaxLimitRequestRatio,
            &item.max_limit_request_ratio,
        ),
    ]
}

fn violations(
    item: &LimitItem,
    constraints: &[(Constraint, &ResourceList)],
    subject: Subject<'_>,
    place: Option<&Place>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (constraint, list) in constraints {
        for (resource, enforced) in *list {
            if let Some(breach) = constraint.check(resource, enforced, subject) {
                violations.push(Violation {
                    limit_type: item.limit_type.clone(),
                    place: place.cloned(),
                    resource: resource.clone(),
                    enforced: enforced.clone(),
                    breach,
                });
            }
        }
    }
    violations
}
