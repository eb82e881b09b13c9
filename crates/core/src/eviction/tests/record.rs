//! What is written down can be decided again.

use super::super::record::{Record, Recorder};
use super::super::summary::Summary;
use super::super::{FsObservation, MemorySource, MemoryStall, Room, StallRule};
use super::*;
use crate::object::node::NodeCondition;
use crate::resources::{Bytes, Count};
use crate::testing::pod;
use crate::threshold::Duration;

fn observed(candidates: &[(Candidate, PodUsage)]) -> Vec<ActivePod<'_>> {
    let active = |(candidate, usage)| ActivePod {
        candidate,
        usage: Some(usage),
    };
    candidates.iter().map(|(c, u)| (c, u)).map(active).collect()
}

fn pods(count: i64) -> Vec<(Candidate, PodUsage)> {
    let one = |i: i64| {
        let pod = pod(&format!("p{i}")).memory("64Mi").created_at(i);
        (
            pod.candidate(Profile::Kubernetes136),
            memory_usage((100 + i) * MIB),
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn a_record_survives_its_json_and_replays_to_the_same_decision() {
    let mut settings = eviction_settings(
        Profile::Kubernetes136,
        &[("memory.available", "10%"), ("nodefs.inodesFree", "5k")],
        &[("memory.available", "1Gi", "1m30s")],
    );
    settings.memory_stall = Some(StallRule {
        full_avg10: 40.0,
        grace_period: Duration::ZERO,
    });
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(8));
    let pods = pods(3);
    for second in 0..3 {
        let now = Timestamp::from_secs(second);
        let mut observation = memory_observation((900 - 100 * second) * MIB, CAPACITY, now);
        observation.memory.as_mut().unwrap().kernel_available = Some(Bytes(3 * GIB));
        observation.swap_available = Some(Bytes(GIB));
        let pods = observed(&pods);
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        recorder.step(&mut engine, now, input);
    }
    let records: Vec<&Record> = recorder.records().collect();
    assert_eq!(records.len(), 1, "passes that do nothing leave no record");
    let record = records[0];
    assert_eq!(record.replay().as_ref(), Ok(&record.decision));
    let json = serde_json::to_string(record).unwrap();
    let read: Record = serde_json::from_str(&json).unwrap();
    assert_eq!(&read, record);
    assert_eq!(read.replay().as_ref(), Ok(&record.decision));

    let decision = &record.decision;
    assert_eq!(decision.verdict, "evicting");
    assert_eq!(decision.ranking[0].excess, "38Mi");
    let sources: Vec<(&str, usize)> = decision
        .memory_sources
        .iter()
        .map(|source| (source.source.as_str(), source.would_meet.len()))
        .collect();
    assert_eq!(
        sources,
        [("workingSet", 2), ("memAvailable", 0), ("swapAware", 0)],
        "by the kernel's own number nobody had to go"
    );
}

#[test]
fn a_pass_with_a_reclaim_is_one_record_with_both_looks() {
    let lines = [("nodefs.available", "1Gi")];
    let settings = eviction_settings(Profile::Kubernetes136, &lines, &[]);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(8));
    let pods = pods(2);
    let full = Observation {
        node_fs: Some(super::sources::disk(0, 10 * GIB)),
        ..Observation::default()
    };
    let active = observed(&pods);
    let input = Input::Observed {
        observation: &full,
        pods: &active,
    };
    recorder.step(&mut engine, Timestamp::from_secs(0), input);
    assert_eq!(recorder.records().count(), 0, "the pass is not over");
    let again = Input::Reclaimed {
        observation: Some(&full),
    };
    recorder.step(&mut engine, Timestamp::from_secs(7), again);
    let record = recorder.records().next().unwrap();
    assert_eq!(record.decision.reclaims, ["containerGC", "imageGC"]);
    assert_eq!(record.decision.evictions.len(), 1);
    assert_eq!(record.replay().as_ref(), Ok(&record.decision));
}

#[test]
fn a_line_is_crossed_between_the_last_two_measurements() {
    let lines = [("memory.available", "100Mi")];
    let settings = eviction_settings(Profile::Kubernetes136, &lines, &[]);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(8));
    let pods = pods(2);
    for (second, available) in [(0, 120), (3, 90)] {
        let now = Timestamp::from_secs(second);
        let observation = memory_observation(available * MIB, CAPACITY, now);
        let pods = observed(&pods);
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        recorder.step(&mut engine, now, input);
    }
    let record = recorder.records().next().unwrap();
    assert_eq!(record.crossed_at(), Some(Timestamp::from_secs(2)));
}

#[test]
fn a_soft_line_is_crossed_when_it_was_first_met() {
    let lines = [("memory.available", "100Mi", "5s")];
    let settings = eviction_settings(Profile::Kubernetes136, &[], &lines);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(8));
    let pods = pods(2);
    for (second, available) in [(0, 120), (3, 90), (9, 80)] {
        let now = Timestamp::from_secs(second);
        let observation = memory_observation(available * MIB, CAPACITY, now);
        let pods = observed(&pods);
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        recorder.step(&mut engine, now, input);
    }
    let evicting = |record: &&Record| !record.decision.evictions.is_empty();
    let record = recorder.records().find(evicting).unwrap();
    assert_eq!(record.crossed_at(), Some(Timestamp::from_secs(3)));
}

