//! Which pods are ended when, and how long each may take.

use std::time::Duration;

use plimsoll_core::config::NodeConfig;
use plimsoll_core::duration;
use plimsoll_core::object::pod::SYSTEM_CRITICAL_PRIORITY;

/// How long pods of a priority and up may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The least priority.
    pub priority: i32,
    /// How long they may take.
    pub grace_secs: i64,
}

/// The periods of a configuration, least priority first. None if pods must not be
/// ended at all.
pub fn periods(config: &NodeConfig) -> Vec<Period> {
    let listed = config.shutdown_grace_period_by_pod_priority.iter();
    let mut periods: Vec<Period> = listed
        .map(|listed| Period {
            priority: listed.priority,
            grace_secs: listed.grace_secs,
        })
        .collect();
    if periods.is_empty() {
        let seconds = |duration: duration::Duration| duration.as_nanos() / 1_000_000_000;
        periods = by_criticality(
            seconds(*config.shutdown_grace_period),
            seconds(*config.shutdown_grace_period_critical_pods),
        );
    }
    periods.sort_by_key(|period| period.priority);
    periods
}

/// Critical pods have the last part of the time, all others what comes before.
fn by_criticality(all_secs: i64, critical_secs: i64) -> Vec<Period> {
    if all_secs == 0 || all_secs < critical_secs || critical_secs < 0 {
        return Vec::new();
    }
    vec![
        Period {
            priority: 0,
            grace_secs: all_secs - critical_secs,
        },
        Period {
            priority: SYSTEM_CRITICAL_PRIORITY,
            grace_secs: critical_secs,
        },
    ]
}

/// How long all of it takes at most.
pub fn whole(periods: &[Period]) -> Duration {
    let secs: i64 = periods.iter().map(|period| period.grace_secs).sum();
    Duration::from_secs(u64::try_from(secs).unwrap_or_default())
}

/// Which period a pod of that priority belongs to: the highest that it reaches, else the lowest.
pub fn group_of(periods: &[Period], priority: i32) -> usize {
    let reached = periods
        .iter()
        .filter(|period| period.priority <= priority)
        .count();
    reached.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::config::read_file;

    use super::*;

    fn of(yaml: &str) -> Vec<(i32, i64)> {
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        let reading = read_file(format!("{head}{yaml}").as_bytes(), None);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let periods = periods(&reading.config).into_iter();
        periods
            .map(|period| (period.priority, period.grace_secs))
            .collect()
    }

    #[test]
    fn critical_pods_are_terminated_in_the_last_period() {
        let two = of("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n");
        assert_eq!(two, [(0, 20), (2_000_000_000, 10)]);
        assert_eq!(
            of("shutdownGracePeriod: 1m\n"),
            [(0, 60), (2_000_000_000, 0)]
        );
        assert_eq!(of(""), []);
    }

    #[test]
    fn priorities_may_be_listed() {
        let listed = of("shutdownGracePeriodByPodPriority:\n\
             - { priority: 100000, shutdownGracePeriodSeconds: 10 }\n\
             - { priority: 0, shutdownGracePeriodSeconds: 60 }\n");
        assert_eq!(listed, [(0, 60), (100_000, 10)]);
    }

    #[test]
    fn a_pod_belongs_to_the_highest_period_that_it_reaches() {
        let period = |priority| Period {
            priority,
            grace_secs: 1,
        };
        let periods = [period(0), period(1000), period(5000)];
        assert_eq!(whole(&periods), Duration::from_secs(3));
        for (priority, group) in [(-5, 0), (0, 0), (999, 0), (1000, 1), (4999, 1), (9999, 2)] {
            assert_eq!(group_of(&periods, priority), group, "{priority}");
        }
    }
}
