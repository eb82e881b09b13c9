//! Load lines of nodes, as the command prints them.

use plimsoll_core::eviction::record::distances::LinesRecord;
use serde_json::{Value, json};

use super::report::ResourceLine;
use super::{Detail, NodeLine, Report, compute, render, render_to_fit};
use crate::reading::{Reading, configuration};
use crate::text::{Colour, Terminal};

const GI: u64 = 1 << 30;
const MI: u64 = 1 << 20;

fn screen(width: usize, is_unicode: bool) -> Terminal {
    Terminal {
        width,
        height: 24,
        is_unicode,
        is_interactive: false,
        colour: Colour::Off,
    }
}

fn pod(name: &str, phase: &str, requests: &Value, limits: &Value) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "nodeName": "n1", "containers": [
            { "name": "main", "resources": { "requests": requests, "limits": limits } },
        ] },
        "status": { "phase": phase },
    })
}

fn summary(second: u32, memory_used: u64) -> Value {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    json!({
        "node": {
            "nodeName": "n1",
            "cpu": { "time": time, "usageNanoCores": 612_345_678 },
            "memory": {
                "time": time, "workingSetBytes": memory_used,
                "availableBytes": 4 * GI - memory_used,
            },
            "fs": {
                "time": time, "availableBytes": 60 * GI, "capacityBytes": 100 * GI,
                "inodesFree": 6_000_000, "inodes": 6_553_600,
            },
            "runtime": { "imageFs": {
                "time": time, "availableBytes": 60 * GI, "capacityBytes": 100 * GI,
                "inodesFree": 6_000_000, "inodes": 6_553_600,
            } },
            "rlimit": { "time": time, "maxpid": 32_768, "curproc": 410 },
        },
        "pods": [],
    })
}

/// A node of 4 Gi whose memory in use grows by 5 Mi in every second.
fn reading() -> Reading {
    let node = json!({
        "metadata": { "name": "n1" },
        "spec": {},
        "status": {
            "capacity": {
                "cpu": "2", "memory": "4Gi", "ephemeral-storage": "100Gi", "pods": "110",
            },
            "allocatable": {
                "cpu": "1900m", "memory": "3Gi", "ephemeral-storage": "90Gi", "pods": "110",
            },
            "conditions": [
                { "type": "Ready", "status": "True" },
                { "type": "MemoryPressure", "status": "False" },
            ],
        },
    });
    let config = json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kubeReserved": { "cpu": "100m", "memory": "412Mi" },
        "systemReserved": { "memory": "512Mi" },
        "evictionHard": { "memory.available": "100Mi", "nodefs.available": "10%" },
        "evictionSoft": { "memory.available": "500Mi" },
        "evictionSoftGracePeriod": { "memory.available": "1m30s" },
        "aFieldOfALaterRelease": true,
    });
    let pods = [
        pod(
            "web",
            "Running",
            &json!({ "cpu": "500m", "memory": "1Gi" }),
            &json!({ "memory": "2Gi" }),
        ),
        pod(
            "db",
            "Running",
            &json!({ "memory": "512Mi" }),
            &json!({ "cpu": "2", "memory": "3Gi" }),
        ),
        pod("free", "Pending", &json!({}), &json!({})),
        pod("done", "Succeeded", &json!({ "memory": "3Gi" }), &json!({})),
    ];
    let samples = [0, 5, 10].map(|second| {
        let used = 2 * GI + u64::from(second) * 5 * MI;
        serde_json::from_value(summary(second, used)).unwrap()
    });
    Reading {
        node: serde_json::from_value(node).unwrap(),
        pods: pods
            .into_iter()
            .map(|pod| serde_json::from_value(pod).unwrap())
            .collect(),
        config: Ok(configuration(&config)),
        samples: samples.to_vec(),
        no_sample: None,
        lines: None,
    }
}

fn memory_of(line: &NodeLine) -> &ResourceLine {
    let mut resources = line.resources.iter();
    resources.find(|line| line.resource == "memory").unwrap()
}

fn shown(reading: &Reading, detail: Detail, terminal: Terminal) -> String {
    render(&Report::new(vec![compute(reading)]), detail, terminal)
}

#[test]
fn a_node_on_eighty_columns() {
    insta::assert_snapshot!(shown(&reading(), Detail::Brief, screen(80, true)));
}

