//! Laws of node-pressure eviction, checked by code that knows nothing of the engine's.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::config::Profile;
use plimsoll_core::eviction::record::{Record, Recorder};
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::usage::PodUsage;
use plimsoll_core::eviction::{
    ActivePod, Candidate, Cause, Decision, Engine, FsObservation, Input, Observation,
    PidObservation, Room, Settings,
};
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, Count};
use plimsoll_core::testing::{eviction_settings, memory_observation, memory_usage, pod};
use plimsoll_core::threshold::{DiskLayout, Duration, StarvedResource};
use proptest::prelude::*;

const MIB: i64 = 1 << 20;
const CAPACITY: i64 = 4096 * MIB;
const CRITICAL: i32 = 2_000_000_000;

/// A pod as the checkers know it.
#[derive(Clone, Debug)]
struct Workload {
    request_mib: i64,
    usage_mib: Option<i64>,
    priority: i32,
    created_at: i64,
    disk_limit_mib: Option<i64>,
    disk_mib: i64,
}

impl Workload {
    fn is_critical(&self) -> bool {
        self.priority >= CRITICAL
    }

    fn is_above_request(&self) -> bool {
        self.usage_mib.is_none_or(|usage| usage > self.request_mib)
    }

    fn is_above_disk_limit(&self) -> bool {
        let limit = self.disk_limit_mib.filter(|_| self.usage_mib.is_some());
        limit.is_some_and(|limit| self.disk_mib > limit)
    }

    fn parts(&self, index: usize) -> (Candidate, Option<PodUsage>) {
        let mut builder = pod(&format!("p{index}"))
            .memory(&format!("{}Mi", self.request_mib))
            .priority(self.priority)
            .created_at(self.created_at);
        if let Some(limit) = self.disk_limit_mib {
            builder = builder.limit("ephemeral-storage", &format!("{limit}Mi"));
        }
        let usage = self.usage_mib.map(|mib| PodUsage {
            ephemeral_storage: Some(Bytes(self.disk_mib * MIB)),
            ..memory_usage(mib * MIB)
        });
        (builder.candidate(Profile::Kubernetes136), usage)
    }
}

fn workload() -> impl Strategy<Value = Workload> {
    let priority = prop_oneof![4 => -2i32..3, 1 => Just(CRITICAL), 1 => Just(CRITICAL - 1)];
    let disk_limit = prop::option::weighted(0.1, 1i64..100);
    (
        0i64..500,
        prop::option::weighted(0.95, 0i64..500),
        priority,
        0i64..4,
        disk_limit,
        0i64..100,
    )
        .prop_map(|fields| Workload {
            request_mib: fields.0,
            usage_mib: fields.1,
            priority: fields.2,
            created_at: fields.3,
            disk_limit_mib: fields.4,
            disk_mib: fields.5,
        })
}

/// One look at the node. Disk, inodes and pids are in percent of what there is.
#[derive(Clone, Debug)]
struct Look {
    after_millis: i64,
    memory_mib: i64,
    disk_percent: i64,
    inodes_percent: i64,
    pids_percent: i64,
    /// Whether the statistics are those of the look before.
    is_stale: bool,
    /// Whether killed pods are gone at the next look.
    are_victims_gone: bool,
    relief_percent: i64,
}

fn look() -> impl Strategy<Value = Look> {
    let percent = || prop_oneof![1 => 0i64..12, 2 => 12i64..100];
    (
        prop_oneof![0i64..1_000, 1_000i64..60_000],
        prop_oneof![0i64..700, 0i64..4000],
        percent(),
        percent(),
        percent(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.7),
        0i64..100,
    )
        .prop_map(|fields| Look {
            after_millis: fields.0,
            memory_mib: fields.1,
            disk_percent: fields.2,
            inodes_percent: fields.3,
            pids_percent: fields.4,
            is_stale: fields.5,
            are_victims_gone: fields.6,
            relief_percent: fields.7,
        })
}

