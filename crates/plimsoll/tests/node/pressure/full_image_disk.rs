//! Nodes whose images have a disk of their own.

use serde_json::json;

use super::disk::{Disk, MIB};
use super::full_disk::large_image;
use super::{configured, holder, is_disrupted};
use crate::cluster::{Cluster, NODE, Runtime, data_dir};
use crate::manifest::{WAIT, container, pod};

const UNUSED: &str = "plimsoll.test/unused:1";

/// With the embedded runtime, writable layers are on the disk of the images.
#[test]
#[ignore = "tier: root"]
fn full_image_disk_evicts_pod_with_largest_writable_layer() {
    let mut disk = None;
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let images = data_dir(folder).join("images");
        disk = Some(Disk::mount(folder, &images, 96, 4096));
        let settings = json!({
            "evictionHard": { "imagefs.available": "40Mi" },
            "evictionPressureTransitionPeriod": "2s",
            "imageMinimumGCAge": "1s",
        });
        configured(folder, &settings)
    });
    let disk = disk.expect("it was mounted");
    // Usage on the other disk does not count.
    cluster.run_holder(&holder("elsewhere", 30), 30);
    let wrote = format!("dd if=/dev/zero of=/f bs=1M count=12; {WAIT}");
    cluster.run_holder(&pod("writer", &[container("main", &wrote)]), 12);
    disk.leave_bytes(36 * MIB);
    let (writer, message) = cluster.until_evicted("writer");
    let begins =
        "The node was low on resource: ephemeral-storage. Threshold quantity: 40Mi, available: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(is_disrupted(&writer), "{writer:#}");
    cluster.until_pressed("DiskPressure", "node.kubernetes.io/disk-pressure", false);
    cluster.run_on(&["elsewhere"]);
}

/// With containerd on the machine's disk and pods on a small one, removing images does not help.
#[test]
#[ignore = "tier: root"]
fn full_pod_disk_removes_no_images() {
    let mut disk = None;
    let cluster = Cluster::start_with(Runtime::Containerd, |folder| {
        disk = Some(Disk::mount(folder, &data_dir(folder), 96, 4096));
        let settings = json!({
            "evictionHard": { "nodefs.available": "30Mi" },
            "evictionPressureTransitionPeriod": "2s",
            "imageMinimumGCAge": "1s",
        });
        configured(folder, &settings)
    });
    let disk = disk.expect("it was mounted");
    cluster.import(&large_image(1), UNUSED);
    cluster.run_holder(&holder("greedy", 12), 12);
    cluster.run_holder(&holder("small", 2), 2);
    disk.leave_bytes(26 * MIB);
    let (greedy, message) = cluster.until_evicted("greedy");
    let begins =
        "The node was low on resource: ephemeral-storage. Threshold quantity: 30Mi, available: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(is_disrupted(&greedy), "{greedy:#}");
    cluster.until_pressed("DiskPressure", "node.kubernetes.io/disk-pressure", false);
    cluster.run_on(&["small"]);
    cluster.until_object(&format!("node {NODE}"), "with the image", |node| {
        node["status"]["images"].to_string().contains(UNUSED)
    });
}
