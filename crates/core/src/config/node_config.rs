//! The configuration of a node's resources.

use std::collections::BTreeMap;

use crate::object::taint::Taint;
use crate::resources::{Bytes, Count, ResourceList, ResourceName};
use crate::threshold::{Duration, Statements};

use super::effect::Unapplied;
use super::{
    AuthorizationMode, CgroupDriver, CpuSet, Enforcement, MemoryReservationPolicy, Origin, Profile,
    Setting, SwapBehavior,
};

/// Texts by eviction signal, as evictionHard and its siblings hold them.
///
/// They stay texts so that errors can quote them; `threshold` parses them.
pub type SignalTexts = BTreeMap<String, String>;

/// How long pods of a priority and up may take when the machine shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownGracePeriod {
    /// The least priority.
    pub priority: i32,
    /// How long they may take.
    pub grace_secs: i64,
}

/// The configuration of one node, whichever file or flags it came from.
///
/// Names and meanings are those of KubeletConfiguration v1beta1; a zero that upstream takes for
/// "unset" has been replaced by the default. Values are those the node runs with, each one with
/// the place where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// The release whose defaults hold.
    pub profile: Profile,

    /// The reservation for the kubelet and the runtime.
    pub kube_reserved: Setting<ResourceList>,
    /// The reservation for the rest of the system.
    pub system_reserved: Setting<ResourceList>,
    /// CPUs kept from pods; replaces both CPU reservations where not empty.
    pub reserved_system_cpus: Setting<CpuSet>,
    /// Where reservations are enforced.
    pub enforce_node_allocatable: Setting<Vec<Enforcement>>,
    /// The cgroup that `kube_reserved` limits; empty for none.
    pub kube_reserved_cgroup: Setting<String>,
    /// The cgroup that `system_reserved` limits; empty for none.
    pub system_reserved_cgroup: Setting<String>,
    /// The cgroup the kubelet moves itself into; empty for none.
    pub kubelet_cgroups: Setting<String>,
    /// The cgroup for processes that are in none; empty for none.
    pub system_cgroups: Setting<String>,
    /// The cgroup the runtime is expected in; empty for none. A flag only.
    pub runtime_cgroups: Setting<String>,
    /// The cgroup above `kubepods`; empty for the root.
    pub cgroup_root: Setting<String>,
    /// Whether QoS tiers and pods have cgroups.
    pub cgroups_per_qos: Setting<bool>,
    /// Which program creates the cgroups.
    pub cgroup_driver: Setting<CgroupDriver>,

    /// Hard thresholds, with the defaults where they hold.
    pub eviction_hard: Setting<SignalTexts>,
    /// Soft thresholds.
    pub eviction_soft: Setting<SignalTexts>,
    /// How long a soft threshold must be met before it acts.
    pub eviction_soft_grace_period: Setting<SignalTexts>,
    /// The minimum reclaim beyond the threshold.
    pub eviction_minimum_reclaim: Setting<SignalTexts>,
    /// The longest grace period of a soft eviction, in seconds.
    pub eviction_max_pod_grace_period: Setting<i32>,
    /// How long a pressure condition outlives its threshold.
    pub eviction_pressure_transition_period: Setting<Duration>,
    /// Whether default hard thresholds fill in the signals `eviction_hard` leaves out.
    pub merge_default_eviction_settings: Setting<bool>,
    /// Whether hard thresholds are left out of allocatable. A flag only.
    pub experimental_allocatable_ignore_eviction: Setting<bool>,

    /// Percent of the requests of higher tiers kept from lower ones (gate `QOSReserved`).
    pub qos_reserved: Setting<BTreeMap<ResourceName, u8>>,
    /// The most pods.
    pub max_pods: Setting<i32>,
    /// The most pods per core; zero for no such limit.
    pub pods_per_core: Setting<i32>,
    /// The most processes in a pod; `None` for as many as the node has.
    pub pod_pids_limit: Setting<Option<Count>>,
    /// Whether CPU limits are enforced.
    pub cpu_cfs_quota: Setting<bool>,
    /// Over which period they are.
    pub cpu_cfs_quota_period: Setting<Duration>,
    /// Whether the node refuses to start with swap.
    pub fail_swap_on: Setting<bool>,
    /// How containers may use swap.
    pub swap_behavior: Setting<SwapBehavior>,
    /// Whether the node refuses to start on cgroup v1.
    pub fail_cgroup_v1: Setting<bool>,
    /// Where `memory.high` is between request and limit (gate `MemoryQoS`).
    pub memory_throttling_factor: Setting<f64>,
    /// Whether requests are protected from reclaim (gate `MemoryQoS`).
    pub memory_reservation_policy: Setting<MemoryReservationPolicy>,
    /// Whether only one process of a container dies of memory shortage; `None` decides by the
    /// cgroup version.
    pub single_process_oom_kill: Setting<Option<bool>>,
    /// Whether disk use of pods is limited and measured.
    pub local_storage_capacity_isolation: Setting<bool>,
    /// Whether wrong kernel settings stop the node instead of being put right.
    pub protect_kernel_defaults: Setting<bool>,

    /// How long an unused image is kept at least.
    pub image_minimum_gc_age: Setting<Duration>,
    /// How long an unused image is kept at most; zero for no such limit.
    pub image_maximum_gc_age: Setting<Duration>,
    /// Disk usage above which images are deleted, in percent.
    pub image_gc_high_threshold_percent: Setting<i32>,
    /// Disk usage down to which images are deleted, in percent.
    pub image_gc_low_threshold_percent: Setting<i32>,
    /// Size at which a container's log is rotated.
    pub container_log_max_size: Setting<Bytes>,
    /// Number of log files kept per container.
    pub container_log_max_files: Setting<i32>,

    /// How often the node computes its status.
    pub node_status_update_frequency: Setting<Duration>,
    /// How often it reports an unchanged one.
    pub node_status_report_frequency: Setting<Duration>,
    /// How long its lease holds.
    pub node_lease_duration_seconds: Setting<i32>,
    /// Labels of the node object. A flag only.
    pub node_labels: Setting<BTreeMap<String, String>>,
    /// Taints of the node object when it registers.
    pub register_with_taints: Setting<Vec<Taint>>,

    /// Where static pods are read from; empty for nowhere.
    pub static_pod_path: Setting<String>,
    /// Where pods' logs are.
    pub pod_logs_dir: Setting<String>,
    /// Where the node keeps its files. A flag only.
    pub root_dir: Setting<String>,
    /// How often static pods are read even if no change is seen.
    pub file_check_frequency: Setting<Duration>,

    /// The address of the kubelet API; a flag decides.
    pub address: Setting<String>,
    /// The port of the kubelet API; a flag decides.
    pub port: Setting<i32>,
    /// The address of the health endpoint; a flag decides.
    pub healthz_bind_address: Setting<String>,
    /// The port of the health endpoint, zero for none; a flag decides.
    pub healthz_port: Setting<i32>,
    /// The certificate of the kubelet API; empty for one that the cluster or the node signs.
    pub tls_cert_file: Setting<String>,
    /// Its key.
    pub tls_private_key_file: Setting<String>,
    /// Whether the client certificate of the node is renewed.
    pub rotate_certificates: Setting<bool>,
    /// Whether the cluster signs the certificate of the kubelet API.
    pub server_tls_bootstrap: Setting<bool>,
    /// The authority of clients of the kubelet API; empty for the cluster's.
    pub client_ca_file: Setting<String>,
    /// Whether the API server names the user of a token.
    pub token_webhook: Setting<bool>,
    /// How long such an answer holds.
    pub token_cache_ttl: Setting<Duration>,
    /// Whether clients without credentials reach authorization, as anonymous.
    pub anonymous_auth: Setting<bool>,
    /// What decides what clients may do.
    pub authorization_mode: Setting<AuthorizationMode>,
    /// How long a permission holds.
    pub authorized_cache_ttl: Setting<Duration>,
    /// How long a denial holds.
    pub unauthorized_cache_ttl: Setting<Duration>,
    /// Whether there are logs, commands and ports of containers.
    pub enable_debugging_handlers: Setting<bool>,
    /// Whether the log directory of the machine is shown.
    pub enable_system_log_handler: Setting<bool>,
    /// How long nothing may happen on the connection of a command or a port.
    pub streaming_connection_idle_timeout: Setting<Duration>,

    /// The socket of the container runtime; a flag decides.
    pub container_runtime_endpoint: Setting<String>,
    /// The socket of its images, if it is another; empty if not.
    pub image_service_endpoint: Setting<String>,
    /// How long a request to the runtime may take.
    pub runtime_request_timeout: Setting<Duration>,
    /// Image pulls per second; zero for no limit.
    pub registry_pull_qps: Setting<i32>,
    /// Image pulls that may exceed it in a burst.
    pub registry_burst: Setting<i32>,
    /// Whether images are pulled one by one; `None` for yes, unless more are allowed at once.
    pub serialize_image_pulls: Setting<Option<bool>>,
    /// Image pulls at once; `None` for no limit.
    pub max_parallel_image_pulls: Setting<Option<i32>>,
    /// How often logs of containers are looked at.
    pub container_log_monitor_interval: Setting<Duration>,

    /// How often a pod at rest is looked at.
    pub sync_frequency: Setting<Duration>,
    /// The longest wait before a container is started again.
    pub max_container_restart_period: Setting<Duration>,
    /// The domain of the cluster's services.
    pub cluster_domain: Setting<String>,
    /// The name servers of pods.
    pub cluster_dns: Setting<Vec<String>>,
    /// The file that pods have their name servers from; empty for none.
    pub resolv_conf: Setting<String>,
    /// Whether containers without a seccomp profile have the runtime's.
    pub seccomp_default: Setting<bool>,
    /// Sysctls that pods may set beyond the safe ones, names or prefixes with `*`.
    pub allowed_unsafe_sysctls: Setting<Vec<String>>,
    /// How many user and group ids a pod with users of its own has.
    pub user_namespace_ids_per_pod: Setting<i64>,

    /// How many images the node's status lists; -1 for all.
    pub node_status_max_images: Setting<i32>,
    /// The id of the machine at its provider; empty for none.
    pub provider_id: Setting<String>,
    /// How many files the agent may have open.
    pub max_open_files: Setting<i64>,
    /// How long a shutdown of the machine waits for pods.
    pub shutdown_grace_period: Setting<Duration>,
    /// How much of it is kept for critical pods.
    pub shutdown_grace_period_critical_pods: Setting<Duration>,
    /// The same by priority.
    pub shutdown_grace_period_by_pod_priority: Setting<Vec<ShutdownGracePeriod>>,

    /// Where each field and each entry of a map or list was set, by its path in
    /// KubeletConfiguration: `evictionHard[memory.available]`. Flags without a field stand under
    /// `--name`.
    pub places: BTreeMap<String, Origin>,
    /// Feature gates that were set.
    pub feature_gates: Setting<BTreeMap<String, bool>>,
    /// Every other known field that was set; [`super::effect`] says what becomes of them.
    pub unapplied: Unapplied,
}