fn observation(look: &Look, time: Timestamp) -> Observation {
    let mut observation = memory_observation(look.memory_mib * MIB, CAPACITY, time);
    let fs = FsObservation {
        bytes: Some(Room {
            available: Bytes(look.disk_percent * MIB),
            capacity: Bytes(100 * MIB),
        }),
        inodes: Some(Room {
            available: Count(look.inodes_percent),
            capacity: Count(100),
        }),
        time: Some(time),
    };
    observation.node_fs = Some(fs);
    observation.image_fs = Some(fs);
    observation.container_fs = Some(fs);
    observation.pids = Some(PidObservation {
        max: Count(100),
        running: Count(100 - look.pids_percent),
        time: Some(time),
    });
    observation
}

fn settings(transition_seconds: i64) -> Settings {
    Settings {
        pressure_transition_period: Duration::from_secs(transition_seconds),
        max_pod_grace_period_seconds: 30,
        layout: DiskLayout::Single,
        back_off: true,
        ..eviction_settings(
            Profile::Kubernetes136,
            &[
                ("memory.available", "300Mi"),
                ("nodefs.available", "10%"),
                ("nodefs.inodesFree", "5"),
                ("pid.available", "5%"),
            ],
            &[
                ("memory.available", "500Mi", "30s"),
                ("imagefs.available", "15%", "10s"),
            ],
        )
    }
}

/// What one pass led to.
struct Pass {
    now: Timestamp,
    time: Timestamp,
    listed: BTreeSet<usize>,
    conditions: BTreeSet<NodeCondition>,
    evictions: Vec<(usize, Option<StarvedResource>)>,
    decisions: Vec<Decision>,
}

/// Runs the looks through a recorded engine; a victim disappears at the look that says so.
fn run(workloads: &[Workload], looks: &[Look], settings: Settings) -> (Vec<Pass>, Vec<Record>) {
    let parts: Vec<_> = workloads
        .iter()
        .enumerate()
        .map(|(i, w)| w.parts(i))
        .collect();
    let index: BTreeMap<&str, usize> = parts
        .iter()
        .enumerate()
        .map(|(i, (c, _))| (c.uid.as_str(), i))
        .collect();
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(usize::MAX));
    let (mut now, mut time) = (Timestamp::from_secs(1_000), Timestamp::from_secs(1_000));
    let (mut gone, mut dying) = (BTreeSet::new(), BTreeSet::new());
    let mut passes = Vec::new();
    for look in looks {
        now = now + Duration::from_millis(look.after_millis);
        if !look.is_stale {
            time = now;
        }
        if look.are_victims_gone {
            gone.append(&mut dying);
        }
        let listed: BTreeSet<usize> = (0..parts.len()).filter(|i| !gone.contains(i)).collect();
        let pods: Vec<ActivePod<'_>> = listed
            .iter()
            .map(|i| ActivePod {
                candidate: &parts[*i].0,
                usage: parts[*i].1.as_ref(),
            })
            .collect();
        let observation = observation(look, time);
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        let mut decisions = vec![recorder.step(&mut engine, now, input)];
        if decisions[0].reclaims().next().is_some() {
            let relief = Look {
                disk_percent: look.disk_percent + look.relief_percent,
                inodes_percent: look.inodes_percent + look.relief_percent,
                ..look.clone()
            };
            let after = self::observation(&relief, now);
            let input = Input::Reclaimed {
                observation: Some(&after),
            };
            decisions.push(recorder.step(&mut engine, now, input));
        }
        let evictions: Vec<(usize, Option<StarvedResource>)> = decisions
            .iter()
            .flat_map(Decision::evictions)
            .map(|eviction| {
                let resource = match eviction.cause {
                    Cause::Starvation(starvation) => Some(starvation.resource),
                    Cause::LocalLimit(_) => None,
                };
                (index[eviction.uid.as_str()], resource)
            })
            .collect();
        dying.extend(evictions.iter().map(|(i, _)| *i));
        let conditions = engine.conditions().clone();
        passes.push(Pass {
            now,
            time,
            listed,
            conditions,
            evictions,
            decisions,
        });
    }
    let records = recorder.records().cloned().collect();
    (passes, records)
}

