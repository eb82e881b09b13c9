//! The tiers of Burstable and BestEffort pods, kept current.

use std::time::Duration;

use plimsoll_core::cgroup::{
    CgroupName, QosTiers, ResourceConfig, TierSettings, TierUsage, compute_qos_tiers,
};
use plimsoll_core::object::pod::{PodView, QosClass};

use super::error::Error;
use super::tree::Cgroups;

/// How often tiers are written, besides whenever a pod comes or goes.
pub const QOS_UPDATE_PERIOD: Duration = Duration::from_secs(60);

impl Cgroups {
    /// Writes what the tiers should have while these pods are active. With `qosReserved` a tier
    /// that uses more than its limit is limited to what it uses.
    ///
    /// Matches v1.36 UpdateCgroups in pkg/kubelet/cm/qos_container_manager_linux.go.
    pub fn update_tiers(&self, pods: &[PodView], settings: &TierSettings) -> Result<(), Error> {
        let tiers = compute_qos_tiers(pods, settings);
        let written = self.write_tiers(&tiers);
        if written.is_ok() || settings.reserved_memory_percent.is_none() {
            return written;
        }
        let usage = TierUsage {
            burstable: self.tier_usage(QosClass::Burstable),
            best_effort: self.tier_usage(QosClass::BestEffort),
        };
        self.write_tiers(&tiers.retried_with(usage))
    }

    fn write_tiers(&self, tiers: &QosTiers) -> Result<(), Error> {
        let write = |class, config: &ResourceConfig| {
            let name = CgroupName::qos_tier(&self.kubepods(), class);
            self.write(&self.path(&name), config)
        };
        let results = [
            write(QosClass::Guaranteed, &tiers.guaranteed),
            write(QosClass::Burstable, &tiers.burstable),
            write(QosClass::BestEffort, &tiers.best_effort),
        ];
        results
            .into_iter()
            .try_for_each(|result| result.map(|_| ()))
    }

    fn tier_usage(&self, class: QosClass) -> Option<plimsoll_core::resources::Bytes> {
        let name = CgroupName::qos_tier(&self.kubepods(), class);
        self.memory_usage(&self.path(&name)).ok()
    }
}
