//! Laws of the decisions that depend on time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, Taint};
use plimsoll_core::lifecycle::node_health::{GracePeriods, Heartbeats, Ready, Renewal, evaluate};
use plimsoll_core::lifecycle::node_taints::no_schedule_change;
use plimsoll_core::lifecycle::recreation;
use plimsoll_core::lifecycle::retention::{self, EvictedPod};
use plimsoll_core::lifecycle::taint_eviction::TaintEvictions;
use plimsoll_core::lifecycle::taint_queue::TaintQueue;
use plimsoll_core::lifecycle::token_bucket::TokenBucket;
use plimsoll_core::lifecycle::zone::{Disruption, Rates, ZoneHealth, Zones};
use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::object::node::ConditionStatus;
use plimsoll_core::object::taint::TolerationTime;
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// Times that never go back.
fn times() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..30_i64, 1..60).prop_map(|steps| {
        let mut now = 0;
        let times = steps.into_iter().map(|step| {
            now += step;
            now
        });
        times.collect()
    })
}

fn pod(name: u8) -> PodRef {
    PodRef {
        namespace: String::new(),
        name: name.to_string(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Observe(u8, u64),
    Tolerate(u8),
    Cancel(u8),
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, 0..100_u64).prop_map(|(pod, secs)| Step::Observe(pod, secs)),
        (0..4_u8).prop_map(Step::Tolerate),
        (0..4_u8).prop_map(Step::Cancel),
        Just(Step::Take),
    ]
}

fn evicted() -> impl Strategy<Value = Vec<EvictedPod>> {
    let pod = (0..3_u8, 0..2000_i64, 0..2000_i64).prop_map(|(owner, created, life)| EvictedPod {
        pod: PodRef::default(),
        uid: PodUid::default(),
        owner: owner.to_string(),
        created: at(created),
        evicted: at(created + life),
    });
    prop::collection::vec(pod, 0..20).prop_map(|mut pods| {
        for (index, pod) in pods.iter_mut().enumerate() {
            pod.pod.name = index.to_string();
        }
        pods
    })
}

fn node() -> impl Strategy<Value = Node> {
    let conditions = prop::sample::select(vec![
        "Ready",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "NetworkUnavailable",
        "Other",
    ]);
    let statuses = prop::sample::select(vec!["True", "False", "Unknown"]);
    let keys = prop::sample::select(vec![
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/unschedulable",
        "mine",
    ]);
    let effects = prop::sample::select(vec!["NoSchedule", "NoExecute"]);
    let conditions = prop::collection::btree_map(conditions, statuses, 0..6);
    let taints = prop::collection::btree_set((keys, effects), 0..6);
    (conditions, taints, any::<bool>()).prop_map(|(conditions, taints, cordoned)| Node {
        spec: Some(NodeSpec {
            unschedulable: Some(cordoned),
            taints: Some(taints.into_iter().map(taint).collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            conditions: Some(conditions.into_iter().map(condition).collect()),
            ..NodeStatus::default()
        }),
        ..Node::default()
    })
}

fn taint((key, effect): (&str, &str)) -> Taint {
    Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        ..Taint::default()
    }
}

fn condition((kind, status): (&str, &str)) -> NodeCondition {
    NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        ..NodeCondition::default()
    }
}

