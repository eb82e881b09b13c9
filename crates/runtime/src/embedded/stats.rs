//! Resource usage of containers.

use super::table::{Container, Phase};
use super::{Embedded, blocking};
use crate::Error;
use crate::wire::{ContainerAttributes, ContainerStats, CpuUsage, MemoryUsage, UInt64Value};

use super::record::now_nanos;

impl Embedded {
    /// What a container uses; of one that does not run, only its files.
    pub(super) async fn container_stats(
        &self,
        container: &Container,
    ) -> Result<ContainerStats, Error> {
        let writable_layer = self.inner.images.root_usage(&container.id).await?;
        let config = container.config();
        let mut stats = ContainerStats {
            attributes: Some(ContainerAttributes {
                id: container.id.clone(),
                metadata: config.metadata,
                labels: config.labels,
                annotations: config.annotations,
            }),
            writable_layer: Some(writable_layer),
            ..ContainerStats::default()
        };
        if !matches!(container.phase(), Phase::Running(_)) {
            return Ok(stats);
        }
        let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
        let usage = blocking("read the use of a container", move || Ok(cgroup.usage())).await?;
        if let Some(usage) = usage {
            let timestamp = now_nanos();
            let value = |value| Some(UInt64Value { value });
            stats.cpu = Some(CpuUsage {
                timestamp,
                usage_core_nano_seconds: value(usage.cpu_nanos),
                usage_nano_cores: None,
            });
            let available = usage.memory_limit.map(|limit| UInt64Value {
                value: limit.saturating_sub(usage.working_set),
            });
            stats.memory = Some(MemoryUsage {
                timestamp,
                working_set_bytes: value(usage.working_set),
                available_bytes: available,
                usage_bytes: value(usage.memory),
                rss_bytes: value(usage.rss),
                page_faults: value(usage.page_faults),
                major_page_faults: value(usage.major_page_faults),
            });
        }
        Ok(stats)
    }
}