impl NodeConfig {
    /// A node without any configuration.
    ///
    /// Matches v1.36 pkg/kubelet/apis/config/v1beta1/defaults.go and
    /// cmd/kubelet/app/options/options.go, with the profile's differences.
    pub fn defaults(profile: Profile) -> NodeConfig {
        let eviction_hard = default_signal_texts(profile);
        NodeConfig {
            profile,
            kube_reserved: Setting::default(),
            system_reserved: Setting::default(),
            reserved_system_cpus: Setting::default(),
            enforce_node_allocatable: Setting::defaulted(vec![Enforcement::Pods]),
            kube_reserved_cgroup: Setting::default(),
            system_reserved_cgroup: Setting::default(),
            kubelet_cgroups: Setting::default(),
            system_cgroups: Setting::default(),
            runtime_cgroups: Setting::default(),
            cgroup_root: Setting::default(),
            cgroups_per_qos: Setting::defaulted(true),
            cgroup_driver: Setting::defaulted(profile.default_cgroup_driver()),
            eviction_hard: Setting::defaulted(eviction_hard),
            eviction_soft: Setting::default(),
            eviction_soft_grace_period: Setting::default(),
            eviction_minimum_reclaim: Setting::default(),
            eviction_max_pod_grace_period: Setting::default(),
            eviction_pressure_transition_period: Setting::defaulted(Duration::from_secs(300)),
            merge_default_eviction_settings: Setting::default(),
            experimental_allocatable_ignore_eviction: Setting::default(),
            qos_reserved: Setting::default(),
            max_pods: Setting::defaulted(profile.default_max_pods()),
            pods_per_core: Setting::defaulted(profile.default_pods_per_core()),
            pod_pids_limit: Setting::default(),
            cpu_cfs_quota: Setting::defaulted(true),
            cpu_cfs_quota_period: Setting::defaulted(Duration::from_nanos(100_000_000)),
            fail_swap_on: Setting::defaulted(profile.default_fail_swap_on()),
            swap_behavior: Setting::defaulted(SwapBehavior::NoSwap),
            fail_cgroup_v1: Setting::defaulted(profile.default_fail_cgroup_v1()),
            memory_throttling_factor: Setting::defaulted(0.9),
            memory_reservation_policy: Setting::defaulted(MemoryReservationPolicy::None),
            single_process_oom_kill: Setting::default(),
            local_storage_capacity_isolation: Setting::defaulted(true),
            protect_kernel_defaults: Setting::default(),
            image_minimum_gc_age: Setting::defaulted(Duration::from_secs(120)),
            image_maximum_gc_age: Setting::default(),
            image_gc_high_threshold_percent: Setting::defaulted(
                profile.default_image_gc_high_threshold_percent(),
            ),
            image_gc_low_threshold_percent: Setting::defaulted(80),
            container_log_max_size: Setting::defaulted(Bytes(10 << 20)),
            container_log_max_files: Setting::defaulted(5),
            node_status_update_frequency: Setting::defaulted(Duration::from_secs(10)),
            node_status_report_frequency: Setting::defaulted(Duration::from_secs(300)),
            node_lease_duration_seconds: Setting::defaulted(40),
            node_labels: Setting::default(),
            register_with_taints: Setting::default(),
            static_pod_path: Setting::default(),
            pod_logs_dir: Setting::defaulted("/var/log/pods".to_owned()),
            root_dir: Setting::defaulted("/var/lib/kubelet".to_owned()),
            file_check_frequency: Setting::defaulted(Duration::from_secs(20)),
            address: Setting::defaulted("0.0.0.0".to_owned()),
            port: Setting::defaulted(10_250),
            healthz_bind_address: Setting::defaulted("127.0.0.1".to_owned()),
            healthz_port: Setting::defaulted(10_248),
            tls_cert_file: Setting::default(),
            tls_private_key_file: Setting::default(),
            rotate_certificates: Setting::default(),
            server_tls_bootstrap: Setting::default(),
            client_ca_file: Setting::default(),
            token_webhook: Setting::defaulted(true),
            token_cache_ttl: Setting::defaulted(Duration::from_secs(120)),
            anonymous_auth: Setting::default(),
            authorization_mode: Setting::default(),
            authorized_cache_ttl: Setting::defaulted(Duration::from_secs(300)),
            unauthorized_cache_ttl: Setting::defaulted(Duration::from_secs(30)),
            enable_debugging_handlers: Setting::defaulted(true),
            enable_system_log_handler: Setting::defaulted(true),
            streaming_connection_idle_timeout: Setting::defaulted(Duration::from_secs(4 * 3600)),
            container_runtime_endpoint: Setting::default(),
            image_service_endpoint: Setting::default(),
            runtime_request_timeout: Setting::defaulted(Duration::from_secs(120)),
            registry_pull_qps: Setting::defaulted(5),
            registry_burst: Setting::defaulted(10),
            serialize_image_pulls: Setting::default(),
            max_parallel_image_pulls: Setting::default(),
            container_log_monitor_interval: Setting::defaulted(Duration::from_secs(10)),
            sync_frequency: Setting::defaulted(Duration::from_secs(60)),
            max_container_restart_period: Setting::defaulted(Duration::from_secs(300)),
            cluster_domain: Setting::default(),
            cluster_dns: Setting::default(),
            resolv_conf: Setting::defaulted("/etc/resolv.conf".to_owned()),
            seccomp_default: Setting::default(),
            allowed_unsafe_sysctls: Setting::default(),
            user_namespace_ids_per_pod: Setting::defaulted(65_536),
            node_status_max_images: Setting::defaulted(50),
            provider_id: Setting::default(),
            max_open_files: Setting::defaulted(1_000_000),
            shutdown_grace_period: Setting::default(),
            shutdown_grace_period_critical_pods: Setting::default(),
            shutdown_grace_period_by_pod_priority: Setting::default(),
            places: BTreeMap::new(),
            feature_gates: Setting::default(),
            unapplied: Unapplied::default(),
        }
    }

