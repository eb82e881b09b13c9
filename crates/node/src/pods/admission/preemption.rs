//! Which pods go so that a critical one fits.
//!
//! Pure: from what is lacking and the pods that run to those that are ended. As few of the better
//! classes as possible, then as few pods as possible, then the smaller ones. Matches v1.36
//! pkg/kubelet/preemption/preemption.go.

use plimsoll_core::object::pod::{PodView, QosClass};
use plimsoll_core::resources::ResourceName;
use plimsoll_core::scheduling::pod::SchedulingPod;

/// A running pod and its requests.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) view: PodView,
    pub(super) pod: SchedulingPod,
}

impl Running {
    /// How much of a resource goes with it, in the units of [`Shortage`].
    fn request(&self, resource: &ResourceName) -> i64 {
        match resource.as_str() {
            "pods" => 1,
            _ => self.pod.requests.incoming.get(resource),
        }
    }

    /// Whether it requests less, or as much, memory or else cpu.
    fn is_smaller_than(&self, other: &Running) -> bool {
        let size = |of: &Running| {
            let of = &of.pod.requests.incoming;
            (of.memory, of.milli_cpu)
        };
        size(self) <= size(other)
    }
}

/// What a pod lacks: milli-cores of cpu, whole units of anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    pub(super) resource: ResourceName,
    pub(super) requested: i64,
    pub(super) used: i64,
    pub(super) capacity: i64,
}

impl Shortage {
    fn missing(&self) -> Need {
        let free = self.capacity.saturating_sub(self.used);
        Need {
            resource: self.resource.clone(),
            amount: self.requested.saturating_sub(free),
        }
    }
}

/// What is still to be freed.
#[derive(Clone, Debug, PartialEq)]
struct Need {
    resource: ResourceName,
    amount: i64,
}

/// Whether a pod may drive another away.
fn may_preempt(critical: &PodView, other: &PodView) -> bool {
    if critical.is_critical() && !other.is_critical() {
        return true;
    }
    matches!((critical.priority, other.priority), (Some(own), Some(theirs)) if own > theirs)
}

/// The pods that go, as indexes into `running`; or why it cannot be helped.
pub(super) fn victims(
    critical: &PodView,
    running: &[Running],
    shortages: &[Shortage],
) -> Result<Vec<usize>, String> {
    let of_class = |class: QosClass| -> Vec<usize> {
        let all = running.iter().enumerate();
        all.filter(|(_, one)| may_preempt(critical, &one.view) && one.view.qos_class() == class)
            .map(|(index, _)| index)
            .collect()
    };
    let best_effort = of_class(QosClass::BestEffort);
    let burstable = of_class(QosClass::Burstable);
    let guaranteed = of_class(QosClass::Guaranteed);
    let needs: Vec<Need> = shortages.iter().map(Shortage::missing).collect();
    let rest = |gone: &[&[usize]]| {
        let gone: Vec<&Running> = gone.concat().iter().map(|index| &running[*index]).collect();
        without(&needs, &gone)
    };
    let unmet = rest(&[&best_effort, &burstable, &guaranteed]);
    if !unmet.is_empty() {
        return Err(unable(&unmet));
    }
    // Each class gives what the classes below it cannot, and what those above need not.
    let guaranteed = nearest(running, guaranteed, rest(&[&best_effort, &burstable]))?;
    let burstable = nearest(running, burstable, rest(&[&best_effort, &guaranteed]))?;
    let best_effort = nearest(running, best_effort, rest(&[&burstable, &guaranteed]))?;
    Ok([best_effort, burstable, guaranteed].concat())
}

/// Takes the pod that brings the needs down most, again and again until nothing is needed.
fn nearest(
    running: &[Running],
    mut candidates: Vec<usize>,
    mut needs: Vec<Need>,
) -> Result<Vec<usize>, String> {
    let mut chosen = Vec::new();
    while !needs.is_empty() {
        let mut best: Option<(usize, f64)> = None;
        for (at, index) in candidates.iter().enumerate() {
            let pod = &running[*index];
            let far = distance(&needs, pod);
            let is_better = best.is_none_or(|(best, shortest)| {
                let is_equal = far.total_cmp(&shortest).is_eq();
                far < shortest || is_equal && pod.is_smaller_than(&running[candidates[best]])
            });
            if is_better {
                best = Some((at, far));
            }
        }
        let Some((best, _)) = best else {
            return Err(unable(&needs));
        };
        let index = candidates.swap_remove(best);
        needs = without(&needs, &[&running[index]]);
        chosen.push(index);
    }
    Ok(chosen)
}

