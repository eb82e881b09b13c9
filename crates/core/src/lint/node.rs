//! The rules about node configurations.

use crate::config::{Enforcement, NodeConfig, Profile, Setting, SignalTexts};
use crate::quantity::{Format, Quantity};
use crate::resources::{Bytes, ResourceName};
use crate::threshold::{Duration, Signal, StarvedResource, ThresholdValue};

use super::eviction_lines::{self, Line};
use super::soft_cases::{SoftCase, SoftCaseInput, Verdict, compute_soft_cases};
use super::{Finding, Level, MachineFacts, Rule};

/// The kubelet looks at its signals this often.
const PASS_SECS: i64 = 10;

/// Heartbeats that may be lost before a node counts as silent.
const HEARTBEATS_IN_GRACE: f64 = 4.0;

/// All findings about a node's configuration on a machine.
pub fn lint_node(config: &NodeConfig, machine: &MachineFacts) -> Vec<Finding> {
    let lines = eviction_lines::compute_lines(config);
    let mut findings = Vec::new();
    for line in &lines {
        soft_not_above_hard(config, machine, line, &mut findings);
        soft_grace_zero(config, line, &mut findings);
        threshold_out_of_reach(config, machine, line, &mut findings);
    }
    unused_eviction_entries(config, &mut findings);
    defaults_dropped(config, &mut findings);
    soft_line_not_covered(config, machine, &mut findings);
    swap_on(config, machine, &mut findings);
    soft_kill_without_grace(config, &mut findings);
    daemons_limited(config, &mut findings);
    disk_not_watched(config, &mut findings);
    heartbeat_too_slow(config, &mut findings);
    transition_too_short(config, &lines, &mut findings);
    findings
}

/// A finding about one signal's entry in one of the eviction maps.
fn about_entry(
    rule: Rule,
    level: Level,
    name: &str,
    map: &Setting<SignalTexts>,
    signal: &str,
    message: String,
    fix: impl Into<String>,
) -> Finding {
    let mut finding = Finding::about(rule, level, name, map.origin.as_ref(), message, fix);
    finding.path = format!("{}[{signal}]", finding.path);
    finding
}

fn soft_not_above_hard(
    config: &NodeConfig,
    machine: &MachineFacts,
    line: &Line,
    findings: &mut Vec<Finding>,
) {
    let (Some(hard), Some(soft)) = (&line.hard, &line.soft) else {
        return;
    };
    let is_not_above = match (hard, soft) {
        (ThresholdValue::Percentage(hard), ThresholdValue::Percentage(soft)) => soft <= hard,
        _ => {
            let amount = |value| eviction_lines::amount_of(value, line.signal, machine);
            matches!((amount(hard), amount(soft)), (Some(hard), Some(soft)) if soft <= hard)
        }
    };
    if is_not_above {
        let signal = line.signal.as_str();
        let text = |map: &SignalTexts| map.get(signal).cloned().unwrap_or_default();
        let (hard, soft) = (text(&config.eviction_hard), text(&config.eviction_soft));
        findings.push(about_entry(
            Rule::SoftNotAboveHard,
            Level::Warning,
            "evictionSoft",
            &config.eviction_soft,
            signal,
            format!("soft {signal}<{soft} is not above hard {signal}<{hard}"),
            format!("choose a soft value larger than {hard}: less is used when it is crossed"),
        ));
    }
}

fn soft_grace_zero(config: &NodeConfig, line: &Line, findings: &mut Vec<Finding>) {
    if line.grace == Some(Duration::ZERO) {
        findings.push(about_entry(
            Rule::SoftGraceZero,
            Level::Warning,
            "evictionSoftGracePeriod",
            &config.eviction_soft_grace_period,
            line.signal.as_str(),
            format!("soft threshold {} acts without waiting", line.signal),
            "give it a grace period, or move it to evictionHard",
        ));
    }
}

fn threshold_out_of_reach(
    config: &NodeConfig,
    machine: &MachineFacts,
    line: &Line,
    findings: &mut Vec<Finding>,
) {
    let lists = [
        ("evictionHard", &config.eviction_hard, &line.hard),
        ("evictionSoft", &config.eviction_soft, &line.soft),
    ];
    for (name, map, value) in lists {
        let Some(ThresholdValue::Quantity(quantity)) = value else {
            continue;
        };
        let amount = quantity.value();
        let is_inodes = line.signal.resource() == StarvedResource::Inodes;
        let capacity = machine.capacity_of(line.signal);
        let message = if is_inodes && quantity.format() == Format::BinarySi {
            format!(
                "{}<{quantity} means {amount} free inodes: a count, not bytes{}",
                line.signal,
                capacity.map_or(String::new(), |have| format!(
                    "; this file system has {have}"
                ))
            )
        } else if capacity.is_some_and(|capacity| amount >= capacity) {
            let have = Quantity::new(capacity.unwrap_or_default(), quantity.format());
            format!(
                "{}<{quantity} cannot be satisfied: capacity is {have}",
                line.signal
            )
        } else {
            continue;
        };
        findings.push(about_entry(
            Rule::ThresholdOutOfReach,
            Level::Error,
            name,
            map,
            line.signal.as_str(),
            message,
            if is_inodes {
                "use a percentage, for example 5%"
            } else {
                "choose a value below the capacity"
            },
        ));
    }
}

