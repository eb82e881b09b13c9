//! A node under process id pressure.

use serde_json::json;

use super::{NODE_EVENTS, configured, is_disrupted};
use crate::cluster::{Cluster, Runtime};
use crate::manifest::{WAIT, container, pod};

/// The cgroup of all pods simulates the machine, with this number of process ids.
const CAPACITY: &str = "pid=200";

#[test]
#[ignore = "tier: root"]
fn pod_with_most_processes_is_killed_at_once() {
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let settings = json!({
            "evictionHard": { "pid.available": "100" },
            "evictionPressureTransitionPeriod": "2s",
        });
        let mut arguments = configured(folder, &settings);
        arguments.extend(["--capacity".to_owned(), CAPACITY.to_owned()]);
        arguments
    });
    let forks = |count: u32| {
        format!("i=0; while [ $i -lt {count} ]; do sleep 600 & i=$((i+1)); done; {WAIT}")
    };
    cluster.run(&pod("few", &[container("main", &forks(5))]));
    cluster.create(&pod("many", &[container("main", &forks(120))]));
    let (many, message) = cluster.until_evicted("many");
    let begins = "The node was low on resource: pids. Threshold quantity: 100, available: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(is_disrupted(&many), "{many:#}");
    cluster.until_pressed("PIDPressure", "node.kubernetes.io/pid-pressure", false);
    cluster.run_on(&["few"]);
    for printed in ["NodeHasInsufficientPID", "Attempting to reclaim pids"] {
        cluster.mentions(NODE_EVENTS, printed);
    }
}