proptest! {
    #[test]
    fn a_bucket_gives_no_more_than_its_rate(times in times(), tenths in 1..50_u8) {
        let rate = f32::from(tenths) / 10.0;
        let mut bucket = TokenBucket::new(rate);
        let first = times[0];
        let mut taken = 0.0;
        for now in times {
            if bucket.try_take(at(now)) {
                taken += 1.0;
            }
            let elapsed = i32::try_from(now - first).unwrap();
            prop_assert!(taken <= 1.0 + f64::from(elapsed) * f64::from(rate) + 1e-6);
        }
    }

    #[test]
    fn queue_returns_every_node_once(times in times(), names in prop::collection::vec(0..9_u8, 1..20)) {
        let mut queue = TaintQueue::new(0.1);
        for name in &names {
            queue.add(NodeName::new(name.to_string()), at(0));
        }
        let mut taken = BTreeSet::new();
        for now in times {
            while let Some(node) = queue.take(at(now)) {
                prop_assert!(taken.insert(node), "taken twice");
            }
        }
        let mut late = 10_000;
        while let Some(node) = queue.take(at(late)) {
            taken.insert(node);
            late += 11;
        }
        let added: BTreeSet<_> = names.iter().map(|n| NodeName::new(n.to_string())).collect();
        prop_assert_eq!(taken, added);
    }

    #[test]
    fn pods_leave_exactly_when_the_running_timer_ends(
        times in times(),
        steps in prop::collection::vec(step(), 60),
    ) {
        let mut evictions = TaintEvictions::default();
        let mut ends: BTreeMap<u8, i64> = BTreeMap::new();
        let mut starts: BTreeMap<u8, i64> = BTreeMap::new();
        for (now, step) in times.into_iter().zip(steps) {
            match step {
                Step::Observe(name, secs) => {
                    evictions.observe(&pod(name), TolerationTime::Seconds(secs), at(now));
                    let runs = starts.get(&name).is_some_and(|start| *start < now);
                    if !runs || secs == 0 {
                        starts.insert(name, now);
                        ends.insert(name, now + i64::try_from(secs).unwrap());
                    }
                }
                Step::Tolerate(name) => {
                    evictions.observe(&pod(name), TolerationTime::Unlimited, at(now));
                    ends.remove(&name);
                    starts.remove(&name);
                }
                Step::Cancel(name) => {
                    evictions.cancel(&pod(name));
                    ends.remove(&name);
                    starts.remove(&name);
                }
                Step::Take => {
                    let taken: BTreeSet<PodRef> = evictions.take_due(at(now)).into_iter().collect();
                    let due = ends.iter().filter(|(_, end)| **end <= now);
                    let due: BTreeSet<PodRef> = due.map(|(name, _)| pod(*name)).collect();
                    for left in &taken {
                        evictions.left(left);
                    }
                    ends.retain(|_, end| *end > now);
                    starts.retain(|name, _| ends.contains_key(name));
                    prop_assert_eq!(taken, due);
                }
            }
            prop_assert_eq!(evictions.next_due(), ends.values().min().map(|end| at(*end)));
        }
    }

    #[test]
    fn node_with_heartbeat_within_grace_period_is_healthy(
        signals in prop::collection::vec((0..3_u8, 0..3_u8), 1..60),
        times in times(),
    ) {
        let grace = GracePeriods::default();
        let (mut heartbeat, mut renewal) = (0, 0);
        let (mut health, mut heard) = (None, None);
        for ((beats, renews), now) in signals.into_iter().zip(times) {
            let is_heard = heard.is_none() || beats == 0 || renews == 0;
            heartbeat += i64::from(beats == 0);
            renewal += i64::from(renews == 0);
            let heartbeats = Heartbeats {
                created: at(0),
                ready: Some(Ready {
                    status: ConditionStatus::True,
                    heartbeat: Some(at(heartbeat)),
                    transition: None,
                }),
                lease: Some(Renewal(Some(at(renewal)))),
            };
            if is_heard {
                heard = Some(now);
            }
            let verdict = evaluate(grace, health.as_ref(), &heartbeats, at(now));
            let silence = now - heard.unwrap_or(now);
            if silence <= 50 {
                prop_assert!(!verdict.is_silent);
            }
            prop_assert!(verdict.health.heard >= at(heard.unwrap_or(now)));
            health = Some(verdict.health);
        }
    }

    #[test]
    fn taints_match_conditions_after_one_change(node in node()) {
        let mut node = node;
        let change = no_schedule_change(&node);
        let spec = node.spec.as_mut().unwrap();
        let others = |taints: &[Taint]| -> BTreeSet<(String, String)> {
            let kept = taints.iter().filter(|t| t.effect == "NoExecute" || t.key == "mine");
            kept.map(|t| (t.key.clone(), t.effect.clone())).collect()
        };
        let before = spec.taints.clone().unwrap();
        if let Some(taints) = change.applied_to(&before, at(0)) {
            prop_assert_eq!(others(&before), others(&taints));
            spec.taints = Some(taints);
        }
        prop_assert!(no_schedule_change(&node).is_empty());
    }

    #[test]
    fn no_node_is_tainted_while_every_zone_is_disrupted(
        passes in prop::collection::vec(
            prop::collection::btree_map("[a-c]", (0..3_usize, 0..6_usize), 0..3),
            1..12,
        ),
    ) {
        let mut zones = Zones::default();
        for pass in passes {
            let healths = pass.into_iter().map(|(zone, (ready, not_ready))| {
                (zone, ZoneHealth { ready, not_ready })
            });
            let healths: BTreeMap<String, ZoneHealth> = healths.collect();
            let step = zones.step(&healths, Rates::default());
            let all_gone = healths.values().all(|h| h.ready == 0 && h.not_ready > 0);
            match step {
                Disruption::AllGone => prop_assert!(all_gone),
                Disruption::Back(_) => prop_assert!(!all_gone),
                Disruption::Rates(rates) => prop_assert!(!all_gone || rates.is_empty()),
            }
        }
    }

    #[test]
    fn kept_records_stay_within_both_limits(pods in evicted(), now in 0..100_000_i64) {
        let settings = retention::Settings::default();
        let plan = retention::plan(settings, &pods, at(now));
        let removed: BTreeSet<&str> = plan.iter().map(|(p, _)| p.pod.name.as_str()).collect();
        let kept: Vec<EvictedPod> =
            pods.iter().filter(|p| !removed.contains(p.pod.name.as_str())).cloned().collect();
        prop_assert!(retention::plan(settings, &kept, at(now)).is_empty());
        for owner in ["0", "1", "2"] {
            let of_owner = |pods: &[EvictedPod]| pods.iter().filter(|p| p.owner == owner).count();
            prop_assert!(of_owner(&kept) <= 5);
            if now < 24 * 60 * 60 {
                prop_assert_eq!(of_owner(&kept), of_owner(&pods).min(5));
            }
        }
    }

    #[test]
    fn waits_never_exceed_the_longest_wait(pods in evicted(), now in 0..5000_i64) {
        let settings = recreation::Settings::default();
        if let Some(until) = recreation::wait_until(settings, &pods, at(now)) {
            let last = pods.iter().map(|pod| pod.evicted).max().unwrap();
            prop_assert!(until > at(now));
            prop_assert!(until.saturating_since(last) <= Duration::from_secs(300));
        }
    }
}
