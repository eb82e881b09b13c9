//! What pods hold on disk: writable layers, logs, volumes.

use std::path::Path;

use plimsoll_core::eviction::summary::{FsStats, PodStats, PvcReference, VolumeStats};

use super::collector::Collector;
use super::inventory::{Pod, RootFs, Volume, VolumeMeasure};
use super::sums::add_usage;

impl Collector {
    /// A writable layer, on the file system that writable layers are on.
    pub(super) fn root_fs_stats(&self, root_fs: &RootFs) -> FsStats {
        let (used_bytes, inodes_used, time) = match root_fs {
            RootFs::Unknown => (None, None, None),
            RootFs::Reported {
                used_bytes,
                inodes_used,
                time,
            } => (*used_bytes, *inodes_used, *time),
            RootFs::Directory(path) => match self.disk.get(path) {
                Some(measured) => (
                    Some(measured.usage.bytes),
                    Some(measured.usage.inodes),
                    Some(measured.time),
                ),
                None => (None, None, None),
            },
        };
        let filling = &self.node.filling;
        let fs = filling.container_fs.or(filling.image_fs);
        let time = time.or(filling.time);
        FsStats {
            time,
            used_bytes,
            inodes_used,
            ..fs.map_or(FsStats::default(), |fs| fs.around(time))
        }
    }

    /// A directory or file on the nodefs.
    pub(super) fn on_node_fs(&self, path: Option<&Path>) -> Option<FsStats> {
        let (path, fs) = (path?, self.node.filling.node_fs?);
        let measured = self.disk.get(path);
        let time = measured.map(|measured| measured.time);
        Some(FsStats {
            used_bytes: measured.map(|measured| measured.usage.bytes),
            inodes_used: measured.map(|measured| measured.usage.inodes),
            ..fs.around(time.or(self.node.filling.time))
        })
    }

    pub(super) fn add_storage(&self, pod: &Pod, stats: &mut PodStats) {
        let (ephemeral, others): (Vec<&Volume>, Vec<&Volume>) =
            pod.volumes.iter().partition(|volume| volume.is_ephemeral);
        let measured = |volumes: Vec<&Volume>| -> Vec<VolumeStats> {
            volumes
                .into_iter()
                .filter_map(|volume| self.volume_stats(volume))
                .collect()
        };
        let ephemeral = measured(ephemeral);
        let Some(node_fs) = self.node.filling.node_fs else {
            return;
        };
        let mut total = node_fs.around(self.node.filling.time);
        for container in &stats.containers {
            if let Some(root_fs) = &container.rootfs {
                add_usage(&mut total, root_fs);
                container
                    .logs
                    .iter()
                    .for_each(|logs| add_usage(&mut total, logs));
            }
        }
        for volume in &ephemeral {
            add_usage(&mut total, &volume.fs);
        }
        let files = [pod.log_directory.as_deref(), pod.etc_hosts.as_deref()];
        for file in files {
            if let Some(usage) = self.on_node_fs(file) {
                add_usage(&mut total, &usage);
            }
        }
        stats.ephemeral_storage = Some(total);
        stats.volume = ephemeral;
        stats.volume.extend(measured(others));
    }

    /// A volume; `None` as long as it was not measured.
    fn volume_stats(&self, volume: &Volume) -> Option<VolumeStats> {
        let (time, fs) = self.volume_fs(&volume.path)?;
        let fs = match volume.measure {
            VolumeMeasure::FileSystem => fs.whole(Some(time)),
            VolumeMeasure::Directory => {
                let measured = self.disk.get(&volume.path)?;
                FsStats {
                    used_bytes: Some(measured.usage.bytes),
                    inodes_used: Some(measured.usage.inodes),
                    ..fs.around(Some(measured.time))
                }
            }
        };
        let claim = volume.claim.as_ref();
        Some(VolumeStats {
            fs,
            name: volume.name.clone(),
            pvc_ref: claim.map(|(name, namespace)| PvcReference {
                name: name.clone(),
                namespace: namespace.clone(),
            }),
            volume_health_stats: None,
        })
    }
}