#[test]
fn records_are_bounded_in_number_and_size() {
    let lines = [("memory.available", "1Gi")];
    let settings = eviction_settings(Profile::Kubernetes136, &lines, &[]);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(2));
    let mut pods = pods(600);
    for second in 0..4 {
        let now = Timestamp::from_secs(second);
        let observation = memory_observation(500 * MIB, CAPACITY, now);
        let active = observed(&pods);
        let input = Input::Observed {
            observation: &observation,
            pods: &active,
        };
        recorder.step(&mut engine, now, input);
        pods.pop();
    }
    assert_eq!(recorder.records().count(), 2);
    for record in recorder.records() {
        assert_eq!(record.pods.len(), 512);
        assert!(record.omitted_pods > 0);
        assert_eq!(record.replay().as_ref(), Ok(&record.decision));
    }
}

#[test]
fn a_record_that_somebody_bent_is_refused() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    let mut recorder = Recorder::new(1);
    let observation = memory_observation(0, CAPACITY, Timestamp::from_secs(0));
    let input = Input::Observed {
        observation: &observation,
        pods: &[],
    };
    recorder.step(&mut node.engine, Timestamp::from_secs(0), input);
    let record = serde_json::to_string(recorder.records().next().unwrap()).unwrap();
    for (from, to) in [
        ("kubernetes-1.36", "kubernetes-9"),
        ("\"due\":[]", "\"due\":[7]"),
        ("\"quantity\":\"1Gi\"", "\"quantity\":\"much\""),
    ] {
        let bent = record.replacen(from, to, 1);
        assert_ne!(bent, record, "{from}");
        let bent: Record = serde_json::from_str(&bent).unwrap();
        assert!(bent.replay().is_err(), "{from}");
    }
}

#[test]
fn an_observation_is_given_back_by_its_summary() {
    let time = Some(Timestamp::from_secs(5));
    let mut observation = memory_observation(-MIB, CAPACITY, Timestamp::from_secs(4));
    observation.pods_memory = observation.memory;
    observation.memory_stall = Some(MemoryStall {
        full_avg10: 12.25,
        time,
    });
    observation.container_fs = Some(FsObservation {
        bytes: None,
        inodes: Some(Room {
            available: Count(1),
            capacity: Count(2),
        }),
        time,
    });
    assert_eq!(Summary::of_node(&observation).observation(), observation);
}

#[test]
fn stalls_evict_where_that_is_asked_for_and_only_then() {
    let verdict = |rule| {
        let settings = Settings {
            memory_stall: rule,
            memory_source: MemorySource::KernelAvailable,
            ..eviction_settings(
                Profile::Kubernetes136,
                &[("memory.available", "100Mi")],
                &[],
            )
        };
        let mut node = Node::new(settings);
        node.run_using(pod("hog"), 4000);
        let mut last = None;
        for second in [0, 5] {
            let mut observation = memory_observation(GIB, CAPACITY, Timestamp::from_secs(second));
            observation.memory_stall = Some(MemoryStall {
                full_avg10: 62.5,
                time: None,
            });
            last = Some(node.observe(second, &observation));
        }
        last.unwrap()
    };
    assert_eq!(evicted(&verdict(None)), [""; 0]);
    let rule = StallRule {
        full_avg10: 50.0,
        grace_period: Duration::from_secs(5),
    };
    let decision = verdict(Some(rule));
    let eviction = decision.evictions().next().unwrap();
    assert_eq!(
        eviction.message,
        "The node was low on resource: memory. Memory stalled all tasks for 62.5% of the last \
         10s, limit is 50%. Container c was using 4000Mi, request is 0, has larger consumption of \
         memory. "
    );
    assert_eq!(eviction.grace_period_seconds, 1);
    assert!(decision.conditions.contains(&NodeCondition::MemoryPressure));
}

#[test]
fn what_was_carried_out_is_told_from_what_was_only_decided() {
    let settings = eviction_settings(Profile::Kubernetes136, &[("memory.available", "1Gi")], &[]);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(1));
    let (now, pods) = (Timestamp::from_secs(0), pods(2));
    let observation = memory_observation(100 * MIB, CAPACITY, now);
    let pods = observed(&pods);
    let input = Input::Observed {
        observation: &observation,
        pods: &pods,
    };
    recorder.step(&mut engine, now, input);
    let record = recorder.records().next().unwrap();
    let uid = record.decision.evictions[0].uid.clone();
    assert!(record.decision.evictions[0].is_disruption());
    let one = || Some(vec![uid.clone()]);
    for (struck, spared, expected) in [
        (None, None, 0),
        (Some(vec![]), None, 0),
        (one(), None, 1),
        (Some(vec![]), Some(vec![]), 1),
        (Some(vec![]), one(), 0),
    ] {
        let told = Record {
            struck,
            spared,
            ..record.clone()
        };
        assert_eq!(told.carried_out().count(), expected, "{told:?}");
    }
}
