use crate::config::{
    Enforcement, NodeConfig, Origin, Profile, Setting, SignalTexts, read_okd_node_config,
};
use crate::resources::{Bytes, Count, ResourceName};

use super::{Finding, Level, MachineFacts, Rule, lint_node};

fn texts(pairs: &[(&str, &str)]) -> Setting<SignalTexts> {
    let map = pairs
        .iter()
        .map(|(signal, text)| ((*signal).to_owned(), (*text).to_owned()))
        .collect();
    Setting::chosen(map, Origin::flag("eviction"))
}

fn config() -> NodeConfig {
    NodeConfig::defaults(Profile::Kubernetes136)
}

fn machine() -> MachineFacts {
    MachineFacts {
        memory: Some(Bytes(32 << 30)),
        swap: Some(Bytes::ZERO),
        root_fs: Some(Bytes(100 << 30)),
        root_fs_inodes: Some(Count(6_553_600)),
        max_pid: Some(Count(32768)),
        daemons: None,
    }
}

fn rules(findings: &[Finding]) -> Vec<(Rule, Level)> {
    findings.iter().map(|f| (f.rule, f.level)).collect()
}

fn check(config: &NodeConfig, expected: &[(Rule, Level)]) {
    assert_eq!(rules(&lint_node(config, &machine())), expected);
}

#[test]
fn the_defaults_are_clean() {
    for profile in [Profile::Kubernetes136, Profile::Okd39, Profile::Okd36] {
        let findings = lint_node(&NodeConfig::defaults(profile), &machine());
        assert_eq!(rules(&findings), [], "{profile}");
    }
}

/// Soft lines with all that they need, so that a test can break one thing.
fn with_soft_line(soft: &str, grace: &str) -> NodeConfig {
    NodeConfig {
        eviction_soft: texts(&[("memory.available", soft)]),
        eviction_soft_grace_period: texts(&[("memory.available", grace)]),
        eviction_max_pod_grace_period: Setting::defaulted(30),
        ..config()
    }
}

#[test]
fn l2_soft_must_be_the_larger_number() {
    for soft in ["100Mi", "50Mi", "0.1%"] {
        check(
            &with_soft_line(soft, "1m30s"),
            &[(Rule::SoftNotAboveHard, Level::Warning)],
        );
    }
    let findings = lint_node(&with_soft_line("101Mi", "1m30s"), &machine());
    assert!(findings.iter().all(|f| f.rule != Rule::SoftNotAboveHard));
}

#[test]
fn l3_a_soft_grace_of_zero_is_a_hard_threshold() {
    check(
        &with_soft_line("100Mi", "0s"),
        &[
            (Rule::SoftNotAboveHard, Level::Warning),
            (Rule::SoftGraceZero, Level::Warning),
        ],
    );
}

#[test]
fn l4_entries_for_signals_without_threshold_are_ignored() {
    let config = NodeConfig {
        eviction_soft_grace_period: texts(&[("pid.available", "1m")]),
        eviction_minimum_reclaim: texts(&[("pid.available", "10")]),
        ..config()
    };
    check(
        &config,
        &[
            (Rule::UnusedEvictionEntry, Level::Warning),
            (Rule::UnusedEvictionEntry, Level::Warning),
        ],
    );
}

#[test]
fn l5_setting_hard_thresholds_drops_the_defaults_left_out() {
    let mut config = config();
    config.eviction_hard = texts(&[("memory.available", "1Gi")]);
    let findings = lint_node(&config, &machine());
    assert_eq!(rules(&findings), [(Rule::DefaultsDropped, Level::Warning)]);
    assert!(findings[0].message.contains("nodefs.inodesFree<5%"));
    config.merge_default_eviction_settings = Setting::defaulted(true);
    check(&config, &[]);
}

#[test]
fn l6_inodes_are_a_count_and_thresholds_stay_below_capacity() {
    let mut config = config();
    config
        .eviction_hard
        .value
        .insert("nodefs.inodesFree".into(), "100Mi".into());
    config
        .eviction_hard
        .value
        .insert("memory.available".into(), "32Gi".into());
    let findings = lint_node(&config, &machine());
    assert_eq!(
        rules(&findings),
        [
            (Rule::ThresholdOutOfReach, Level::Error),
            (Rule::ThresholdOutOfReach, Level::Error),
        ]
    );
    assert!(findings[1].message.contains("104857600 free inodes"));
}

