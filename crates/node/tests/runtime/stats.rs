//! Usage of containers and images.

use crate::scene::{Scene, named, script, until};

pub(crate) async fn stats_report_usage_per_container(scene: &Scene) {
    let config = named(
        script("head -c 3000000 /dev/zero > /data; exec sleep 1000"),
        "web",
        2,
    );
    let id = scene.start_alone(&config).await;
    let usage = until("usage is reported", async || {
        let all = scene.runtime().list_container_stats().await.unwrap();
        let own = all.into_iter().find(|stats| {
            let attributes = stats.attributes.as_ref();
            attributes.is_some_and(|attributes| attributes.id == id)
        })?;
        // Runtimes measure disk usage only periodically.
        let layer = own.writable_layer.as_ref()?.used_bytes?;
        (layer.value >= 3_000_000).then_some(own)
    })
    .await;
    let attributes = usage.attributes.unwrap();
    assert_eq!(attributes.metadata, config.metadata);
    assert_eq!(attributes.labels, config.labels);
    let layer = usage.writable_layer.unwrap();
    assert!(!layer.fs_id.unwrap().mountpoint.is_empty());
    assert!(layer.inodes_used.unwrap().value >= 1);
    assert!(usage.cpu.unwrap().usage_core_nano_seconds.unwrap().value > 0);
    assert!(usage.memory.unwrap().working_set_bytes.unwrap().value > 0);
}

pub(crate) async fn image_file_systems_are_reported(scene: &Scene) {
    let usage = until("usage is reported", async || {
        let info = scene.runtime().image_fs_info().await.unwrap();
        let usage = info.image_filesystems.into_iter().next()?;
        (usage.used_bytes?.value > 1_000_000).then_some(usage)
    })
    .await;
    let mountpoint = usage.fs_id.unwrap().mountpoint;
    assert!(std::path::Path::new(&mountpoint).is_dir(), "{mountpoint}");
    assert!(usage.timestamp > 0);
}
