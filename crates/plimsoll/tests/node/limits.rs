//! Limits and requests take effect.

use std::time::Duration;

use plimsoll_testkit::cgroup::{is_unified, read};
use plimsoll_testkit::waiting::{until, until_within};
use serde_json::{Value, json};

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{container, container_id, pod, sized, status};

on_both_runtimes!(
    container_above_its_memory_limit_is_oom_killed,
    busy_pods_share_a_cpu_by_their_requests,
    a_cpu_limit_is_kept,
);

/// Allocates memory until it is killed.
const HOG: &str = "dd if=/dev/zero of=/dev/null bs=512M count=1";

fn container_above_its_memory_limit_is_oom_killed(cluster: &mut Cluster) {
    let mut hog = container("hog", &format!("echo begins; exec {HOG}"));
    hog["resources"] = json!({ "limits": { "memory": "32Mi" } });
    let neighbour = sized("neighbour", &json!({}));
    let mut hogs = pod("hogs", &[hog, neighbour]);
    hogs["spec"]["restartPolicy"] = json!("Never");
    cluster.create(&hogs);
    let hogs = cluster.until_object("pod hogs", "killed", |pod| {
        let statuses = pod["status"]["containerStatuses"].as_array();
        let mut statuses = statuses.into_iter().flatten();
        statuses.any(|status| status["state"]["terminated"].is_object())
    });
    let ended = &status(&hogs, "hog")["state"]["terminated"];
    assert_eq!(ended["reason"], "OOMKilled", "{ended}");
    assert_eq!(ended["exitCode"], 137, "{ended}");
    // No other pod was affected.
    assert_eq!(status(&hogs, "neighbour")["ready"], true, "{hogs:#}");
    assert_eq!(status(&hogs, "neighbour")["restartCount"], 0);
    cluster.mentions("get pods", "OOMKilled");
    cluster.shows("logs hogs -c hog", "begins\n");
}

/// Requests of 500m and 250m for a core that both pods use fully.
fn busy_pods_share_a_cpu_by_their_requests(cluster: &mut Cluster) {
    let busy = |name: &str, request: &str| {
        let mut main = container("main", "exec taskset 1 sh -c 'while true; do true; done'");
        main["resources"] = json!({ "requests": { "cpu": request } });
        pod(name, &[main])
    };
    cluster.create(&busy("large", "500m"));
    cluster.create(&busy("small", "250m"));
    let large = used_cpu_of(cluster, "large");
    let small = used_cpu_of(cluster, "small");
    // Until both have used enough cpu time since both are busy. Other processes slow both alike.
    until("both are busy", || match (large(), small()) {
        (0, _) | (_, 0) => Err("not yet".to_owned()),
        _ => Ok(()),
    });
    let before = (large(), small());
    let patience = Duration::from_secs(180);
    let (large, small) = until_within(patience, "both have used the cpu", || {
        let used = (large() - before.0, small() - before.1);
        let is_enough = used.0 + used.1 > 3_000_000_000;
        if is_enough {
            Ok(used)
        } else {
            Err(format!("{used:?}"))
        }
    });
    let percent = large * 100 / small;
    assert!((170..=230).contains(&percent), "{large} : {small} ns");
}

/// Reads the nanoseconds of cpu that a pod's container has used.
fn used_cpu_of(cluster: &Cluster, name: &str) -> impl Fn() -> u64 + use<> {
    let pod = cluster.until_running(&json!(name));
    let path = cgroup(cluster, &pod);
    move || {
        if !is_unified() {
            return read("cpuacct", &path, "cpuacct.usage").parse().unwrap();
        }
        let stat = read("cpu", &path, "cpu.stat");
        let usage = stat
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        usage.unwrap().parse::<u64>().unwrap() * 1000
    }
}

/// The cgroup of the container of a burstable pod.
fn cgroup(cluster: &Cluster, pod: &Value) -> String {
    let (root, id) = (cluster.cgroup_root(), container_id(pod, "main"));
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    format!("{root}/kubepods/burstable/pod{uid}/{id}")
}

fn a_cpu_limit_is_kept(cluster: &mut Cluster) {
    let mut main = container("main", "while true; do true; done");
    main["resources"] = json!({ "limits": { "cpu": "100m" } });
    let pod = cluster.run(&pod("p", &[main]));
    let path = cgroup(cluster, &pod);
    let stat = |name: &str| -> u64 {
        let stat = read("cpu", &path, "cpu.stat");
        let found = stat.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap().trim().parse().unwrap()
    };
    let periods = until("it has been throttled", || {
        let (throttled, periods) = (stat("nr_throttled"), stat("nr_periods"));
        let is_enough = throttled > 10;
        if is_enough {
            Ok(periods)
        } else {
            Err(format!("{throttled} of {periods}"))
        }
    });
    // A tenth of each period of 0.1 s, plus slices that are returned late.
    let used = used_cpu_of(cluster, "p")() / 1_000_000;
    let periods_now = stat("nr_periods").max(periods);
    assert!(
        used < periods_now * 10 * 13 / 10 + 50,
        "{used} ms in {periods_now} periods"
    );
}
