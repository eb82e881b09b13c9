//! What of the node's configuration concerns workers.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_core::config::NodeConfig;
use plimsoll_core::duration;
use serde_json::Value;

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
    /// How often a pod at rest is looked at all the same (`syncFrequency`).
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
        let value = |path: &str| config.carried.get(path).map(|setting| &setting.value);
        let duration = |path: &str, default: Duration| {
            let text = value(path).and_then(Value::as_str);
            let parsed = text.and_then(|text| text.parse::<duration::Duration>().ok());
            let nanos = parsed.and_then(|parsed| u64::try_from(parsed.as_nanos()).ok());
            nanos
                .filter(|nanos| *nanos > 0)
                .map_or(default, Duration::from_nanos)
        };
        let number = |path: &str| value(path).and_then(Value::as_u64);
        let most = number("maxParallelImagePulls").and_then(|most| usize::try_from(most).ok());
        let most = most.filter(|most| *most > 0);
        // Stating how many may go at once says that they may.
        let is_serial = value("serializeImagePulls").and_then(Value::as_bool);
        let is_serial = is_serial.unwrap_or(most.is_none_or(|most| most == 1));
        let qps = number("registryPullQPS").and_then(|qps| u32::try_from(qps).ok());
        let burst = number("registryBurst").and_then(|burst| u32::try_from(burst).ok());
        Settings {
            max_restart_back_off: duration(
                "crashLoopBackOff.maxContainerRestartPeriod",
                defaults.max_restart_back_off,
            ),
            parallel_pulls: if is_serial { Some(1) } else { most },
            pull_qps: qps.map_or(defaults.pull_qps, f64::from),
            pull_burst: burst
                .filter(|burst| *burst > 0)
                .unwrap_or(defaults.pull_burst),
            resync: duration("syncFrequency", defaults.resync),
            container_logs_dir: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::config::{Profile, Setting};
    use serde_json::json;

    fn settings(carried: &[(&str, Value)]) -> Settings {
        let mut config = NodeConfig::defaults(Profile::default());
        for (path, value) in carried {
            let setting = Setting::defaulted(value.clone());
            config.carried.insert((*path).to_owned(), setting);
        }
        Settings::from_config(&config)
    }

    #[test]
    fn unset_settings_have_defaults() {
        assert_eq!(settings(&[]), Settings::default());
    }

    #[test]
    fn image_pulls_are_serial_unless_more_are_allowed() {
        for (carried, expected) in [
            (vec![("serializeImagePulls", json!(false))], None),
            (vec![("maxParallelImagePulls", json!(3))], Some(3)),
            (
                vec![
                    ("maxParallelImagePulls", json!(3)),
                    ("serializeImagePulls", json!(true)),
                ],
                Some(1),
            ),
        ] {
            assert_eq!(settings(&carried).parallel_pulls, expected, "{carried:?}");
        }
    }

    #[test]
    fn numbers_are_read() {
        let settings = settings(&[
            ("crashLoopBackOff.maxContainerRestartPeriod", json!("10s")),
            ("registryPullQPS", json!(0)),
            ("registryBurst", json!(3)),
            ("syncFrequency", json!("2m")),
        ]);
        assert_eq!(settings.max_restart_back_off, Duration::from_secs(10));
        assert_eq!((settings.pull_qps, settings.pull_burst), (0.0, 3));
        assert_eq!(settings.resync, Duration::from_secs(120));
    }
}
