//! The cgroup of all pods and those of the reservations.
//!
//! Matches v1.36 pkg/kubelet/cm/node_container_manager_linux.go.

use crate::resources::{Bytes, Millicores, ResourceList, ResourceName};

use super::config::ResourceConfig;
use super::conversion::shares_from_millicores;
use super::huge_page::huge_page_limits;
use super::memory_qos::{MEMORY_MIN, MemoryQos};

/// Which resources of a list are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// All that a cgroup can limit.
    All,
    /// Cpu only, which can be taken back without killing.
    Compressible,
}

/// The config that a list stands for: of `kubepods`, or of a reservation. No cpu quota is ever
/// set, only shares.
pub fn resource_config(list: &ResourceList, enforced: Enforced) -> ResourceConfig {
    let cpu = list.get(&ResourceName::CPU).map(Millicores::from_quantity);
    let compressible = ResourceConfig {
        cpu_shares: cpu.map(shares_from_millicores),
        ..ResourceConfig::default()
    };
    match enforced {
        Enforced::Compressible => compressible,
        Enforced::All => ResourceConfig {
            memory: list.get(&ResourceName::MEMORY).map(Bytes::from_quantity),
            pids_limit: list.get(&ResourceName::PID).map(|pids| pids.value()),
            huge_page_limits: huge_page_limits(list),
            ..compressible
        },
    }
}

/// The config of a cgroup that a reservation is enforced on; `None` where nothing is reserved,
/// which upstream refuses to start with.
pub fn reserved_config(
    reservation: &ResourceList,
    enforced: Enforced,
    memory_qos: MemoryQos,
) -> Option<ResourceConfig> {
    if reservation.is_empty() {
        return None;
    }
    let mut config = resource_config(reservation, enforced);
    if memory_qos != MemoryQos::Off
        && let Some(memory) = config.memory
    {
        config
            .unified
            .insert(MEMORY_MIN.to_owned(), memory.0.to_string());
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> ResourceList {
        [
            (ResourceName::CPU, "500m".parse().unwrap()),
            (ResourceName::MEMORY, "1Gi".parse().unwrap()),
            (ResourceName::PID, "100".parse().unwrap()),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn compressible_enforcement_touches_cpu_only() {
        let config = resource_config(&list(), Enforced::Compressible);
        assert_eq!(config.cpu_shares, Some(512));
        assert_eq!((config.memory, config.pids_limit), (None, None));
    }

    #[test]
    fn memory_qos_protects_reserved_memory() {
        let config = reserved_config(&list(), Enforced::All, MemoryQos::NoReservation).unwrap();
        assert_eq!(config.unified[MEMORY_MIN], "1073741824");
        assert_eq!(config.pids_limit, Some(100));
    }
}