#[test]
fn a_node_on_eighty_columns_of_ascii() {
    insta::assert_snapshot!(shown(&reading(), Detail::Brief, screen(80, false)));
}

#[test]
fn a_node_on_a_wide_screen() {
    insta::assert_snapshot!(shown(&reading(), Detail::Wide, screen(140, true)));
}

#[test]
fn node_with_little_data() {
    let mut reading = reading();
    reading.config = Err("forbidden".to_owned());
    reading.samples.clear();
    reading.no_sample = Some("no answer in time".to_owned());
    insta::assert_snapshot!(shown(&reading, Detail::Wide, screen(80, true)));
}

#[test]
fn a_node_beyond_its_thresholds() {
    let mut reading = reading();
    let used = 4 * GI - 60 * MI;
    reading.samples = vec![serde_json::from_value(summary(0, used)).unwrap()];
    reading
        .node
        .status
        .as_mut()
        .unwrap()
        .conditions
        .as_mut()
        .unwrap()[1]
        .status = "True".to_owned();
    insta::assert_snapshot!(shown(&reading, Detail::Brief, screen(80, true)));
}

#[test]
fn nodes_own_lines_override_samples() {
    let mut reading = reading();
    let lines = json!({ "at": "2026-01-01T00:00:20Z", "items": [{
        "signal": "memory.available", "isHard": true, "gracePeriod": "0s",
        "line": 100 * MI, "available": 300 * MI, "capacity": 4 * GI,
        "changePerSecond": -2_097_152.0, "reachedInNanos": 100_000_000_000_i64,
    }] });
    reading.lines = Some(serde_json::from_value::<LinesRecord>(lines).unwrap());
    let line = compute(&reading);
    let memory = memory_of(&line);
    assert_eq!(
        memory.in_use,
        Some(i64::try_from(4 * GI - 300 * MI).unwrap())
    );
    assert_eq!(memory.thresholds.len(), 1);
    assert_eq!(memory.thresholds[0].reached_in_seconds, Some(100.0));
}

#[test]
fn the_forecast_is_that_of_the_samples() {
    let line = compute(&reading());
    let memory = memory_of(&line);
    let soft = &memory.thresholds[0];
    assert_eq!(
        (soft.is_hard, soft.signal.as_str()),
        (false, "memory.available")
    );
    // 4 Gi - 2 Gi - 50 Mi - 500 Mi, at 5 Mi/s.
    assert_eq!(soft.distance, i64::try_from(2 * GI - 550 * MI).unwrap());
    assert_eq!(soft.reached_in_seconds.map(f64::round), Some(300.0));
    assert_eq!(
        (memory.requested, memory.limits),
        (Some(1536 << 20), Some(5 << 30))
    );
    assert_eq!(memory.pods_without_limit, Some(1));
    let reserved = memory.reserved.unwrap();
    assert_eq!((reserved.kube, reserved.system), (412 << 20, 512 << 20));
    assert_eq!((reserved.hard_eviction, reserved.other), (100 << 20, 0));
    assert_eq!(line.pods, 3);
}

/// A threshold that an agent serves: signal, whether hard, line, available, capacity, seconds until
/// reached.
type Served<'a> = (&'a str, bool, u64, u64, u64, Option<i64>);

fn served(lines: &[Served<'_>]) -> LinesRecord {
    let items: Vec<Value> = lines
        .iter()
        .map(|(signal, is_hard, line, available, capacity, seconds)| {
            json!({
                "signal": signal, "isHard": is_hard, "gracePeriod": "0s", "line": line,
                "available": available, "capacity": capacity,
                "changePerSecond": seconds.map(|_| -2_097_152.0),
                "reachedInNanos": seconds.map(|seconds| seconds * 1_000_000_000),
            })
        })
        .collect();
    serde_json::from_value(json!({ "at": "2026-01-01T00:00:20Z", "items": items })).unwrap()
}

/// A node whose pods together reach their limit before the node is under memory pressure.
fn short_of_memory_for_pods() -> Reading {
    let mut reading = reading();
    reading.lines = Some(served(&[
        (
            "memory.available",
            true,
            100 * MI,
            856 * MI,
            4 * GI,
            Some(384),
        ),
        (
            "allocatableMemory.available",
            true,
            100 * MI,
            730 * MI,
            3 * GI,
            Some(315),
        ),
    ]));
    reading
}

#[test]
fn the_threshold_that_evicts_first_is_drawn_and_forecast() {
    let reading = short_of_memory_for_pods();
    let text = shown(&reading, Detail::Brief, screen(80, true));
    let expected = "hard threshold at 100 Mi left (allocatableMemory.available): 630 Mi";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("in 5m 15s"), "{text}");
    assert!(!text.contains("in 6m 24s"), "{text}");
    let line = compute(&reading);
    let memory = memory_of(&line);
    let drawn: Vec<Option<i64>> = memory.drawn().map(|line| memory.position(line)).collect();
    // 4 Gi - 856 Mi are in use, and 630 Mi more may be used.
    let at = i64::try_from(4 * GI - 226 * MI).unwrap();
    assert_eq!(drawn, [Some(at)]);
    let wide = shown(&reading, Detail::Wide, screen(140, true));
    assert!(wide.contains("in 6m 24s"), "all are in the table: {wide}");
}

