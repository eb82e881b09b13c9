//! The system clock is set while pods run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use plimsoll_client::testing::{VIRTUAL_START, clock_that_is_set};
use serde_json::json;

use crate::world::{World, pod, simple};

const HOUR: i64 = 60 * 60;
const YEAR: i64 = 365 * 24 * HOUR;

fn world() -> (Arc<AtomicI64>, World) {
    let (ahead, clock) = clock_that_is_set();
    (ahead, World::with_clock(clock))
}

/// A year ahead, an hour behind, 1970, and correct again.
const JUMPS: [i64; 4] = [YEAR, -HOUR, -VIRTUAL_START, 0];

#[tokio::test(start_paused = true)]
async fn probes_continue_when_the_clock_is_set() {
    let (ahead, world) = world();
    let probe = |numbers: serde_json::Value| {
        let mut probe = numbers;
        probe["exec"] = json!({"command": ["probe"]});
        probe
    };
    world.apply(pod(
        "web",
        json!({"containers": [{
            "name": "a", "image": "sleep:1",
            "readinessProbe": probe(json!({"periodSeconds": 5, "failureThreshold": 1})),
            // The probe has not run yet, and would fail.
            "livenessProbe": probe(json!({"initialDelaySeconds": 7200, "failureThreshold": 1})),
        }]}),
    ));
    world.until_phase("web", "Running").await;
    for jump in JUMPS {
        ahead.store(jump, Ordering::Relaxed);
        for (code, is_ready) in [(1, false), (0, true)] {
            world.runtime.set_exec_exit_code(code);
            tokio::time::sleep(Duration::from_secs(11)).await;
            let container = world.container("web", "a");
            assert_eq!(container.ready, is_ready, "ahead by {jump}");
            assert_eq!(container.restart_count, 0, "ahead by {jump}");
        }
        // A container started now is probed as well.
        let name = format!("new-{jump}");
        let container = json!({
            "name": "a", "image": "sleep:1",
            "readinessProbe": probe(json!({"initialDelaySeconds": 5})),
        });
        world.apply(pod(&name, json!({"containers": [container]})));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!world.container(&name, "a").ready, "ahead by {jump}");
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert!(world.container(&name, "a").ready, "ahead by {jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_containers_restart_when_the_clock_is_set() {
    let (ahead, world) = world();
    world.apply(simple("bad", "exit-1:1", "Always"));
    world.apply(simple("unpulled", "missing:1", "Always"));
    let count = |verb: &'static str| {
        let log = world.runtime.log();
        log.iter().filter(|line| line.starts_with(verb)).count()
    };
    for jump in JUMPS {
        tokio::time::sleep(Duration::from_secs(60)).await;
        ahead.store(jump, Ordering::Relaxed);
        let (starts, pulls) = (count("start "), count("pull"));
        // The longest back-off is five minutes, plus the interval of checks.
        tokio::time::sleep(Duration::from_secs(400)).await;
        assert!(count("start ") > starts, "ahead by {jump}");
        assert!(count("pull") > pulls, "ahead by {jump}");
        assert!(count("start ") < starts + 12, "ahead by {jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn active_deadline_is_unaffected_by_clock_changes() {
    for jump in JUMPS {
        let (ahead, world) = world();
        world.apply(pod(
            "limited",
            json!({
                "activeDeadlineSeconds": 600,
                "containers": [{"name": "a", "image": "sleep:1"}],
            }),
        ));
        world.until_phase("limited", "Running").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        ahead.store(jump, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(530)).await;
        assert_eq!(world.phase("limited"), "Running", "ahead by {jump}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(world.phase("limited"), "Failed", "ahead by {jump}");
        let reason = world.status("limited").reason;
        assert_eq!(reason.as_deref(), Some("DeadlineExceeded"));
    }
}
