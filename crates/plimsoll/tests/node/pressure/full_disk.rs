//! A node whose pods, images and logs share one small disk.

use plimsoll_testkit::images::{Image, Layer, Tree};
use plimsoll_testkit::vm::slowness;
use serde_json::{Value, json};

use super::disk::{Disk, MIB};
use super::{NODE_EVENTS, condition, configured, holder, is_disrupted, with_scratch};
use crate::cluster::{Cluster, NODE, Runtime, containerd_place, data_dir};
use crate::manifest::{WAIT, container, pod};

/// An unused image.
const UNUSED: &str = "plimsoll.test/unused:1";

const PRESSURE: (&str, &str) = ("DiskPressure", "node.kubernetes.io/disk-pressure");

/// A node on a disk of its own with these thresholds; the pressure ends as soon as the node has
/// rejected pods.
fn start(runtime: Runtime, lines: &Value) -> (Cluster, Disk) {
    let mut disk = None;
    let cluster = Cluster::start_with(runtime, |folder| {
        let data = data_dir(folder);
        disk = Some(Disk::mount(folder, &data, 160, 4096));
        let containerd = data.join("containerd");
        std::fs::create_dir(&containerd).expect("the disk is ours");
        let place = containerd_place(folder);
        std::os::unix::fs::symlink(containerd, place).expect("the folder is ours");
        let settings = json!({
            "evictionHard": lines,
            "evictionPressureTransitionPeriod": format!("{}s", 5 * slowness()),
            "imageMinimumGCAge": "1s",
        });
        configured(folder, &settings)
    });
    (cluster, disk.expect("it was mounted"))
}

/// An image of some MiB.
pub(super) fn large_image(mebibytes: u64) -> Image {
    let size = usize::try_from(mebibytes * MIB).expect("a small number");
    let tree = Tree::new().file("large", 0o644, &vec![1; size]);
    Image::new(vec![Layer::gzip(tree.into_tar())])
}

fn has_image(node: &Value, name: &str) -> bool {
    node["status"]["images"].to_string().contains(name)
}

#[test]
#[ignore = "tier: root"]
fn images_and_dead_containers_are_removed_before_pods_embedded() {
    images_and_dead_containers_are_removed_before_pods(Runtime::Embedded);
}

#[test]
#[ignore = "tier: root"]
fn images_and_dead_containers_are_removed_before_pods_containerd() {
    images_and_dead_containers_are_removed_before_pods(Runtime::Containerd);
}

fn images_and_dead_containers_are_removed_before_pods(runtime: Runtime) {
    let line = 40 * MIB;
    let (mut cluster, disk) = start(runtime, &json!({ "nodefs.available": "40Mi" }));
    cluster.import(&large_image(16), UNUSED);
    // Images that exist from the beginning are old enough to be removed.
    cluster.interrupt();
    cluster.start_again();
    let wrote = "dd if=/dev/zero of=/f bs=1M count=8";
    let mut ended = pod("ended", &[container("main", wrote)]);
    ended["spec"]["restartPolicy"] = json!("Never");
    cluster.create(&ended);
    cluster.until_phase("ended", "Succeeded");
    let mut keeper = holder("keeper", 10);
    keeper["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "ephemeral-storage": "30Mi" } });
    cluster.run_holder(&keeper, 10);
    cluster.run_holder(&holder("greedy", 12), 12);
    cluster.run_holder(&holder("small", 2), 2);
    cluster.until_object(&format!("node {NODE}"), "with the image", |node| {
        has_image(node, UNUSED)
    });

    // Removing unused images is enough.
    disk.leave_bytes(line - 4 * MIB);
    let node = cluster.until_pressed(PRESSURE.0, PRESSURE.1, true);
    let pressed = condition(&node, PRESSURE.0);
    assert_eq!(pressed["reason"], "KubeletHasDiskPressure");
    assert_eq!(pressed["message"], "kubelet has disk pressure");
    cluster.mentions(NODE_EVENTS, "Attempting to reclaim ephemeral-storage");
    // An old containerd also loses the sandbox image, and cannot start other sandboxes.
    let late: &[&str] = match runtime {
        Runtime::Embedded => &["late"],
        Runtime::Containerd => &[],
    };
    for name in late {
        cluster.create(&pod(name, &[container("main", WAIT)]));
        cluster.until_kept_away(name);
    }
    cluster.until_object(&format!("node {NODE}"), "without the image", |node| {
        !has_image(node, UNUSED)
    });
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, false);
    for name in late {
        cluster.until_running(&json!(name));
    }
    cluster.run_on(&["keeper", "greedy", "small"]);

    // Nothing else can be reclaimed: only the pod with the largest excess is evicted.
    disk.leave_bytes(line - 4 * MIB);
    let (greedy, message) = cluster.until_evicted("greedy");
    let begins =
        "The node was low on resource: ephemeral-storage. Threshold quantity: 40Mi, available: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(is_disrupted(&greedy), "{greedy:#}");
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, false);
    cluster.run_on(&["keeper", "small"]);
    cluster.run_on(late);
}

/// Creates empty files, and waits.
fn makes_files(count: u32) -> String {
    format!("i=0; while [ $i -lt {count} ]; do : > /scratch/$i; i=$((i+1)); done; {WAIT}")
}

#[test]
#[ignore = "tier: root"]
fn pod_that_wrote_last_is_evicted() {
    let line = 40 * MIB;
    let (cluster, disk) = start(Runtime::Embedded, &json!({ "nodefs.available": "40Mi" }));
    cluster.run_holder(&holder("early", 10), 10);
    // So many files that they are not measured every second, unless a pod must be evicted.
    cluster.run_until_known(
        &with_scratch("late", &makes_files(1200)),
        "inodesUsed",
        1200,
    );
    cluster.kubectl("exec late -- dd if=/dev/zero of=/scratch/f bs=1M count=20");
    disk.leave_bytes(line - 4 * MIB);
    cluster.until_evicted("late");
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, false);
    cluster.run_on(&["early"]);
}

#[test]
#[ignore = "tier: root"]
fn pod_with_most_files_is_evicted_for_inodes() {
    let (cluster, mut disk) = start(Runtime::Embedded, &json!({ "nodefs.inodesFree": "600" }));
    cluster.run_until_known(&with_scratch("few", &makes_files(10)), "inodesUsed", 10);
    cluster.run_until_known(&with_scratch("many", &makes_files(300)), "inodesUsed", 300);
    disk.leave_inodes(550);
    let (evicted, message) = cluster.until_evicted("many");
    let begins = "The node was low on resource: inodes. Threshold quantity: 600, available: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(is_disrupted(&evicted), "{evicted:#}");
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, false);
    cluster.run_on(&["few"]);
}
