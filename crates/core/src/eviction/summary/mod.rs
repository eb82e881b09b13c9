//! The Summary API's JSON (`GET /stats/summary`), as far as eviction reads it.
//!
//! Reading one gives an [`super::Observation`] and what each pod uses; the way back is what records are
//! made of. Numbers are 64 bits without sign; upstream reads them with one, so that a wrapped
//! difference is negative. `memAvailableBytes` and `activeFileBytes` are not upstream's.

mod convert;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::object::timestamp::Timestamp;

macro_rules! stats {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)+ }
    };
}

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
        /// Memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
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
    /// Process ids.
    RlimitStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// The most there may be.
        #[serde(skip_serializing_if = "Option::is_none")]
        maxpid: Option<i64>,
        /// How many are taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        curproc: Option<i64>,
    }
);
stats!(
    /// Swap.
    SwapStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// Free.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap_available_bytes: Option<u64>,
        /// Taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap_usage_bytes: Option<u64>,
    }
);
stats!(
    /// A pod.
    PodStats {
        /// Which one.
        pod_ref: PodReference,
        /// Its containers.
        #[serde(deserialize_with = "null_is_empty")]
        containers: Vec<ContainerStats>,
        /// Memory of its cgroup.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
        /// Its volumes.
        #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
        volume: Vec<VolumeStats>,
        /// What it holds of the node's disk.
        #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
        ephemeral_storage: Option<FsStats>,
        /// Its processes.
        #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
        process_stats: Option<ProcessStats>,
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
        /// Memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryStats>,
        /// Writable layer.
        #[serde(skip_serializing_if = "Option::is_none")]
        rootfs: Option<FsStats>,
        /// Logs.
        #[serde(skip_serializing_if = "Option::is_none")]
        logs: Option<FsStats>,
    }
);
stats!(
    /// Memory.
    MemoryStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// Limit minus working set; absent without a limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        available_bytes: Option<u64>,
        /// Usage without inactive page cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        working_set_bytes: Option<u64>,
        /// `MemAvailable` of the kernel.
        #[serde(skip_serializing_if = "Option::is_none")]
        mem_available_bytes: Option<u64>,
        /// Active page cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        active_file_bytes: Option<u64>,
        /// Stalls.
        #[serde(skip_serializing_if = "Option::is_none")]
        psi: Option<PsiStats>,
    }
);
stats!(
    /// Pressure stall information.
    PsiStats {
        /// When no task could go on.
        full: PsiData,
        /// When it was measured, if not with the memory. Not upstream's.
        #[serde(with = "time", skip_serializing_if = "Option::is_none")]
        time: Option<Timestamp>,
    }
);
stats!(
    /// One line of it.
    PsiData {
        /// Percent of the last ten seconds.
        avg10: f64,
    }
);
stats!(
    /// Processes.
    ProcessStats {
        /// How many.
        #[serde(rename = "process_count", skip_serializing_if = "Option::is_none")]
        process_count: Option<u64>,
    }
);
stats!(
    /// A file system, or part of one.
    FsStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// Free bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        available_bytes: Option<u64>,
        /// Size.
        #[serde(skip_serializing_if = "Option::is_none")]
        capacity_bytes: Option<u64>,
        /// Taken bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        used_bytes: Option<u64>,
        /// Free inodes.
        #[serde(skip_serializing_if = "Option::is_none")]
        inodes_free: Option<u64>,
        /// All inodes.
        #[serde(skip_serializing_if = "Option::is_none")]
        inodes: Option<u64>,
        /// Taken inodes.
        #[serde(skip_serializing_if = "Option::is_none")]
        inodes_used: Option<u64>,
    }
);
stats!(
    /// A volume.
    VolumeStats {
        /// Its name in the pod.
        name: String,
        /// What it holds.
        #[serde(flatten)]
        fs: FsStats,
    }
);

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Times as upstream writes them: RFC 3339, `null` for unknown. The year 1 is Go's unknown.
pub(super) mod time {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};
    use serde::Serialize;
    use serde::de::Error;

    const GO_ZERO: &str = "0001-01-01T00:00:00Z";

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.to_string()).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let Some(text) = text.filter(|text| text != GO_ZERO) else {
            return Ok(None);
        };
        let time = Timestamp::from_rfc3339(&text);
        let wrong = || D::Error::custom(format!("{text:?} is no RFC 3339 time"));
        time.ok_or_else(wrong).map(Some)
    }
}