fn unused_eviction_entries(config: &NodeConfig, findings: &mut Vec<Finding>) {
    let is_soft = |signal: &str| config.eviction_soft.contains_key(signal);
    let is_hard = |signal: &str| config.eviction_hard.contains_key(signal);
    let grace = &config.eviction_soft_grace_period;
    for signal in grace.keys().filter(|signal| !is_soft(signal)) {
        findings.push(about_entry(
            Rule::UnusedEvictionEntry,
            Level::Warning,
            "evictionSoftGracePeriod",
            grace,
            signal,
            format!("grace period for {signal}, which has no soft threshold"),
            format!("add evictionSoft[{signal}], or remove the grace period"),
        ));
    }
    let reclaim = &config.eviction_minimum_reclaim;
    for signal in reclaim
        .keys()
        .filter(|signal| !is_soft(signal) && !is_hard(signal))
    {
        findings.push(about_entry(
            Rule::UnusedEvictionEntry,
            Level::Warning,
            "evictionMinimumReclaim",
            reclaim,
            signal,
            format!("minimum reclaim for {signal}, which has no threshold"),
            format!("add evictionHard[{signal}], or remove the minimum reclaim"),
        ));
    }
}

fn defaults_dropped(config: &NodeConfig, findings: &mut Vec<Finding>) {
    if !config.eviction_hard.is_set() || *config.merge_default_eviction_settings {
        return;
    }
    let missing: Vec<String> = config
        .profile
        .default_eviction_hard()
        .iter()
        .filter(|(signal, _)| !config.eviction_hard.contains_key(*signal))
        .map(|(signal, text)| format!("{signal}<{text}"))
        .collect();
    if !missing.is_empty() {
        findings.push(Finding::about(
            Rule::DefaultsDropped,
            Level::Warning,
            "evictionHard",
            config.eviction_hard.origin.as_ref(),
            format!("the defaults {} no longer hold", missing.join(", ")),
            match config.profile {
                Profile::Kubernetes136 => {
                    "list all signals, or set mergeDefaultEvictionSettings: true"
                }
                // Those releases do not have the setting.
                Profile::Okd39 | Profile::Okd36 => "list all signals",
            },
        ));
    }
}

/// The soft-versus-reserved arithmetic for memory; `None` without a soft line or a capacity.
pub fn compute_memory_cases(config: &NodeConfig, machine: &MachineFacts) -> Option<[SoftCase; 3]> {
    let capacity = machine.memory?;
    let lines = eviction_lines::compute_lines(config);
    let line = lines
        .iter()
        .find(|line| line.signal == Signal::MemoryAvailable)?;
    let amount = |value| eviction_lines::amount_of(value, line.signal, machine).map(Bytes);
    let reserved_in = |list: &crate::resources::ResourceList| {
        Bytes::from_quantity(&list.get_or_zero(&ResourceName::MEMORY))
    };
    let reserved = reserved_in(&config.kube_reserved) + reserved_in(&config.system_reserved);
    Some(compute_soft_cases(&SoftCaseInput {
        capacity,
        daemons: machine.daemons.unwrap_or(reserved),
        reserved,
        hard: line.hard.as_ref().and_then(amount).unwrap_or_default(),
        soft: amount(line.soft.as_ref()?)?,
        has_allocatable_twin: eviction_lines::has_allocatable_twin(config),
    }))
}

fn soft_line_not_covered(config: &NodeConfig, machine: &MachineFacts, findings: &mut Vec<Finding>) {
    let Some([configured, covered, _]) = compute_memory_cases(config, machine) else {
        return;
    };
    if configured.verdict() != Verdict::RequestsNotSafe {
        return;
    }
    // Without a measurement it is certain only where not even idle daemons would fit.
    let distance = covered.reserved.saturating_sub(configured.reserved);
    let (level, daemons) = match machine.daemons {
        Some(measured) => (
            Level::Warning,
            format!("with daemons using {}", measured.readable()),
        ),
        None if configured.reserved < distance => {
            (Level::Warning, "even with idle daemons".to_owned())
        }
        None => (
            Level::Info,
            format!(
                "if daemons use all of their {}",
                configured.reserved.readable()
            ),
        ),
    };
    findings.push(Finding::about(
        Rule::SoftLineNotCovered,
        level,
        "systemReserved",
        config.system_reserved.origin.as_ref(),
        format!(
            "pods may request {} but cross the soft line at {}, {daemons}",
            configured.allocatable.readable(),
            configured.soft_fires_above.readable()
        ),
        format!(
            "reserve {} of memory in all, or accept soft evictions of pods within their requests",
            covered.reserved.readable()
        ),
    ));
}

