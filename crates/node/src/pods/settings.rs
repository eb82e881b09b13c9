//! What of the node's configuration concerns workers.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_core::config::NodeConfig;
use plimsoll_core::duration;

use super::back_off;

/// Numbers and places that workers go by.
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
    /// How often a pod at rest is synced nevertheless (`syncFrequency`).
    pub resync: Duration,
    /// Where links to the logs of all containers are kept, for log collectors; `None` for
    /// nowhere.
    pub container_logs_dir: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_restart_back_off: back_off::MAX,
            parallel_pulls: Some(1),
            pull_qps: 5.0,
            pull_burst: 10,
            resync: Duration::from_secs(60),
            container_logs_dir: None,
        }
    }
}

impl Settings {
    /// The settings of a node. Zero stands for the default, as upstream.
    pub fn from_config(config: &NodeConfig) -> Settings {
        let defaults = Settings::default();
        let duration = |set: duration::Duration, default: Duration| {
            let nanos = u64::try_from(set.as_nanos()).ok();
            nanos
                .filter(|nanos| *nanos > 0)
                .map_or(default, Duration::from_nanos)
        };
        let most = *config.max_parallel_image_pulls;
        let most = most.and_then(|most| usize::try_from(most).ok());
        let most = most.filter(|most| *most > 0);
        // Stating how many may go at once says that they may.
        let is_serial = config.serialize_image_pulls.value;
        let is_serial = is_serial.unwrap_or(most.is_none_or(|most| most == 1));
        Settings {
            max_restart_back_off: duration(
                *config.max_container_restart_period,
                defaults.max_restart_back_off,
            ),
            parallel_pulls: if is_serial { Some(1) } else { most },
            pull_qps: f64::from(*config.registry_pull_qps),
            pull_burst: u32::try_from(*config.registry_burst)
                .ok()
                .filter(|burst| *burst > 0)
                .unwrap_or(defaults.pull_burst),
            resync: duration(*config.sync_frequency, defaults.resync),
            container_logs_dir: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::config::{Profile, read_kubelet_configuration};

    fn settings(fields: &str) -> Settings {
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        let text = format!("{head}{fields}");
        let reading = read_kubelet_configuration(text.as_bytes(), Profile::default());
        assert_eq!(reading.problems, []);
        Settings::from_config(&reading.config)
    }

    #[test]
    fn unset_settings_have_defaults() {
        assert_eq!(settings(""), Settings::default());
    }

    #[test]
    fn image_pulls_are_serial_unless_more_are_allowed() {
        for (fields, expected) in [
            ("serializeImagePulls: false\n", None),
            (
                "serializeImagePulls: false\nmaxParallelImagePulls: 3\n",
                Some(3),
            ),
            ("maxParallelImagePulls: 3\n", Some(3)),
            ("serializeImagePulls: true\n", Some(1)),
        ] {
            assert_eq!(settings(fields).parallel_pulls, expected, "{fields}");
        }
    }

    #[test]
    fn numbers_are_read() {
        let settings = settings(
            "crashLoopBackOff: {maxContainerRestartPeriod: 10s}\nregistryPullQPS: 0\n\
             registryBurst: 3\nsyncFrequency: 2m\n",
        );
        assert_eq!(settings.max_restart_back_off, Duration::from_secs(10));
        assert_eq!((settings.pull_qps, settings.pull_burst), (0.0, 3));
        assert_eq!(settings.resync, Duration::from_secs(120));
    }
}