fn workloads() -> impl Strategy<Value = Vec<Workload>> {
    prop::collection::vec(workload(), 0..12)
}

fn looks() -> impl Strategy<Value = Vec<Look>> {
    prop::collection::vec(look(), 1..25)
}

/// The conditions whose lines are crossed, by the numbers in [`settings`].
fn crossed(look: &Look) -> BTreeSet<NodeCondition> {
    let mut crossed = BTreeSet::new();
    if look.memory_mib < 500 {
        crossed.insert(NodeCondition::MemoryPressure);
    }
    if look.disk_percent < 15 || look.inodes_percent < 5 {
        crossed.insert(NodeCondition::DiskPressure);
    }
    if look.pids_percent < 5 {
        crossed.insert(NodeCondition::PidPressure);
    }
    crossed
}

proptest! {
    #[test]
    fn pods_above_their_memory_request_are_evicted_first(
        workloads in workloads(), looks in looks()
    ) {
        let (passes, _) = run(&workloads, &looks, settings(60));
        let mut dying: BTreeSet<usize> = BTreeSet::new();
        for pass in &passes {
            for (victim, resource) in &pass.evictions {
                if *resource != Some(StarvedResource::Memory) {
                    continue;
                }
                if !workloads[*victim].is_above_request() {
                    let spared = pass.listed.iter().find(|i| {
                        let other = &workloads[**i];
                        !dying.contains(i) && !other.is_critical() && other.is_above_request()
                    });
                    prop_assert_eq!(spared, None, "spared while {} went", victim);
                }
            }
            dying.extend(pass.evictions.iter().map(|(i, _)| *i));
        }
    }

    #[test]
    fn a_pass_evicts_one_pod_for_the_node_or_pods_above_local_limits(
        workloads in workloads(), looks in looks()
    ) {
        for pass in run(&workloads, &looks, settings(60)).0 {
            let for_the_node = pass.evictions.iter().filter(|(_, r)| r.is_some()).count();
            prop_assert!(for_the_node <= 1);
            prop_assert!(for_the_node == 0 || pass.evictions.len() == 1);
            for (victim, resource) in &pass.evictions {
                if resource.is_none() {
                    prop_assert!(workloads[*victim].is_above_disk_limit());
                }
            }
        }
    }

    #[test]
    fn critical_pod_is_never_evicted_and_no_pod_twice(workloads in workloads(), looks in looks()) {
        let mut dying = BTreeSet::new();
        for pass in run(&workloads, &looks, settings(60)).0 {
            for (victim, _) in &pass.evictions {
                prop_assert!(!workloads[*victim].is_critical());
                prop_assert!(pass.listed.contains(victim));
                prop_assert!(dying.insert(*victim), "{} was being killed already", victim);
            }
        }
    }

    #[test]
    fn conditions_are_set_at_once_and_stay_for_transition_period(
        workloads in workloads(), looks in looks(), transition in 1i64..300
    ) {
        let (passes, _) = run(&workloads, &looks, settings(transition));
        let transition = Duration::from_secs(transition);
        let mut last_crossed: BTreeMap<NodeCondition, Timestamp> = BTreeMap::new();
        for (pass, look) in passes.iter().zip(&looks) {
            let crossed = crossed(look);
            prop_assert!(crossed.is_subset(&pass.conditions));
            for condition in [
                NodeCondition::MemoryPressure,
                NodeCondition::DiskPressure,
                NodeCondition::PidPressure,
            ] {
                if crossed.contains(&condition) {
                    last_crossed.insert(condition, pass.now);
                }
                let is_true = pass.conditions.contains(&condition);
                let crossed_at = last_crossed.get(&condition);
                let is_recent = crossed_at.is_some_and(|at| pass.now - *at < transition);
                prop_assert_eq!(is_true, is_recent, "{} without minimum reclaims", condition);
            }
        }
    }

    #[test]
    fn back_off_changes_nothing_while_pods_hold_the_starved_resource(
        workloads in workloads(), looks in looks()
    ) {
        let upstream = Settings { back_off: false, ..settings(60) };
        let upstream = run(&workloads, &looks, upstream).0;
        let (passes, _) = run(&workloads, &looks, settings(60));
        let (mut dying, mut last) = (BTreeSet::new(), None);
        for ((own, other), look) in passes.iter().zip(&upstream).zip(&looks) {
            let evictable = own.listed.iter().filter(|i| !dying.contains(*i));
            let evictable = evictable.map(|i| &workloads[*i]).filter(|pod| !pod.is_critical());
            let held: Option<i64> = evictable.map(|pod| pod.usage_mib).sum();
            // The highest line is the soft one.
            let can_help = held.is_none_or(|held| look.memory_mib + held >= 500);
            // Upstream does not evict two pods within ten seconds at all.
            let is_settled = last.is_none_or(|last| own.now - last >= Duration::from_secs(10));
            if !can_help || !is_settled {
                break;
            }
            prop_assert_eq!(&own.decisions, &other.decisions);
            if own.evictions.iter().any(|(_, for_)| *for_ == Some(StarvedResource::Memory)) {
                last = Some(own.now);
            }
            dying.extend(own.evictions.iter().map(|(i, _)| *i));
        }
    }

    #[test]
    fn useless_eviction_ends_after_one_pod(workloads in workloads(), looks in looks()) {
        let (passes, _) = run(&workloads, &looks, settings(60));
        let mut last: Option<Timestamp> = None;
        for pass in &passes {
            let is_for_memory = pass.evictions.iter().any(|(_, resource)| {
                *resource == Some(StarvedResource::Memory)
            });
            let is_in_vain = pass.decisions.iter().any(|decision| decision.shortfall.is_some());
            if is_for_memory && is_in_vain {
                let is_early = last.is_some_and(|last| pass.now - last < Duration::from_secs(300));
                prop_assert!(!is_early, "again after less than five minutes");
            }
            if is_for_memory {
                last = Some(pass.now);
            }
        }
    }

    #[test]
    fn no_pod_is_evicted_by_stale_stats(
        workloads in workloads(), looks in looks()
    ) {
        let (passes, _) = run(&workloads, &looks, settings(60));
        for pair in passes.windows(2) {
            let is_old = pair[1].time <= pair[0].time;
            let for_the_node = pair[1].evictions.iter().any(|(_, r)| r.is_some());
            prop_assert!(!(is_old && for_the_node));
        }
    }

    #[test]
    fn no_pod_is_evicted_while_a_victim_holds_its_memory(
        workloads in workloads(), looks in looks()
    ) {
        let (passes, _) = run(&workloads, &looks, settings(60));
        let mut killed: BTreeMap<usize, Timestamp> = BTreeMap::new();
        // At least 10 s for the kill and 30 s for the clean-up.
        let patience = Duration::from_secs(40);
        for pass in &passes {
            let for_the_node = pass.evictions.iter().any(|(_, r)| r.is_some());
            if for_the_node {
                for (victim, at) in &killed {
                    let holds = workloads[*victim].usage_mib != Some(0);
                    let is_waited_for = pass.listed.contains(victim) && pass.now - *at < patience;
                    prop_assert!(!(holds && is_waited_for), "{} still holds on", victim);
                }
            }
            killed.extend(pass.evictions.iter().map(|(i, _)| (*i, pass.now)));
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_answers(workloads in workloads(), looks in looks()) {
        let first = run(&workloads, &looks, settings(60)).0;
        let second = run(&workloads, &looks, settings(60)).0;
        for (a, b) in first.iter().zip(&second) {
            prop_assert_eq!(&a.decisions, &b.decisions);
        }
    }

    #[test]
    fn the_order_in_which_pods_are_listed_changes_nothing(
        workloads in prop::collection::vec(workload(), 2..12), memory_mib in 0i64..299
    ) {
        let parts: Vec<_> = workloads.iter().enumerate().map(|(i, w)| w.parts(i)).collect();
        let now = Timestamp::from_secs(1_000);
        let observation = memory_observation(memory_mib * MIB, CAPACITY, now);
        let mut pods: Vec<ActivePod<'_>> = parts
            .iter()
            .map(|(candidate, usage)| ActivePod { candidate, usage: usage.as_ref() })
            .collect();
        let settings = Settings { local_storage_capacity_isolation: false, ..settings(60) };
        let decide = |pods: &[ActivePod<'_>]| {
            let input = Input::Observed { observation: &observation, pods };
            Engine::new(settings.clone()).step(now, input)
        };
        let forwards = decide(&pods);
        pods.reverse();
        prop_assert_eq!(forwards, decide(&pods));
    }

    #[test]
    fn a_record_replays_to_the_same_decision_after_its_json(
        workloads in workloads(), looks in looks()
    ) {
        for record in run(&workloads, &looks, settings(60)).1 {
            let json = serde_json::to_string(&record).expect("records have JSON");
            let read: Record = serde_json::from_str(&json).expect("which is theirs");
            prop_assert_eq!(&read, &record);
            let replayed = read.replay();
            prop_assert_eq!(replayed.as_ref(), Ok(&record.decision));
        }
    }

    #[test]
    fn no_numbers_cause_an_engine_panic(
        numbers in prop::collection::vec(any::<i64>(), 12),
        nanos in prop::collection::vec(any::<i64>(), 1..6),
        threshold in any::<i64>(), percent in any::<u32>(),
    ) {
        use plimsoll_core::threshold::ThresholdValue;
        let mut settings = settings(60);
        let wild = ThresholdValue::Quantity(Quantity::new(threshold, plimsoll_core::quantity::Format::BinarySi));
        settings.thresholds[0].min_reclaim = Some(wild.clone());
        settings.thresholds[0].value = wild;
        settings.thresholds[1].value = ThresholdValue::Percentage(f32::from_bits(percent));
        let mut engine = Engine::new(settings);
        let (candidate, _) = Workload {
            request_mib: 1, usage_mib: None, priority: 0, created_at: 0,
            disk_limit_mib: Some(1), disk_mib: 0,
        }.parts(0);
        let usage = memory_usage(numbers[0]);
        for nanos in nanos {
            let now = Timestamp::from_nanos(nanos);
            let mut observation = Observation::default();
            let memory = plimsoll_core::eviction::MemoryObservation {
                available: Bytes(numbers[1]),
                working_set: Bytes(numbers[2]),
                kernel_available: Some(Bytes(numbers[3])),
                active_file: Some(Bytes(numbers[4])),
                time: Some(Timestamp::from_nanos(numbers[5])),
            };
            observation.memory = Some(memory);
            observation.node_fs = Some(FsObservation {
                bytes: Some(Room { available: Bytes(numbers[6]), capacity: Bytes(numbers[7]) }),
                inodes: Some(Room { available: Count(numbers[8]), capacity: Count(numbers[9]) }),
                time: None,
            });
            observation.pids = Some(PidObservation {
                max: Count(numbers[10]), running: Count(numbers[11]), time: None,
            });
            let pods = [ActivePod { candidate: &candidate, usage: Some(&usage) }];
            engine.step(now, Input::Observed { observation: &observation, pods: &pods });
            engine.step(now, Input::Reclaimed { observation: Some(&observation) });
            let _ = engine.forecast(&observation);
        }
    }

    #[test]
    fn arbitrary_text_never_panics_summary_or_record(text in any::<String>()) {
        let _ = serde_json::from_str::<Summary>(&text);
        let _ = serde_json::from_str::<Record>(&text);
    }
}
