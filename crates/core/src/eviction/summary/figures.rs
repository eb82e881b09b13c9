//! What is measured: cpu, memory, stalls, disks, networks, processes.

use serde::{Deserialize, Serialize};

use crate::object::timestamp::Timestamp;

use super::{null_is_empty, time};

stats!(
    /// Time on processors.
    CpuStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// Nanoseconds per second over the last ten seconds or so.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage_nano_cores: Option<u64>,
        /// Nanoseconds since the beginning.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage_core_nano_seconds: Option<u64>,
        /// Stalls.
        #[serde(skip_serializing_if = "Option::is_none")]
        psi: Option<PsiStats>,
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
        /// All of it, page cache too.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage_bytes: Option<u64>,
        /// Usage without inactive page cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        working_set_bytes: Option<u64>,
        /// Anonymous memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        rss_bytes: Option<u64>,
        /// Page faults since the beginning.
        #[serde(skip_serializing_if = "Option::is_none")]
        page_faults: Option<u64>,
        /// Page faults that had to read from disk.
        #[serde(skip_serializing_if = "Option::is_none")]
        major_page_faults: Option<u64>,
        /// `MemAvailable` of the kernel. Not upstream's.
        #[serde(skip_serializing_if = "Option::is_none")]
        mem_available_bytes: Option<u64>,
        /// Active page cache. Not upstream's.
        #[serde(skip_serializing_if = "Option::is_none")]
        active_file_bytes: Option<u64>,
        /// Stalls.
        #[serde(skip_serializing_if = "Option::is_none")]
        psi: Option<PsiStats>,
    }
);
stats!(
    /// Disk accesses.
    IoStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// Stalls.
        #[serde(skip_serializing_if = "Option::is_none")]
        psi: Option<PsiStats>,
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
    /// Pressure stall information.
    PsiStats {
        /// When no task could continue.
        full: PsiData,
        /// When some task could not.
        some: PsiData,
        /// When it was measured, if not with the memory. Not upstream's.
        #[serde(with = "time", skip_serializing_if = "Option::is_none")]
        time: Option<Timestamp>,
    }
);
stats!(
    /// One line of it.
    PsiData {
        /// Microseconds since the beginning, as the kernel counts; upstream says nanoseconds and
        /// passes on the same.
        total: u64,
        /// Percent of the last ten seconds.
        avg10: f64,
        /// Percent of the last minute.
        avg60: f64,
        /// Percent of the last five minutes.
        avg300: f64,
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
    /// Networks.
    NetworkStats {
        /// When it was measured.
        #[serde(with = "time")]
        time: Option<Timestamp>,
        /// The usual interface, `eth0`; its name is empty where there is none.
        #[serde(flatten)]
        default: InterfaceStats,
        /// All interfaces.
        #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
        interfaces: Vec<InterfaceStats>,
    }
);
stats!(
    /// A network interface, since the beginning.
    InterfaceStats {
        /// Its name.
        name: String,
        /// Bytes received.
        #[serde(skip_serializing_if = "Option::is_none")]
        rx_bytes: Option<u64>,
        /// Errors while receiving.
        #[serde(skip_serializing_if = "Option::is_none")]
        rx_errors: Option<u64>,
        /// Bytes sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        tx_bytes: Option<u64>,
        /// Errors while sending.
        #[serde(skip_serializing_if = "Option::is_none")]
        tx_errors: Option<u64>,
    }
);
