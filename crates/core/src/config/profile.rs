//! The differences between the releases that a node can imitate.

use super::{CgroupDriver, Profile};

/// How pods are ordered for eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionRank {
    /// Above the request first, then low priority, then far above the request.
    RequestPriorityExcess,
    /// Above the request first, then far above it.
    RequestExcess,
    /// `BestEffort` before Burstable before Guaranteed, then far above the request.
    QosClassExcess,
}

/// Which grace period a soft eviction gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftGrace {
    /// The smaller of evictionMaxPodGracePeriod and the pod's own.
    MinOfMaximumAndPod,
    /// evictionMaxPodGracePeriod, whatever the pod's own grace period.
    Maximum,
}

/// Which pods are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CriticalRule {
    /// Static and mirror pods, and priorities of at least 2,000,000,000.
    StaticOrPriority,
    /// Static pods that carry the critical-pod annotation.
    StaticAndAnnotated,
}

/// Which pods a node under memory pressure keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPressureBlocks {
    /// Everything that does not tolerate the taint.
    AllWithoutToleration,
    /// `BestEffort` pods only.
    BestEffort,
}

impl Profile {
    /// Whether it is one of OpenShift's releases.
    pub const fn is_okd(self) -> bool {
        matches!(self, Profile::Okd39 | Profile::Okd36)
    }

    /// The hard thresholds that hold where evictionHard is not set.
    pub const fn default_eviction_hard(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Profile::Kubernetes136 => &[
                ("memory.available", "100Mi"),
                ("nodefs.available", "10%"),
                ("nodefs.inodesFree", "5%"),
                ("imagefs.available", "15%"),
                ("imagefs.inodesFree", "5%"),
            ],
            Profile::Okd39 => &[
                ("memory.available", "100Mi"),
                ("nodefs.available", "10%"),
                ("nodefs.inodesFree", "5%"),
                ("imagefs.available", "15%"),
            ],
            Profile::Okd36 => &[("memory.available", "100Mi")],
        }
    }

    /// Whether a node configured by flags alone has the default thresholds. Today's kubelet adds
    /// them while loading a configuration file; its predecessors always did.
    pub const fn flags_have_default_eviction_hard(self) -> bool {
        self.is_okd()
    }

    /// The driver where none is configured.
    pub const fn default_cgroup_driver(self) -> CgroupDriver {
        match self {
            Profile::Kubernetes136 => CgroupDriver::Cgroupfs,
            Profile::Okd39 | Profile::Okd36 => CgroupDriver::Systemd,
        }
    }

    /// The most pods on a node where maxPods is not set.
    pub const fn default_max_pods(self) -> i32 {
        match self {
            Profile::Kubernetes136 => 110,
            Profile::Okd39 | Profile::Okd36 => 250,
        }
    }

    /// The most pods per core where podsPerCore is not set; zero is no limit.
    pub const fn default_pods_per_core(self) -> i32 {
        match self {
            Profile::Kubernetes136 => 0,
            Profile::Okd39 | Profile::Okd36 => 10,
        }
    }

    /// The disk usage at which images are deleted, where it is not set.
    pub const fn default_image_gc_high_threshold_percent(self) -> i32 {
        match self {
            Profile::Kubernetes136 | Profile::Okd39 => 85,
            Profile::Okd36 => 90,
        }
    }

    /// Whether a node with swap refuses to start, where failSwapOn is not set.
    pub const fn default_fail_swap_on(self) -> bool {
        match self {
            Profile::Kubernetes136 | Profile::Okd39 => true,
            Profile::Okd36 => false,
        }
    }

    /// Whether a node on cgroup v1 refuses to start, where failCgroupV1 is not set.
    pub const fn default_fail_cgroup_v1(self) -> bool {
        !self.is_okd()
    }

    /// How pods are ordered for eviction.
    pub const fn eviction_rank(self) -> EvictionRank {
        match self {
            Profile::Kubernetes136 => EvictionRank::RequestPriorityExcess,
            Profile::Okd39 => EvictionRank::RequestExcess,
            Profile::Okd36 => EvictionRank::QosClassExcess,
        }
    }

    /// The grace period of a hard eviction.
    pub const fn hard_eviction_grace_seconds(self) -> i64 {
        match self {
            Profile::Kubernetes136 => 1,
            Profile::Okd39 | Profile::Okd36 => 0,
        }
    }

    /// The grace period of a soft eviction.
    pub const fn soft_eviction_grace(self) -> SoftGrace {
        match self {
            Profile::Kubernetes136 => SoftGrace::MinOfMaximumAndPod,
            Profile::Okd39 | Profile::Okd36 => SoftGrace::Maximum,
        }
    }

    /// Which pods are never evicted.
    pub const fn eviction_exempts(self) -> CriticalRule {
        match self {
            Profile::Kubernetes136 => CriticalRule::StaticOrPriority,
            Profile::Okd39 | Profile::Okd36 => CriticalRule::StaticAndAnnotated,
        }
    }

    /// Which pods a node under memory pressure keeps out.
    pub const fn memory_pressure_blocks(self) -> MemoryPressureBlocks {
        match self {
            Profile::Kubernetes136 => MemoryPressureBlocks::AllWithoutToleration,
            Profile::Okd39 | Profile::Okd36 => MemoryPressureBlocks::BestEffort,
        }
    }

    /// How long a node may stay silent before the control plane calls it unknown.
    pub const fn node_monitor_grace_seconds(self) -> i64 {
        match self {
            Profile::Kubernetes136 => 50,
            Profile::Okd39 | Profile::Okd36 => 40,
        }
    }
}
