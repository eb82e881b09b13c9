//! What of the node's configuration concerns workers.

use std::time::Duration;

use super::back_off;

/// Numbers that workers go by.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The longest wait before a container is started again
    /// (`crashLoopBackOff.maxContainerRestartPeriod`).
    pub max_restart_back_off: Duration,
    /// How many images are pulled at once (`serializeImagePulls`, `maxParallelImagePulls`); `None`
    /// for as many as there are.
    pub parallel_pulls: Option<usize>,
    /// Pulls per second (`registryPullQPS`); zero for no limit.
    pub pull_qps: f64,
    /// Pulls that may exceed it in a burst (`registryBurst`).
    pub pull_burst: u32,
    /// How often a pod at rest is looked at all the same (`syncFrequency`).
    pub resync: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_restart_back_off: back_off::MAX,
            parallel_pulls: Some(1),
            pull_qps: 5.0,
            pull_burst: 10,
            resync: Duration::from_secs(60),
        }
    }
}
