//! The cgroups between all pods and one pod: one tier each for Burstable and BestEffort.
//!
//! Matches v1.36 pkg/kubelet/cm/qos_container_manager_linux.go. The tiers are written every minute
//! and whenever a pod comes or goes.

use std::collections::BTreeMap;

use crate::object::pod::{Overhead, PodView, QosClass};
use crate::resources::{Bytes, Millicores, ResourceList, ResourceName};

use super::config::ResourceConfig;
use super::conversion::{MIN_SHARES, shares_from_millicores};
use super::huge_page::HugePageSize;
use super::memory_qos::{MEMORY_LOW, MEMORY_MIN, MemoryQos};

/// The values written into the tiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QosTiers {
    /// The cgroup of all pods, in which Guaranteed pods stand.
    pub guaranteed: ResourceConfig,
    /// The tier of Burstable pods.
    pub burstable: ResourceConfig,
    /// The tier of BestEffort pods.
    pub best_effort: ResourceConfig,
}

/// The node settings that shape the tiers.
#[derive(Clone, Debug, Default)]
pub struct TierSettings {
    /// The sizes of huge pages that the kernel has.
    pub huge_page_sizes: Vec<HugePageSize>,
    /// Whether memory requests are protected.
    pub memory_qos: MemoryQos,
    /// `qosReserved` of memory in percent, where the gate QOSReserved is on.
    pub reserved_memory_percent: Option<i64>,
    /// The limit of all pods together; zero where it is not known.
    pub allocatable_memory: Bytes,
}

/// The memory in use by each tier, where it could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierUsage {
    /// By the Burstable tier.
    pub burstable: Option<Bytes>,
    /// By the BestEffort tier.
    pub best_effort: Option<Bytes>,
}

/// Above any real number of huge pages; tiers do not limit them, pods do.
const UNBOUNDED: Bytes = Bytes(1 << 62);

/// The desired settings of the tiers while these pods are active.
pub fn compute_qos_tiers(pods: &[PodView], settings: &TierSettings) -> QosTiers {
    let huge_page_limits: BTreeMap<HugePageSize, Bytes> = settings
        .huge_page_sizes
        .iter()
        .map(|size| (*size, UNBOUNDED))
        .collect();
    let tier = |cpu_shares| ResourceConfig {
        cpu_shares,
        huge_page_limits: huge_page_limits.clone(),
        ..ResourceConfig::default()
    };
    let cpu = requested(pods, QosClass::Burstable, |requests| {
        requests.get_or_zero(&ResourceName::CPU).milli_value()
    });
    let mut tiers = QosTiers {
        guaranteed: tier(None),
        burstable: tier(Some(shares_from_millicores(Millicores(cpu)))),
        best_effort: tier(Some(MIN_SHARES)),
    };
    let memory = |requests: &ResourceList| requests.get_or_zero(&ResourceName::MEMORY).value();
    let guaranteed = requested(pods, QosClass::Guaranteed, memory);
    let burstable = requested(pods, QosClass::Burstable, memory);
    tiers.protect_memory(settings.memory_qos, guaranteed, burstable);
    if let Some(percent) = settings.reserved_memory_percent {
        tiers.reserve_memory(settings.allocatable_memory, percent, guaranteed, burstable);
    }
    tiers
}

/// The sum of `amount` over the pods of the class.
fn requested(pods: &[PodView], class: QosClass, amount: fn(&ResourceList) -> i64) -> i64 {
    pods.iter()
        .filter(|pod| pod.qos_class() == class)
        .map(|pod| amount(&pod.requests(Overhead::Included)))
        .fold(0, i64::wrapping_add)
}

impl QosTiers {
    /// A parent has to be protected as much as its children are together.
    fn protect_memory(&mut self, memory_qos: MemoryQos, guaranteed: i64, burstable: i64) {
        let (min, low) = match memory_qos {
            MemoryQos::Off => return,
            MemoryQos::NoReservation => (0, 0),
            MemoryQos::TieredReservation => (guaranteed.wrapping_add(burstable), burstable),
        };
        let set = |config: &mut ResourceConfig, file: &str, value: i64| {
            config.unified.insert(file.to_owned(), value.to_string());
        };
        set(&mut self.guaranteed, MEMORY_MIN, min);
        set(&mut self.burstable, MEMORY_LOW, low);
    }

    /// Keeps a part of what higher classes request out of the reach of lower ones.
    fn reserve_memory(&mut self, all: Bytes, percent: i64, guaranteed: i64, burstable: i64) {
        if all == Bytes::ZERO {
            return;
        }
        let part = |requests: i64| requests.wrapping_mul(percent) / 100;
        let burstable_limit = all.0.wrapping_sub(part(guaranteed));
        let best_effort_limit = burstable_limit.wrapping_sub(part(burstable));
        self.burstable.memory = Some(Bytes(burstable_limit));
        self.best_effort.memory = Some(Bytes(best_effort_limit));
    }

    /// What to write after a write failed: a tier that uses more than its limit is limited to
    /// what it uses, so that it grows no further.
    #[must_use]
    pub fn retried_with(mut self, usage: TierUsage) -> QosTiers {
        let raise = |config: &mut ResourceConfig, usage: Option<Bytes>| {
            if let Some(limit) = &mut config.memory {
                *limit = (*limit).max(usage.unwrap_or(*limit));
            }
        };
        raise(&mut self.burstable, usage.burstable);
        raise(&mut self.best_effort, usage.best_effort);
        self
    }
}