#[test]
fn a_pod_with_one_unlimited_container_has_no_limit() {
    let mut reading = reading();
    let mut half = pod(
        "half",
        "Running",
        &json!({ "memory": "64Mi" }),
        &json!({ "cpu": "1", "memory": "256Mi" }),
    );
    let containers = half["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({ "name": "free", "resources": {} }));
    reading.pods = vec![serde_json::from_value(half).unwrap()];
    let line = compute(&reading);
    for resource in ["cpu", "memory"] {
        let mut lines = line.resources.iter();
        let found = lines.find(|line| line.resource == resource).unwrap();
        let limits = (found.limits, found.pods_without_limit);
        assert_eq!(limits, (Some(0), Some(1)), "{resource}");
    }
}

#[test]
fn a_node_that_does_not_answer_is_not_drawn_as_free() {
    let mut reading = reading();
    reading.config = Err("no answer in time".to_owned());
    reading.samples.clear();
    reading.no_sample = Some("no answer in time".to_owned());
    let report = Report::new(vec![compute(&reading)]);
    let text = render(&report, Detail::Brief, screen(80, true));
    let is_drawn_free = |line: &&str| line.starts_with("memory") && line.contains('░');
    assert!(!text.lines().any(|line| is_drawn_free(&line)), "{text}");
    assert!(text.contains("memory    ????"), "{text}");
    let row = render(&report, Detail::Overview, screen(80, true));
    assert!(row.contains("not known: no figures"), "{row}");
}

/// A node far from thresholds, one close to a threshold, one that does not answer, and one under
/// memory pressure.
fn fleet() -> Report {
    let named = |name: &str, mut reading: Reading| {
        reading.node.metadata.name = Some(name.to_owned());
        compute(&reading)
    };
    let lines = |left: u64, seconds| {
        let mut reading = reading();
        let line = ("memory.available", true, 100 * MI, left, 4 * GI, seconds);
        reading.lines = Some(served(&[line]));
        reading
    };
    let mut silent = reading();
    silent.samples.clear();
    silent.no_sample = Some("no answer in time".to_owned());
    Report::new(vec![
        named("calm", lines(2 * GI, None)),
        named("soon", lines(300 * MI, Some(95))),
        named("silent", silent),
        named("short", lines(60 * MI, Some(0))),
    ])
}

#[test]
fn several_nodes_have_a_row_each_the_one_in_most_danger_first() {
    let text = render(&fleet(), Detail::Overview, screen(80, true));
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["NODE", "short", "soon", "silent", "calm"]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("overview_80", text);
    insta::assert_snapshot!(
        "overview_140",
        render(&fleet(), Detail::Overview, screen(140, true))
    );
}

#[test]
fn no_more_lines_are_drawn_than_the_screen_has() {
    let many = Report::new(vec![compute(&reading()); 60]);
    let lines = render_to_fit(&many, Detail::Overview, screen(80, true), 22);
    assert_eq!(lines.len(), 22);
    assert_eq!(lines[21], "and 40 more nodes");
    assert!(lines[0].starts_with("NODE"), "the first nodes are seen");
    let lines = render_to_fit(&many, Detail::Brief, screen(80, true), 22);
    assert_eq!(lines.len(), 22);
    let all = render_to_fit(&many, Detail::Brief, screen(80, true), 10_000);
    let last = &all[all.len() - 1];
    assert!(last.contains("H hard threshold"), "{last}");
}
