//! Flags of the node lifecycle controller. Names, units and defaults are those of upstream's
//! kube-controller-manager, so that its documentation applies.

use std::time::Duration;

use clap::Args;
use plimsoll_control::nodes::lifecycle::Options;
use plimsoll_core::duration;

use crate::help::NODE;

/// Grace periods of heartbeats, and rates of eviction from unhealthy nodes.
#[derive(Debug, Args)]
#[command(next_help_heading = NODE)]
pub(super) struct Flags {
    /// Grace period for heartbeats of a starting node before it is unhealthy [default: 1m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    node_startup_grace_period: Option<Duration>,

    /// Grace period for heartbeats of a running node before it is unhealthy [default: 50s].
    ///
    /// It must be several times the interval at which kubelets post node status.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    node_monitor_grace_period: Option<Duration>,

    /// Interval between checks of all nodes [default: 5s].
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    node_monitor_period: Option<Duration>,

    /// Nodes per second to evict pods from in a healthy zone [default: 0.1].
    #[arg(long, value_name = "RATE", value_parser = rate)]
    node_eviction_rate: Option<f32>,

    /// Nodes per second to evict pods from in an unhealthy zone [default: 0.01].
    #[arg(long, value_name = "RATE", value_parser = rate)]
    secondary_node_eviction_rate: Option<f32>,

    /// Zone size up to which the secondary rate is 0 [default: 50].
    #[arg(long, value_name = "N")]
    large_cluster_size_threshold: Option<usize>,

    /// Fraction of unhealthy nodes, at least three, that makes a zone unhealthy [default: 0.55].
    #[arg(long, value_name = "SHARE", value_parser = rate)]
    unhealthy_zone_threshold: Option<f32>,
}

impl Flags {
    /// The defaults with the given flags applied.
    pub(super) fn options(&self) -> Options {
        let mut options = Options::default();
        let (grace, rates) = (&mut options.grace, &mut options.rates);
        set(&mut grace.startup, self.node_startup_grace_period);
        set(&mut grace.monitor, self.node_monitor_grace_period);
        set(&mut rates.normal, self.node_eviction_rate);
        set(&mut rates.reduced, self.secondary_node_eviction_rate);
        set(&mut rates.large_zone, self.large_cluster_size_threshold);
        set(&mut rates.unhealthy_share, self.unhealthy_zone_threshold);
        set(&mut options.monitor_period, self.node_monitor_period);
        options
    }
}

fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: duration::Duration = text.parse().map_err(|error| format!("{error}"))?;
    let nanos = u64::try_from(parsed.as_nanos()).map_err(|_| "expected 0s or more".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("expected more than 0s".to_owned());
    }
    Ok(duration)
}

fn rate(text: &str) -> Result<f32, String> {
    let rate: f32 = text.parse().map_err(|error| format!("{error}"))?;
    if !rate.is_finite() || rate < 0.0 {
        return Err("expected a number of 0 or more".to_owned());
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_go_syntax_and_not_negative() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("-1s"), Err("expected 0s or more".to_owned()));
        let problem = "time: missing unit in duration \"5\"".to_owned();
        assert_eq!(duration("5"), Err(problem));
        let problem = "expected more than 0s".to_owned();
        assert_eq!(positive_duration("0s"), Err(problem));
    }

    #[test]
    fn rates_are_finite_and_not_negative() {
        assert_eq!(rate("0.1"), Ok(0.1));
        for text in ["-1", "NaN", "inf"] {
            assert_eq!(rate(text), Err("expected a number of 0 or more".to_owned()));
        }
    }
}
