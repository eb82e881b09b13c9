//! What is written down can be decided again.

use super::super::record::{Record, Recorder, earlier_evictions};
use super::super::summary::Summary;
use super::super::{FsObservation, MemorySource, MemoryStall, Phase, Room, StallRule};
use super::*;
use crate::object::identity::PodUid;
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
        "by the kernel's own number no pod had to be evicted"
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
fn soft_threshold_counts_from_its_first_crossing() {
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
fn altered_record_is_refused() {
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
fn observation_round_trips_through_its_summary() {
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
fn memory_stalls_evict_only_where_configured() {
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

/// A pass in which memory is short, and what came of its kill.
fn with_outcome(outcome: Option<KillOutcome>) -> Record {
    let settings = eviction_settings(Profile::Kubernetes136, &[("memory.available", "1Gi")], &[]);
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(1));
    let (now, pods) = (Timestamp::from_secs(0), pods(2));
    let observation = memory_observation(100 * MIB, CAPACITY, now);
    let pods = observed(&pods);
    let input = Input::Observed {
        observation: &observation,
        pods: &pods,
    };
    let decision = recorder.decide(&mut engine, now, input);
    let uid = decision.evictions().next().unwrap().uid.clone();
    if let Some(outcome) = outcome {
        recorder.outcome(&mut engine, now, &uid, outcome);
    }
    recorder
        .write(&engine, now, input, &decision)
        .unwrap()
        .clone()
}

#[test]
fn outcomes_are_recorded_and_replayed() {
    for (outcome, is_carried_out) in [
        (None, false),
        (Some(KillOutcome::Killed), true),
        (Some(KillOutcome::Graceful), true),
        (Some(KillOutcome::Failed), true),
        (Some(KillOutcome::OomKilled), false),
    ] {
        let record = with_outcome(outcome);
        let json = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&json).unwrap();
        assert_eq!(read, record);
        assert_eq!(read.differences(), Ok(vec![]), "{outcome:?}");
        let eviction = &record.decision.evictions[0];
        assert!(eviction.is_disruption());
        assert_eq!(record.outcome(&eviction.uid), outcome);
        assert_eq!(record.carried_out().count(), usize::from(is_carried_out));
        let terminated = record.decision.terminated.as_ref().map(Vec::len);
        assert_eq!(terminated, outcome.map(|_| usize::from(is_carried_out)));
    }
}

#[test]
fn changed_decision_is_compared_field_by_field() {
    let mut record = with_outcome(Some(KillOutcome::OomKilled));
    let uid = record.decision.evictions[0].uid.clone();
    record.decision.terminated = Some(vec![uid.clone()]);
    let differences = record.differences().unwrap();
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].field, "terminated");
    assert_eq!(differences[0].recorded, serde_json::json!([uid]));
    assert_eq!(differences[0].replayed, serde_json::json!([]));
}

#[test]
fn records_of_earlier_releases_are_read_and_replayed() {
    let record = with_outcome(None);
    let uid = record.decision.evictions[0].uid.clone();
    for (struck, spared, expected) in [
        (None, None, None),
        (Some(vec![&uid]), None, Some(KillOutcome::Killed)),
        (Some(vec![]), None, None),
        (Some(vec![]), Some(vec![]), Some(KillOutcome::Graceful)),
        (Some(vec![]), Some(vec![&uid]), Some(KillOutcome::OomKilled)),
    ] {
        let mut json = serde_json::to_value(&record).unwrap();
        let fields = json.as_object_mut().unwrap();
        for (name, list) in [("struck", struck), ("spared", spared)] {
            if let Some(list) = list {
                fields.insert(name.to_owned(), serde_json::json!(list));
            }
        }
        let settings = fields["settings"].as_object_mut().unwrap();
        settings.remove("alwaysGiveGrace");
        let before = fields["before"].as_object_mut().unwrap();
        before.remove("evictions");
        let victims = serde_json::json!({ "victims": [["gone", true]], "until": 5 });
        before.insert("hold".to_owned(), victims);
        let eviction = fields["decision"]["evictions"][0].as_object_mut().unwrap();
        eviction.remove("isImmediate");
        let read: Record = serde_json::from_value(json).unwrap();
        assert_eq!(read.outcome(&uid), expected);
        assert_eq!(read.differences(), Ok(vec![]));
    }
}

#[test]
fn restarted_agent_continues_with_recorded_outcomes() {
    let [killed, graceful, oom_killed] = [
        KillOutcome::Killed,
        KillOutcome::Graceful,
        KillOutcome::OomKilled,
    ]
    .map(|outcome| with_outcome(Some(outcome)));
    let earlier = |records: &[&Record]| earlier_evictions(records.iter().copied());
    assert!(earlier(&[&killed])[0].is_killed);
    assert!(!earlier(&[&graceful])[0].is_killed);
    assert_eq!(earlier(&[&oom_killed]), []);
}

#[test]
fn phases_are_kill_conditions_record_terminate_events() {
    let place = |phase| Phase::ORDER.iter().position(|one| *one == phase).unwrap();
    assert_eq!(place(Phase::Kill), 0);
    assert_eq!(place(Phase::Conditions), 1);
    // Should the agent not live to see the end of a pod, the next one knows why it ends.
    assert!(place(Phase::Record) < place(Phase::Terminate));
    assert!(place(Phase::Terminate) < place(Phase::Events));
}

#[test]
fn a_grace_period_that_ended_early_is_recorded_and_replayed() {
    let hard = [("memory.available", "100Mi")];
    let soft = [("memory.available", "1Gi", "1s")];
    let settings = Settings {
        always_give_grace: false,
        max_pod_grace_period_seconds: 30,
        ..eviction_settings(Profile::Kubernetes136, &hard, &soft)
    };
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(8));
    let pods = pods(2);
    let pods = observed(&pods);
    for (second, mib, outcome) in [
        (0, 900, None),
        (1, 895, Some(KillOutcome::Graceful)),
        (2, 890, None),
        (3, 90, Some(KillOutcome::Killed)),
    ] {
        let now = Timestamp::from_secs(second);
        let observation = memory_observation(mib * MIB, CAPACITY, now);
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        let decision = recorder.decide(&mut engine, now, input);
        let evicted = decision.evictions().map(|eviction| &eviction.uid);
        let uids: Vec<&PodUid> = evicted.chain(decision.kills()).collect();
        assert_eq!(uids.len(), usize::from(outcome.is_some()), "{second}");
        for (uid, outcome) in uids.into_iter().zip(outcome) {
            recorder.outcome(&mut engine, now, uid, outcome);
        }
        recorder.write(&engine, now, input, &decision);
    }
    let records: Vec<&Record> = recorder.records().collect();
    assert_eq!(records.len(), 2);
    let uid = records[0].decision.evictions[0].uid.clone();
    assert_eq!(records[1].decision.kills, [uid]);
    for record in &records {
        assert_eq!(record.differences(), Ok(vec![]));
    }
    let earlier = earlier_evictions(records.into_iter());
    assert_eq!(earlier.len(), 1);
    assert!(earlier[0].is_killed, "by the second record");
}
