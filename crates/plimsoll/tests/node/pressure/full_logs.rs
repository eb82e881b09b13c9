//! Logs of running containers are rotated without loss for readers.

use plimsoll_testkit::waiting::until;
use serde_json::json;

use super::configured;
use crate::cluster::{Cluster, Runtime};
use crate::manifest::{container, pod};

#[test]
#[ignore = "tier: root"]
fn a_full_log_is_rotated_embedded() {
    a_full_log_is_rotated(Runtime::Embedded);
}

#[test]
#[ignore = "tier: root"]
fn a_full_log_is_rotated_containerd() {
    a_full_log_is_rotated(Runtime::Containerd);
}

fn a_full_log_is_rotated(runtime: Runtime) {
    let cluster = Cluster::start_with(runtime, |folder| {
        let settings = json!({
            "evictionHard": { "memory.available": "100Mi" },
            "containerLogMaxSize": "4Ki",
            "containerLogMaxFiles": 3,
        });
        configured(folder, &settings)
    });
    let talks = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.05; done";
    let talks = cluster.run(&pod("talks", &[container("main", talks)]));
    let uid = talks["metadata"]["uid"].as_str().expect("an id");
    let folder = cluster.data_dir().join("log/pods");
    let folder = folder.join(format!("default_talks_{uid}/main"));
    let names = || {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    // Once rotated, then the older one is compressed, and no more than three stay.
    until("there are three logs", || match names().as_slice() {
        [_, old, _] if old.ends_with(".gz") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let read = || {
        let last = cluster.kubectl("logs talks --tail=1");
        last.trim().parse::<u64>().unwrap_or_default()
    };
    let before = read();
    until("the log continues", || match read() {
        now if now > before => Ok(()),
        now => Err(now.to_string()),
    });
}
