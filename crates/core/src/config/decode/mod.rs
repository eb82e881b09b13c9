//! Assignments to the typed configuration.
//!
//! Fields are known to have the right shape. What is left to find are invalid values, quantities
//! and numbers; those keep the default and become problems. Fields that are not applied are kept as
//! they are.

mod agent;
mod domain;
mod fields;

use crate::problem::{Problem, quoted};
use crate::resources::Count;

use super::effect::Unapplied;
use super::node_config::default_signal_texts;
use super::read::Assignment;
use super::reserved::Reserved;
use super::{CgroupDriver, MemoryReservationPolicy, NodeConfig, Profile, Setting, SwapBehavior};
use fields::Fields;

/// The kind of input that the assignments come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A KubeletConfiguration. Zeros and empty texts mean the default there.
    File,
    /// An OKD file. It is a list of flags, but loaded like a file.
    OkdFile,
    /// A command line without a file.
    Flags,
}

/// Makes the configuration; of several assignments to a field the last one counts.
pub(crate) fn decode(
    assignments: Vec<Assignment>,
    source: Source,
    profile: Profile,
    problems: &mut Vec<Problem>,
) -> NodeConfig {
    let mut config = NodeConfig::defaults(profile);
    let mut fields = Fields::new(assignments, source == Source::File, problems);
    config.places = fields.places();
    decode_reservations(&mut fields, &mut config);
    decode_eviction(&mut fields, &mut config, source);
    decode_limits(&mut fields, &mut config);
    decode_images_and_logs(&mut fields, &mut config);
    decode_node_object(&mut fields, &mut config, source);
    agent::decode(&mut fields, &mut config);
    config.unapplied = Unapplied(fields.rest());
    config
}

fn decode_reservations(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.reservation("kubeReserved", Reserved::Kube, &mut config.kube_reserved);
    fields.reservation(
        "systemReserved",
        Reserved::System,
        &mut config.system_reserved,
    );
    fields.cpu_set("reservedSystemCPUs", &mut config.reserved_system_cpus);
    fields.enforcements(
        "enforceNodeAllocatable",
        &mut config.enforce_node_allocatable,
    );
    fields.text("kubeReservedCgroup", &mut config.kube_reserved_cgroup);
    fields.text("systemReservedCgroup", &mut config.system_reserved_cgroup);
    fields.text("kubeletCgroups", &mut config.kubelet_cgroups);
    fields.text("systemCgroups", &mut config.system_cgroups);
    fields.text("--runtime-cgroups", &mut config.runtime_cgroups);
    fields.text("cgroupRoot", &mut config.cgroup_root);
    fields.bool("cgroupsPerQOS", &mut config.cgroups_per_qos);
    fields.word(
        "cgroupDriver",
        &mut config.cgroup_driver,
        CgroupDriver::from_word,
        |word| {
            let word = quoted(word);
            format!("cgroupDriver (--cgroup-driver) {word} must be \"cgroupfs\" or \"systemd\"")
        },
    );
}

/// Setting evictionHard drops every default threshold unless they are merged. A command line has
/// no defaults to drop today. Matches v1.36 cmd/kubelet/app/server.go, loadConfigFile.
fn decode_eviction(fields: &mut Fields<'_>, config: &mut NodeConfig, source: Source) {
    fields.bool(
        "mergeDefaultEvictionSettings",
        &mut config.merge_default_eviction_settings,
    );
    if source == Source::Flags && !config.profile.flags_have_default_eviction_hard() {
        config.eviction_hard = Setting::default();
    }
    fields.text_map("evictionHard", &mut config.eviction_hard);
    if config.eviction_hard.is_set() && *config.merge_default_eviction_settings {
        for (signal, text) in default_signal_texts(config.profile) {
            config.eviction_hard.value.entry(signal).or_insert(text);
        }
    }
    fields.text_map("evictionSoft", &mut config.eviction_soft);
    fields.text_map(
        "evictionSoftGracePeriod",
        &mut config.eviction_soft_grace_period,
    );
    fields.text_map(
        "evictionMinimumReclaim",
        &mut config.eviction_minimum_reclaim,
    );
    fields.int32(
        "evictionMaxPodGracePeriod",
        &mut config.eviction_max_pod_grace_period,
    );
    fields.duration(
        "evictionPressureTransitionPeriod",
        &mut config.eviction_pressure_transition_period,
    );
    fields.bool(
        "--experimental-allocatable-ignore-eviction",
        &mut config.experimental_allocatable_ignore_eviction,
    );
}

