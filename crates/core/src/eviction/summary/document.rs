//! Whose figures they are: the node, its pods, their containers and volumes.

use serde::{Deserialize, Serialize};

use crate::object::timestamp::Timestamp;

use super::figures::{
    CpuStats, FsStats, IoStats, MemoryStats, NetworkStats, ProcessStats, RlimitStats, SwapStats,
};
use super::{null_is_empty, time};

stats!(
    /// The whole document.
    Summary {
        /// The node.
        node: NodeStats,
        /// Its pods.
        #[serde(deserialize_with = "null_is_empty")]
        pods: Vec<PodStats>,
    }
);
stats!(
    /// The node.
    NodeStats {
        /// Its name.
        node_name: String,
        /// Cgroups beside those of pods, and the one of all pods.
        #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
        system_containers: Vec<ContainerStats>,
        /// When the machine was started.
        #[serde(with = "time", skip_serializing_if = "Option::is_none")]
        start_time: Option<Timestamp>,
        /// Time on processors.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuStats>,
        /// Memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
        /// Disk accesses.
        #[serde(skip_serializing_if = "Option::is_none")]
        io: Option<IoStats>,
        /// Networks.
        #[serde(skip_serializing_if = "Option::is_none")]
        network: Option<NetworkStats>,
        /// Where volumes and logs are.
        #[serde(skip_serializing_if = "Option::is_none")]
        fs: Option<FsStats>,
        /// Where the runtime keeps its files.
        #[serde(skip_serializing_if = "Option::is_none")]
        runtime: Option<RuntimeStats>,
        /// Process ids.
        #[serde(skip_serializing_if = "Option::is_none")]
        rlimit: Option<RlimitStats>,
        /// Swap.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap: Option<SwapStats>,
    }
);
stats!(
    /// Where the runtime keeps its files.
    RuntimeStats {
        /// Image layers.
        #[serde(skip_serializing_if = "Option::is_none")]
        image_fs: Option<FsStats>,
        /// Writable layers.
        #[serde(skip_serializing_if = "Option::is_none")]
        container_fs: Option<FsStats>,
    }
);
stats!(
    /// A pod.
    PodStats {
        /// Which one.
        pod_ref: PodReference,
        /// When it was started.
        #[serde(with = "time", skip_serializing_if = "Option::is_none")]
        start_time: Option<Timestamp>,
        /// Its containers.
        #[serde(deserialize_with = "null_is_empty")]
        containers: Vec<ContainerStats>,
        /// Time on processors, by its cgroup.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuStats>,
        /// Memory of its cgroup.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
        /// Disk accesses, by its cgroup.
        #[serde(skip_serializing_if = "Option::is_none")]
        io: Option<IoStats>,
        /// Networks.
        #[serde(skip_serializing_if = "Option::is_none")]
        network: Option<NetworkStats>,
        /// Its volumes.
        #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
        volume: Vec<VolumeStats>,
        /// What it holds of the node's disk.
        #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
        ephemeral_storage: Option<FsStats>,
        /// Its processes.
        #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
        process_stats: Option<ProcessStats>,
        /// Swap.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap: Option<SwapStats>,
    }
);
stats!(
    /// Names of a pod.
    PodReference {
        /// Name.
        name: String,
        /// Namespace.
        namespace: String,
        /// Unique id.
        uid: String,
    }
);
stats!(
    /// A container, or a system cgroup.
    ContainerStats {
        /// Its name.
        name: String,
        /// When it was started.
        #[serde(with = "time", skip_serializing_if = "Option::is_none")]
        start_time: Option<Timestamp>,
        /// Time on processors.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuStats>,
        /// Memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
        /// Disk accesses.
        #[serde(skip_serializing_if = "Option::is_none")]
        io: Option<IoStats>,
        /// Writable layer.
        #[serde(skip_serializing_if = "Option::is_none")]
        rootfs: Option<FsStats>,
        /// Logs.
        #[serde(skip_serializing_if = "Option::is_none")]
        logs: Option<FsStats>,
        /// Swap.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap: Option<SwapStats>,
    }
);
stats!(
    /// A volume.
    VolumeStats {
        /// What it holds.
        #[serde(flatten)]
        fs: FsStats,
        /// Its name in the pod.
        name: String,
        /// The claim it came from.
        #[serde(skip_serializing_if = "Option::is_none")]
        pvc_ref: Option<PvcReference>,
        /// Whether it works, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        volume_health_stats: Option<VolumeHealthStats>,
    }
);
stats!(
    /// Names of a claim.
    PvcReference {
        /// Name.
        name: String,
        /// Namespace.
        namespace: String,
    }
);
stats!(
    /// Whether a volume works.
    VolumeHealthStats {
        /// Whether it does not.
        abnormal: bool,
    }
);
