//! Time and memory.

use std::fs;
use std::time::{Duration, Instant};

use plimsoll_runtime::Runtime;

use crate::scene::{Scene, shell};

/// Generous, for debug builds on busy and emulated machines.
const SOON: Duration = Duration::from_secs(10);

pub(crate) async fn a_pod_starts_soon(scene: &mut Scene) {
    scene.network.pod_cidr = Some("10.231.7.0/24".to_owned());
    scene.end();
    scene.start().await;
    let mut times = Vec::new();
    for _ in 0..10 {
        let pod = scene.pod();
        let start = Instant::now();
        let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
        let ready = start.elapsed();
        let config = shell("main", "exec sleep 1000");
        let id = scene
            .runtime()
            .create_container(&sandbox, &config, &pod)
            .await
            .unwrap();
        let created = start.elapsed();
        scene.runtime().start_container(&id).await.unwrap();
        times.push((start.elapsed(), ready, created));
    }
    times.sort();
    let (median, ready, created) = times[times.len() / 2];
    eprintln!("median: running {median:?}, sandbox {ready:?}, created {created:?}");
    assert!(median < SOON, "{median:?}");
}

pub(crate) async fn monitors_are_small(scene: &mut Scene) {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    for file in glob(scene, "monitor.json")
        .into_iter()
        .chain(glob(scene, "pause.json"))
    {
        let text = fs::read_to_string(&file).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", record["pid"])).unwrap();
        let of = |name: &str| -> u64 {
            let line = rollup.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let private = of("Private_Clean:") + of("Private_Dirty:");
        eprintln!(
            "{}: {} KiB private, {} KiB in all",
            file.display(),
            private,
            of("Rss:")
        );
        assert!(private < 3 * 1024, "{} has {private} KiB", file.display());
    }
}

fn glob(scene: &Scene, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for kind in ["sandboxes", "containers"] {
        for entry in fs::read_dir(scene.root().join(kind)).unwrap() {
            let path = entry.unwrap().path().join(name);
            if path.exists() {
                found.push(path);
            }
        }
    }
    found
}
