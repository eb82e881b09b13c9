//! `kubelet_volume_stats_*`: volumes that came from claims.
//!
//! Matches v1.36 pkg/kubelet/metrics/collectors/volume_stats.go.

use std::collections::BTreeSet;

use plimsoll_core::eviction::summary::{FsStats, Summary, VolumeStats};

use super::exposition::{Exposition, Kind, float};
use super::labels::Labels;

/// A name, its help and what is shown.
type Metric = (&'static str, &'static str, fn(&FsStats) -> Option<u64>);

const METRICS: [Metric; 6] = [
    (
        "kubelet_volume_stats_available_bytes",
        "[ALPHA] Number of available bytes in the volume",
        |fs| fs.available_bytes,
    ),
    (
        "kubelet_volume_stats_capacity_bytes",
        "[ALPHA] Capacity in bytes of the volume",
        |fs| fs.capacity_bytes,
    ),
    (
        "kubelet_volume_stats_inodes",
        "[ALPHA] Maximum number of inodes in the volume",
        |fs| fs.inodes,
    ),
    (
        "kubelet_volume_stats_inodes_free",
        "[ALPHA] Number of free inodes in the volume",
        |fs| fs.inodes_free,
    ),
    (
        "kubelet_volume_stats_inodes_used",
        "[ALPHA] Number of used inodes in the volume",
        |fs| fs.inodes_used,
    ),
    (
        "kubelet_volume_stats_used_bytes",
        "[ALPHA] Number of used bytes in the volume",
        |fs| fs.used_bytes,
    ),
];

/// Adds the volumes of a summary. One that several pods use is shown once.
pub(super) fn add_volumes(text: &mut Exposition, summary: &Summary) {
    let mut seen = BTreeSet::new();
    let volumes = summary.pods.iter().flat_map(|pod| &pod.volume);
    let claimed: Vec<(Labels, &VolumeStats)> = volumes
        .filter_map(|volume| {
            let claim = volume.pvc_ref.as_ref()?;
            let names = (&*claim.namespace, &*claim.name);
            let labels = [("namespace", names.0), ("persistentvolumeclaim", names.1)];
            seen.insert(names).then(|| (Labels::new(labels), volume))
        })
        .collect();
    for (name, help, value) in METRICS {
        let mut family = text.family(name, Kind::Gauge, help);
        for (labels, volume) in &claimed {
            if let Some(value) = value(&volume.fs) {
                family.add(labels.as_str(), float(value), None);
            }
        }
    }
}