fn swap_on(config: &NodeConfig, machine: &MachineFacts, findings: &mut Vec<Finding>) {
    let Some(swap) = machine.swap.filter(|swap| *swap > Bytes::ZERO) else {
        return;
    };
    let (level, message) = if *config.fail_swap_on {
        (
            Level::Error,
            format!(
                "{} of swap is on and failSwapOn is true: the node does not start",
                swap.readable()
            ),
        )
    } else {
        (
            Level::Warning,
            format!(
                "{} of swap is on: memory eviction comes late",
                swap.readable()
            ),
        )
    };
    findings.push(Finding::about(
        Rule::SwapOn,
        level,
        "failSwapOn",
        config.fail_swap_on.origin.as_ref(),
        message,
        "turn swap off (swapoff -a, and remove it from /etc/fstab)",
    ));
}

fn soft_kill_without_grace(config: &NodeConfig, findings: &mut Vec<Finding>) {
    let grace = &config.eviction_max_pod_grace_period;
    if config.eviction_soft.is_empty() || **grace > 0 {
        return;
    }
    findings.push(Finding::about(
        Rule::SoftKillWithoutGrace,
        Level::Warning,
        "evictionMaxPodGracePeriod",
        grace.origin.as_ref(),
        format!(
            "evictionMaxPodGracePeriod is {}: soft eviction kills within a second",
            **grace
        ),
        "set it to the longest time pods may take to end, for example 30",
    ));
}

fn daemons_limited(config: &NodeConfig, findings: &mut Vec<Finding>) {
    let enforced = &config.enforce_node_allocatable;
    for key in [Enforcement::SystemReserved, Enforcement::KubeReserved] {
        if enforced.contains(&key) {
            findings.push(Finding::about(
                Rule::DaemonsLimited,
                Level::Warning,
                "enforceNodeAllocatable",
                enforced.origin.as_ref(),
                format!("{key} puts a memory limit on daemons"),
                format!("enforce pods only, or {key}-compressible, which limits cpu alone"),
            ));
        }
    }
}

fn disk_not_watched(config: &NodeConfig, findings: &mut Vec<Finding>) {
    let logs = &config.pod_logs_dir;
    if !logs.is_set() || logs.starts_with(config.root_dir.as_str()) {
        return;
    }
    findings.push(Finding::about(
        Rule::DiskNotWatched,
        Level::Info,
        "podLogsDir",
        logs.origin.as_ref(),
        format!(
            "logs go to {}; if that is another disk than the one of {}, no eviction signal covers it",
            **logs, *config.root_dir
        ),
        "keep podLogsDir on the disk of the root directory",
    ));
}

fn heartbeat_too_slow(config: &NodeConfig, findings: &mut Vec<Finding>) {
    let grace = config.profile.node_monitor_grace_seconds();
    let status = &config.node_status_update_frequency;
    let lease = &config.node_lease_duration_seconds;
    // A lease is renewed four times while it holds.
    let periods = [
        (
            "nodeStatusUpdateFrequency",
            status.origin.as_ref(),
            status.as_secs_f64(),
        ),
        (
            "nodeLeaseDurationSeconds",
            lease.origin.as_ref(),
            f64::from(**lease) / 4.0,
        ),
    ];
    for (path, origin, period) in periods {
        #[expect(clippy::cast_precision_loss, reason = "a few tens of seconds")]
        let grace = grace as f64;
        if period * HEARTBEATS_IN_GRACE > grace {
            findings.push(Finding::about(
                Rule::HeartbeatTooSlow,
                Level::Warning,
                path,
                origin,
                format!(
                    "a heartbeat every {period} s, while a node counts as lost after {grace} s"
                ),
                format!("keep it at or below {} s", grace / HEARTBEATS_IN_GRACE),
            ));
        }
    }
}

fn transition_too_short(config: &NodeConfig, lines: &[Line], findings: &mut Vec<Finding>) {
    let transition = &config.eviction_pressure_transition_period;
    let longest_grace = lines.iter().filter_map(|line| line.grace).max();
    let needed = longest_grace
        .unwrap_or(Duration::ZERO)
        .max(Duration::from_secs(2 * PASS_SECS));
    if **transition < needed {
        findings.push(Finding::about(
            Rule::TransitionTooShort,
            Level::Warning,
            "evictionPressureTransitionPeriod",
            transition.origin.as_ref(),
            format!("{} is shorter than {needed}", **transition),
            format!("set it to at least {needed}; the default is 5m"),
        ));
    }
}