#[test]
fn l8_the_soft_line_belongs_inside_the_reservation() {
    let mut config = with_soft_line("500Mi", "1m30s");
    check(&config, &[(Rule::SoftLineNotCovered, Level::Warning)]);
    let memory = [(ResourceName::MEMORY, "1Gi".parse().unwrap())];
    config.system_reserved = Setting::defaulted(memory.into_iter().collect());
    check(&config, &[(Rule::SoftLineNotCovered, Level::Info)]);
    let idle = MachineFacts {
        daemons: Some(Bytes(100 << 20)),
        ..machine()
    };
    assert_eq!(rules(&lint_node(&config, &idle)), []);
}

#[test]
fn l9_swap_stops_the_node_or_delays_eviction() {
    let swapping = MachineFacts {
        swap: Some(Bytes(1 << 30)),
        ..machine()
    };
    let mut config = config();
    assert_eq!(
        rules(&lint_node(&config, &swapping)),
        [(Rule::SwapOn, Level::Error)]
    );
    config.fail_swap_on = Setting::defaulted(false);
    assert_eq!(
        rules(&lint_node(&config, &swapping)),
        [(Rule::SwapOn, Level::Warning)]
    );
}

#[test]
fn l10_soft_kills_need_a_longest_grace_period() {
    for grace in [0, -1] {
        let mut config = with_soft_line("50%", "1m30s");
        config.eviction_soft = texts(&[("pid.available", "50%")]);
        config.eviction_soft_grace_period = texts(&[("pid.available", "1m30s")]);
        config.eviction_max_pod_grace_period = Setting::defaulted(grace);
        check(&config, &[(Rule::SoftKillWithoutGrace, Level::Warning)]);
    }
}

#[test]
fn l12_limiting_daemons_is_discouraged() {
    let mut config = config();
    config.enforce_node_allocatable.value = vec![
        Enforcement::Pods,
        Enforcement::SystemReserved,
        Enforcement::KubeReservedCompressible,
    ];
    check(&config, &[(Rule::DaemonsLimited, Level::Warning)]);
}

#[test]
fn l15_logs_elsewhere_may_be_on_an_unwatched_disk() {
    let mut config = config();
    config.pod_logs_dir = Setting::chosen("/data/logs".into(), Origin::flag("pod-logs-dir"));
    check(&config, &[(Rule::DiskNotWatched, Level::Info)]);
}

#[test]
fn l16_heartbeats_fit_four_times_into_the_node_monitor_grace_period() {
    let mut config = config();
    config.node_lease_duration_seconds = Setting::defaulted(60);
    check(&config, &[(Rule::HeartbeatTooSlow, Level::Warning)]);
}

#[test]
fn every_rule_has_unique_id_and_rationale() {
    let mut ids: Vec<&str> = Rule::ALL.map(Rule::id).to_vec();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), Rule::ALL.len());
    assert!(Rule::ALL.iter().all(|rule| !rule.why().is_empty()));
}

#[test]
fn l1_l7_and_l14_are_reader_errors() {
    let rules = |text: &str| -> Vec<Rule> {
        let reading = read_okd_node_config(text.as_bytes(), Profile::Okd39);
        reading.problems.iter().map(Rule::of).collect()
    };
    assert_eq!(
        rules("kubeletArguments: {eviction-soft: ['memory.available<1Gi']}"),
        [Rule::SoftWithoutGrace]
    );
    assert_eq!(
        rules(
            "kubeletArguments: {eviction-hard: ['memory.available<1Gi', 'memory.available<2Gi']}"
        ),
        [Rule::RepeatedSignal]
    );
    assert_eq!(
        rules("kubeletArguments: {eviction-pressure-transition-period: 5m}"),
        [Rule::ScalarArgument]
    );
    assert_eq!(
        rules("kubeletArguments: {max-pods: ['x']}"),
        [Rule::Refused]
    );
}