/// How far the needs are from being met by a pod: each counts alike, whatever its amount.
#[expect(
    clippy::cast_precision_loss,
    reason = "upstream compares these as floats, and the choice depends on it"
)]
fn distance(needs: &[Need], pod: &Running) -> f64 {
    let parts = needs.iter().map(|need| {
        let rest = need
            .amount
            .saturating_sub(pod.request(&need.resource))
            .max(0);
        (rest as f64 / need.amount as f64).powi(2)
    });
    parts.sum()
}

fn without(needs: &[Need], gone: &[&Running]) -> Vec<Need> {
    let rest = needs.iter().map(|need| {
        let freed = gone.iter().map(|pod| pod.request(&need.resource));
        Need {
            resource: need.resource.clone(),
            amount: need.amount.saturating_sub(freed.sum()),
        }
    });
    rest.filter(|need| need.amount > 0).collect()
}

fn unable(needs: &[Need]) -> String {
    let listed = needs
        .iter()
        .map(|need| format!("(res: {}, q: {}), ", need.resource, need.amount));
    let listed: String = listed.collect();
    format!("no set of running pods found to reclaim resources: [{listed}]")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    /// A pod with requests, and as much as limits if it is guaranteed.
    fn running(class: QosClass, milli_cpu: i64, memory: i64, priority: i32) -> Running {
        let amounts = json!({ "cpu": format!("{milli_cpu}m"), "memory": memory.to_string() });
        let resources = match class {
            QosClass::BestEffort => json!({}),
            QosClass::Burstable => json!({ "requests": amounts }),
            QosClass::Guaranteed => json!({ "requests": amounts, "limits": amounts }),
        };
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "p", "uid": "u" },
            "spec": {
                "priority": priority,
                "containers": [{ "name": "a", "resources": resources }],
            },
        }))
        .unwrap();
        Running {
            view: PodView::from_api(&pod).unwrap(),
            pod: SchedulingPod::from_api(&pod).unwrap(),
        }
    }

    fn lacking(resource: &str, amount: i64) -> Shortage {
        Shortage {
            resource: ResourceName::from(resource),
            requested: amount + 10,
            used: 90,
            capacity: 100,
        }
    }

    fn chosen(pods: &[Running], shortages: &[Shortage]) -> Result<Vec<usize>, String> {
        let critical = running(QosClass::Burstable, 1, 1, 2_000_000_000);
        victims(&critical.view, pods, shortages)
    }

    #[test]
    fn lower_qos_classes_are_preempted_first() {
        let pods = [
            running(QosClass::Guaranteed, 200, 200, 0),
            running(QosClass::Burstable, 100, 100, 0),
            running(QosClass::BestEffort, 0, 0, 0),
        ];
        assert_eq!(chosen(&pods, &[lacking("cpu", 100)]), Ok(vec![1]));
        assert_eq!(chosen(&pods, &[lacking("cpu", 101)]), Ok(vec![0]));
        assert_eq!(chosen(&pods, &[lacking("cpu", 300)]), Ok(vec![1, 0]));
        // A pod without requests still makes room for one.
        assert_eq!(chosen(&pods, &[lacking("pods", 1)]), Ok(vec![2]));
    }

    #[test]
    fn preemption_prefers_few_pods_and_then_small_ones() {
        let pods = [
            running(QosClass::Burstable, 100, 1, 0),
            running(QosClass::Burstable, 300, 1, 0),
            running(QosClass::Burstable, 250, 1, 0),
        ];
        assert_eq!(chosen(&pods, &[lacking("cpu", 200)]), Ok(vec![2]));
        let both = [lacking("cpu", 200), lacking("memory", 1)];
        assert_eq!(chosen(&pods, &both), Ok(vec![2]));
    }

    #[test]
    fn pod_of_equal_priority_is_not_preempted() {
        let equal = [running(QosClass::Burstable, 500, 1, 2_000_000_000)];
        assert_eq!(
            chosen(&equal, &[lacking("cpu", 20)]),
            Err(
                "no set of running pods found to reclaim resources: [(res: cpu, q: 20), ]"
                    .to_owned()
            )
        );
        let lower = [running(QosClass::Burstable, 500, 1, 1_999_999_999)];
        assert_eq!(chosen(&lower, &[lacking("cpu", 20)]), Ok(vec![0]));
    }
}
