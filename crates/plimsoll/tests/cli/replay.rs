//! `plimsoll explain --replay`: recorded decisions, decided again.

use std::path::Path;

use plimsoll_core::config::{NodeConfig, Profile};
use plimsoll_core::eviction::record::Recorder;
use plimsoll_core::eviction::usage::{MemoryUsage, PodUsage};
use plimsoll_core::eviction::{
    ActivePod, Candidate, Engine, Input, KillOutcome, MemoryObservation, Observation, Settings,
};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_core::threshold::DiskLayout;
use serde_json::{Value, json};

use crate::{Run, plimsoll};

const MIB: i64 = 1 << 20;

/// What an agent writes down that kills a pod for want of memory.
fn record() -> Value {
    let mut config = NodeConfig::defaults(Profile::Kubernetes136);
    let threshold = ("memory.available".to_owned(), "200Mi".to_owned());
    config.eviction_hard.value = [threshold].into_iter().collect();
    let settings = Settings::new(&config, DiskLayout::Single).expect("a threshold");
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(1));
    let pod = serde_json::from_value(json!({
        "metadata": { "name": "hog", "namespace": "default", "uid": "uid-hog" },
        "spec": { "containers": [{ "name": "main" }] },
    }));
    let view = PodView::from_api(&pod.expect("a pod")).expect("a valid pod");
    let candidate = Candidate::new(&view, Profile::Kubernetes136);
    let working_set = Some(Bytes(400 * MIB));
    let usage = PodUsage {
        memory: Some(MemoryUsage { working_set }),
        ..PodUsage::default()
    };
    let pods = [ActivePod {
        candidate: &candidate,
        usage: Some(&usage),
    }];
    let now = Timestamp::from_secs(1_767_225_600);
    let observation = Observation {
        memory: Some(MemoryObservation {
            available: Bytes(150 * MIB),
            working_set: Bytes(550 * MIB),
            time: Some(now),
            ..MemoryObservation::default()
        }),
        ..Observation::default()
    };
    let input = Input::Observed {
        observation: &observation,
        pods: &pods,
    };
    let decision = recorder.decide(&mut engine, now, input);
    recorder.outcome(&mut engine, now, &candidate.uid, KillOutcome::Killed);
    let written = recorder.write(&engine, now, input, &decision);
    serde_json::to_value(written.expect("a record")).expect("JSON")
}

fn replay(folder: &Path, text: &str, arguments: &[&str]) -> Run {
    let file = folder.join("decisions.json");
    std::fs::write(&file, text).expect("the folder is ours");
    let file = file.display().to_string();
    plimsoll(&[&["explain", "--replay", &file], arguments].concat(), "")
}

#[test]
fn recorded_decision_replays_to_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let record = record();
    let list = json!({ "kind": "EvictionDecisionList", "items": [record, record] });
    for (text, count) in [
        (record.to_string(), "1 decision replayed: the same."),
        (list.to_string(), "2 decisions replayed: all the same."),
        (
            format!("{record}\n{record}\n"),
            "2 decisions replayed: all the same.",
        ),
    ] {
        let run = replay(folder.path(), &text, &[]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        for part in [
            "DECISION 2026-01-01T00:00:00Z",
            "memory.available   150 Mi      200 Mi      yes   yes",
            "outcome uid-hog: killed",
            "evicting (memory.available)",
            "evict default/hog (uid-hog), immediately: The node was low on resource: memory.",
            "  the same",
            count,
        ] {
            assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
        }
    }
    let run = plimsoll(&["explain", "--replay", "-"], &record.to_string());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn changed_decision_is_printed_with_exit_code_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut changed = record();
    changed["decision"]["evictions"][0]["gracePeriodSeconds"] = json!(7);
    changed["outcomes"][0]["outcome"] = json!("oomKilled");
    let run = replay(folder.path(), &changed.to_string(), &[]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    for part in [
        "evictions[0].gracePeriodSeconds was 7",
        "evictions[0].gracePeriodSeconds is now 1",
        "terminated was [\"uid-hog\"]",
        "terminated is now []",
        "1 decision replayed: not the same.",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let json = replay(folder.path(), &changed.to_string(), &["-o", "json"]);
    assert_eq!(json.code, Some(1));
    let report: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(report["kind"], "EvictionReplayList");
    assert_eq!(report["items"][0]["isSame"], false);
    let fields = report["items"][0]["differences"]
        .as_array()
        .expect("a list");
    let fields: Vec<&Value> = fields.iter().map(|one| &one["field"]).collect();
    assert_eq!(fields, ["evictions[0].gracePeriodSeconds", "terminated"]);
}

#[test]
fn a_file_without_decisions_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for text in ["{}", "[", "{\"items\":[{}]}"] {
        let run = replay(folder.path(), text, &[]);
        assert_eq!(run.code, Some(1), "{text}");
        assert!(
            run.stderr.contains("decisions.json holds no decisions"),
            "{}",
            run.stderr
        );
    }
    let mut unknown = record();
    unknown["settings"]["profile"] = json!("kubernetes-9");
    let run = replay(folder.path(), &unknown.to_string(), &[]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stdout.contains("failed: settings.profile: "),
        "{}",
        run.stdout
    );
    let both = plimsoll(&["explain", "--replay", "file", "pod", "name"], "");
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}