    /// Where a field or an entry of it was set; for an entry that was not, where its field was.
    pub fn origin_of(&self, path: &str) -> Option<&Origin> {
        let field = path.split_once('[').map_or(path, |(field, _)| field);
        self.places.get(path).or_else(|| self.places.get(field))
    }

    /// The eviction settings as `threshold` reads them. Ignoring hard thresholds in allocatable
    /// also drops the threshold on all pods together. Matches v1.36 pkg/kubelet/kubelet.go.
    pub fn eviction_statements(&self) -> Statements {
        let enforced = match *self.experimental_allocatable_ignore_eviction {
            true => &[],
            false => self.enforce_node_allocatable.as_slice(),
        };
        Statements {
            hard: self.eviction_hard.value.clone(),
            soft: self.eviction_soft.value.clone(),
            soft_grace_period: self.eviction_soft_grace_period.value.clone(),
            minimum_reclaim: self.eviction_minimum_reclaim.value.clone(),
            enforce_node_allocatable: enforced.iter().map(ToString::to_string).collect(),
        }
    }

    /// Whether an alpha gate is on. Only for gates that are off by default.
    pub fn is_alpha_gate_on(&self, gate: &str) -> bool {
        self.is_gate_on(gate, "AllAlpha")
    }

    /// Whether a beta gate is on. Only for gates that are off by default.
    pub fn is_beta_gate_on(&self, gate: &str) -> bool {
        self.is_gate_on(gate, "AllBeta")
    }

    fn is_gate_on(&self, gate: &str, all: &str) -> bool {
        let all = self.feature_gates.get(all).copied();
        let own = self.feature_gates.get(gate).copied();
        own.or(all).unwrap_or(false)
    }
}

/// The profile's default hard thresholds as a map.
pub(super) fn default_signal_texts(profile: Profile) -> SignalTexts {
    let pairs = profile.default_eviction_hard().iter();
    pairs
        .map(|(signal, text)| ((*signal).to_owned(), (*text).to_owned()))
        .collect()
}
