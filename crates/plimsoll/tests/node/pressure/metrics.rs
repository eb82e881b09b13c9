//! Every series of the agent, and what moves it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_testkit::images::Image;
use plimsoll_testkit::registry::Registry;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use super::configured;
use super::disk::{Disk, MIB};
use super::full_disk::large_image;
use crate::cluster::{Cluster, NODE, Runtime, data_dir};
use crate::manifest::{WAIT, container, pod, sized};

const UNUSED: &str = "plimsoll.test/unused:1";

const PAGES: [&str; 4] = [
    "metrics",
    "metrics/resource",
    "metrics/cadvisor",
    "metrics/probes",
];

/// Series that are zero on a machine where all is well, and why.
const MAY_BE_ZERO: [(&str, &str); 25] = [
    ("container_cpu_cfs_burst_", "no pod has a burst"),
    (
        "container_cpu_cfs_throttled_",
        "no pod has used up its limit",
    ),
    (
        "container_fs_reads_",
        "all that is read is in the page cache",
    ),
    (
        "container_fs_writes_",
        "what is written is not yet on the disk",
    ),
    ("container_memory_failcnt", "no pod is at its limit"),
    ("container_memory_mapped_file", "no pod has to map a file"),
    ("container_memory_swap", "the machine may have no swap"),
    (
        "container_memory_total_",
        "what is cached is the kernel's choice",
    ),
    (
        "container_network_receive_errors_",
        "the bridge loses nothing",
    ),
    (
        "container_network_receive_packets_dropped_",
        "the bridge loses nothing",
    ),
    (
        "container_network_transmit_errors_",
        "the bridge loses nothing",
    ),
    (
        "container_network_transmit_packets_dropped_",
        "the bridge loses nothing",
    ),
    ("container_oom_events_", "the kernel kills nothing"),
    ("container_pressure_", "the machine may be idle"),
    ("container_spec_memory_", "no pod has to have a limit"),
    ("container_threads_max", "no pod has to have a limit"),
    ("container_swap_", "the machine may have no swap"),
    ("node_swap_", "the machine may have no swap"),
    ("pod_swap_", "the machine may have no swap"),
    ("resource_scrape_error", "every scrape works"),
    ("container_scrape_error", "every scrape works"),
    ("machine_scrape_error", "every scrape works"),
    ("machine_swap_", "the machine may have no swap"),
    ("plimsoll_task_restarts", "no task of the agent fails"),
    ("reflector_decode_errors", "every object can be read"),
];

/// The series of `/metrics`, as the agent registers them. One without labels has a sample from the start,
/// one with labels is exposed with its first sample.
fn registered() -> impl Iterator<Item = String> {
    let source = include_str!("../../../../node/src/stats/metrics/kubelet.rs");
    let (_, table) = source
        .split_once("\nmetrics! {")
        .expect("the table of series");
    table.lines().filter_map(|line| {
        let name = line.trim().strip_prefix('"')?.strip_suffix("\",")?;
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then(|| format!("kubelet_{name}"))
    })
}

/// The samples of all pages by series, each with its labels.
#[derive(Debug, Default)]
struct Scrape {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    fn of(cluster: &Cluster) -> Scrape {
        let mut scrape = Scrape::default();
        for page in PAGES {
            let path = format!("/api/v1/nodes/{NODE}/proxy/{page}");
            scrape.read(&cluster.kubectl(&format!("get --raw {path}")));
        }
        scrape
    }

    fn read(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("# TYPE ") {
                let (name, kind) = line.split_once(' ').expect("a name and a type");
                self.types.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let at = line.rfind('}').map_or(line.find(' '), |at| Some(at + 1));
                let (series, rest) = line.split_at(at.expect("a series and a value"));
                let value = rest.split_whitespace().next().expect("a value");
                let value = value.parse().expect("a number");
                self.samples.insert(series.to_owned(), value);
            }
        }
    }

    /// The samples of a series: of a histogram, how much was observed.
    fn of_series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        let is_histogram = self.types.get(name).is_some_and(|kind| kind == "histogram");
        let wanted = if is_histogram {
            format!("{name}_count")
        } else {
            name.to_owned()
        };
        self.samples.iter().filter_map(move |(series, value)| {
            let own = series.split('{').next().unwrap_or_default();
            (own == wanted).then_some((series.as_str(), *value))
        })
    }

    /// The series that never moved: counters that have counted nothing since `before`, gauges that
    /// show nothing.
    fn unmoved(&self, before: &Scrape) -> String {
        let mut unmoved = String::new();
        for name in registered().filter(|name| !self.types.contains_key(name)) {
            writeln!(unmoved, "{name} (not exposed)").expect("a text");
        }
        for (name, kind) in &self.types {
            if MAY_BE_ZERO.iter().any(|(start, _)| name.starts_with(start)) {
                continue;
            }
            let has_moved = self.of_series(name).any(|(series, value)| {
                let earlier = before.samples.get(series).copied().unwrap_or_default();
                match kind.as_str() {
                    "gauge" => value != 0.0 || earlier != 0.0,
                    _ => value > earlier,
                }
            });
            if !has_moved {
                writeln!(unmoved, "{name} ({kind})").expect("a text");
            }
        }
        unmoved
    }
}