fn decode_limits(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.bool_map("featureGates", &mut config.feature_gates);
    fields.percentages("qosReserved", &mut config.qos_reserved);
    fields.int32("maxPods", &mut config.max_pods);
    fields.int32("podsPerCore", &mut config.pods_per_core);
    fields.set("podPidsLimit", &mut config.pod_pids_limit, |node| {
        // Matches v1.36 pkg/kubelet/cm/pod_container_manager_linux.go: only positive limits are
        // written.
        let limit = node.as_scalar()?.as_integer()?;
        Some((limit > 0).then_some(Count(limit)))
    });
    fields.bool("cpuCFSQuota", &mut config.cpu_cfs_quota);
    fields.exact_duration("cpuCFSQuotaPeriod", &mut config.cpu_cfs_quota_period);
    fields.bool("failSwapOn", &mut config.fail_swap_on);
    fields.word(
        "memorySwap.swapBehavior",
        &mut config.swap_behavior,
        |word| match word {
            "" => Some(SwapBehavior::NoSwap),
            _ => SwapBehavior::from_word(word),
        },
        |word| {
            let words = "\"\", \"LimitedSwap\" or \"NoSwap\"";
            let word = quoted(word);
            format!("memorySwap.swapBehavior {word} must be one of: {words}")
        },
    );
    fields.bool("failCgroupV1", &mut config.fail_cgroup_v1);
    fields.set(
        "memoryThrottlingFactor",
        &mut config.memory_throttling_factor,
        |node| node.as_scalar()?.as_float(),
    );
    fields.word(
        "memoryReservationPolicy",
        &mut config.memory_reservation_policy,
        MemoryReservationPolicy::from_word,
        |word| {
            let options = "Valid options are \"None\" or \"TieredReservation\"";
            let word = quoted(word);
            format!("option {word} specified for memoryReservationPolicy. {options}")
        },
    );
    fields.set(
        "singleProcessOOMKill",
        &mut config.single_process_oom_kill,
        |node| Some(Some(fields::bool_of(node)?)),
    );
    fields.bool(
        "localStorageCapacityIsolation",
        &mut config.local_storage_capacity_isolation,
    );
    fields.bool("protectKernelDefaults", &mut config.protect_kernel_defaults);
}

fn decode_images_and_logs(fields: &mut Fields<'_>, config: &mut NodeConfig) {
    fields.duration("imageMinimumGCAge", &mut config.image_minimum_gc_age);
    fields.duration("imageMaximumGCAge", &mut config.image_maximum_gc_age);
    fields.exact_int32(
        "imageGCHighThresholdPercent",
        &mut config.image_gc_high_threshold_percent,
    );
    fields.exact_int32(
        "imageGCLowThresholdPercent",
        &mut config.image_gc_low_threshold_percent,
    );
    fields.log_size("containerLogMaxSize", &mut config.container_log_max_size);
    fields.exact_int32("containerLogMaxFiles", &mut config.container_log_max_files);
    fields.text_or_default("podLogsDir", &mut config.pod_logs_dir);
    fields.text("staticPodPath", &mut config.static_pod_path);
    fields.text("--root-dir", &mut config.root_dir);
}

/// In a file the report frequency follows the update frequency where only that is set. Matches
/// v1.36 pkg/kubelet/apis/config/v1beta1/defaults.go.
fn decode_node_object(fields: &mut Fields<'_>, config: &mut NodeConfig, source: Source) {
    fields.duration(
        "nodeStatusUpdateFrequency",
        &mut config.node_status_update_frequency,
    );
    if source == Source::File && config.node_status_update_frequency.is_set() {
        let frequency = config.node_status_update_frequency.value;
        config.node_status_report_frequency = Setting::defaulted(frequency);
    }
    fields.duration(
        "nodeStatusReportFrequency",
        &mut config.node_status_report_frequency,
    );
    fields.int32(
        "nodeLeaseDurationSeconds",
        &mut config.node_lease_duration_seconds,
    );
    fields.text_map("--node-labels", &mut config.node_labels);
    fields.taints("registerWithTaints", &mut config.register_with_taints);
}