#[test]
#[ignore = "tier: root"]
fn every_series_of_the_agent_moves() {
    let mut disk = None;
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let images = data_dir(folder).join("images");
        disk = Some(Disk::mount(folder, &images, 96, 4096));
        let manifests = folder.join("manifests");
        std::fs::create_dir(&manifests).expect("the folder is ours");
        let settings = json!({
            "evictionHard": { "imagefs.available": "30Mi" },
            "evictionPressureTransitionPeriod": "2s",
            "imageMinimumGCAge": "1s",
            "staticPodPath": manifests,
        });
        let mut arguments = configured(folder, &settings);
        arguments.extend(["--capacity", "cpu=2"].map(str::to_owned));
        arguments
    });
    let disk = disk.expect("it was mounted");
    let before = Scrape::of(&cluster);

    let fixed = pod("static", &[container("main", WAIT)]);
    let manifest = cluster.folder().join("manifests/static.json");
    std::fs::write(manifest, fixed.to_string()).expect("the folder is ours");
    pull(&cluster);
    refuse(&cluster);
    probe(&cluster);
    preempt(&cluster);
    cluster.create(&{
        let mut ends = pod("ends", &[container("main", "exit 0")]);
        ends["spec"]["restartPolicy"] = json!("Never");
        ends
    });
    cluster.until_phase("ends", "Succeeded");
    cluster.kubectl("delete pod ends");
    cluster.until_running(&json!(format!("static-{NODE}")));
    // With labels of pods: while they run.
    let busy = Scrape::of(&cluster);

    cluster.import(&large_image(12), UNUSED);
    let wrote = format!("dd if=/dev/zero of=/f bs=1M count=12; {WAIT}");
    cluster.run_holder(&pod("writer", &[container("main", &wrote)]), 12);
    // Removing the image is enough at first, and later nothing is but the pod's end.
    for series in [
        "kubelet_image_garbage_collected_total",
        "kubelet_eviction_stats_age_seconds",
    ] {
        disk.leave_bytes(20 * MIB);
        until(&format!("{series} moves"), || {
            match Scrape::of(&cluster).of_series(series).next() {
                Some(_) => Ok(()),
                None => Err("no sample".to_owned()),
            }
        });
    }
    let mut after = Scrape::of(&cluster);
    after.types.extend(busy.types);
    for (series, value) in busy.samples {
        after.samples.entry(series).or_insert(value);
    }
    let unmoved = after.unmoved(&before);
    assert!(unmoved.is_empty(), "nothing feeds\n{unmoved}");
}

fn with_image(name: &str, image: &str) -> Value {
    let mut main = container("main", WAIT);
    main["image"] = json!(image);
    pod(name, &[main])
}

/// Images that can be pulled, and that cannot.
fn pull(cluster: &Cluster) {
    let registry = Registry::start();
    let name = registry.push("tests/busybox", "1", &Image::busybox());
    cluster.run(&with_image("pulled", &name));
    let missing = format!("{}/tests/busybox:2", registry.address());
    cluster.create(&with_image("missing", &missing));
    cluster.until_object("pod missing", "held back", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "ImagePullBackOff"
    });
}

/// A pod that the node does not admit, and one whose sandbox cannot be made.
fn refuse(cluster: &Cluster) {
    let request = json!({ "requests": { "cpu": "100" } });
    let mut large = pod("large", &[sized("main", &request)]);
    large["spec"]["nodeName"] = json!(NODE);
    cluster.create(&large);
    let large = cluster.until_phase("large", "Failed");
    assert_eq!(large["status"]["reason"], "OutOfcpu", "{large:#}");
    let mut wrong = pod("wrong", &[container("main", WAIT)]);
    let sysctl = json!({ "name": "kernel.shm_rmid_forced", "value": "7" });
    wrong["spec"]["securityContext"] = json!({ "sysctls": [sysctl] });
    cluster.create(&wrong);
    cluster.mentions("events --for pod/wrong", "Failed to create pod sandbox");
    cluster.kubectl("delete pod wrong missing large --now");
}

fn probe(cluster: &Cluster) {
    let mut main = container("main", WAIT);
    main["livenessProbe"] = json!({ "exec": { "command": ["true"] }, "periodSeconds": 1 });
    cluster.run(&pod("probed", &[main]));
    until("the probe is counted", || {
        let found = Scrape::of(cluster);
        match found.of_series("prober_probe_total").next() {
            Some(_) => Ok(()),
            None => Err("no sample".to_owned()),
        }
    });
}

fn preempt(cluster: &Cluster) {
    let asking = |name: &str| {
        let request = json!({ "requests": { "cpu": "1500m" } });
        pod(name, &[sized("main", &request)])
    };
    cluster.run(&asking("humble"));
    let mut critical = asking("critical");
    critical["spec"]["priorityClassName"] = json!("system-node-critical");
    // The scheduler would have preempted pods itself.
    critical["spec"]["nodeName"] = json!(NODE);
    cluster.run(&critical);
    let humble = cluster.until_phase("humble", "Failed");
    assert_eq!(humble["status"]["reason"], "Preempting", "{humble:#}");
    cluster.kubectl("delete pod critical humble --now");
}
