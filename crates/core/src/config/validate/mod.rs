//! Validation: the errors with which a kubelet would refuse to start.
//!
//! Matches v1.36 pkg/kubelet/apis/config/validation/validation.go, message for message, with the
//! refusals that come later at start. Rules that need the machine are not here: capacity, swap, the
//! cgroup version. Fixed values (`cgroupDriver: docker`) are checked while decoding, since no type
//! holds an unknown one.

mod node_labels;
mod ranges;

pub use node_labels::may_label_itself;

use std::collections::BTreeSet;

use crate::duration::Duration;
use crate::problem::{Problem, quoted};

use super::{Enforcement, MemoryReservationPolicy, NodeConfig};

/// Every rule that the configuration breaks.
pub fn validate(config: &NodeConfig) -> Vec<Problem> {
    let mut refusals = Refusals {
        config,
        problems: Vec::new(),
    };
    validate_numbers(&mut refusals);
    validate_images(&mut refusals);
    validate_enforcement(&mut refusals);
    validate_reserved_cpus(&mut refusals);
    validate_memory_qos(&mut refusals);
    validate_paths(&mut refusals);
    node_labels::validate(&mut refusals);
    ranges::validate(&mut refusals);
    let mut problems = refusals.problems;
    problems.extend(threshold_problems(config));
    problems
}

/// The problems found so far, with the places to report them at.
struct Refusals<'a> {
    config: &'a NodeConfig,
    problems: Vec<Problem>,
}

impl Refusals<'_> {
    /// Reports the sentence at the field, if the rule is broken.
    fn check(&mut self, is_broken: bool, field: &str, sentence: impl FnOnce() -> String) {
        if is_broken {
            let sentence = format!("invalid configuration: {}", sentence());
            let problem = relocate(self.config, Problem::refused(field, sentence));
            self.problems.push(problem);
        }
    }
}

/// Moves a problem from KubeletConfiguration's path to the place in the source.
fn relocate(config: &NodeConfig, mut problem: Problem) -> Problem {
    if let Some(origin) = config.places.get(&problem.path) {
        let position = origin.position;
        problem.path.clone_from(&origin.path);
        return problem.at(position);
    }
    let (field, entry) = match problem.path.find('[') {
        Some(at) => problem.path.split_at(at),
        None => (problem.path.as_str(), ""),
    };
    if let Some(origin) = config.places.get(field) {
        let position = origin.position;
        problem.path = format!("{}{entry}", origin.path);
        return problem.at(position);
    }
    problem
}

/// A missing grace period has no place of its own; it stands where its threshold does.
fn threshold_problems(config: &NodeConfig) -> impl Iterator<Item = Problem> {
    let problems = config.eviction_statements().problems();
    problems.into_iter().map(|problem| {
        let threshold = problem
            .path
            .replace("evictionSoftGracePeriod", "evictionSoft");
        let problem = relocate(config, problem);
        match problem.position {
            Some(_) => problem,
            None => problem.at(config
                .origin_of(&threshold)
                .and_then(|origin| origin.position)),
        }
    })
}

fn validate_numbers(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    refusals.check(
        *config.node_lease_duration_seconds <= 0,
        "nodeLeaseDurationSeconds",
        || "nodeLeaseDurationSeconds must be greater than 0".to_owned(),
    );
    refusals.check(
        !config.system_cgroups.is_empty() && config.cgroup_root.is_empty(),
        "systemCgroups",
        || {
            "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was \
             not specified"
                .to_owned()
        },
    );
    let period = *config.cpu_cfs_quota_period;
    let (shortest, longest) = (Duration::from_nanos(1_000_000), Duration::from_secs(1));
    refusals.check(
        period < shortest || period > longest,
        "cpuCFSQuotaPeriod",
        || {
            format!(
                "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {period} must be between 1ms and \
                 1sec, inclusive"
            )
        },
    );
    for (value, field, flag) in [
        (*config.max_pods, "maxPods", "--max-pods"),
        (*config.pods_per_core, "podsPerCore", "--pods-per-core"),
    ] {
        refusals.check(value < 0, field, || {
            format!("{field} ({flag}) {value} must not be a negative number")
        });
    }
    refusals.check(
        *config.container_log_max_files <= 1,
        "containerLogMaxFiles",
        || "containerLogMaxFiles must be greater than 1".to_owned(),
    );
}

fn validate_images(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    let high = *config.image_gc_high_threshold_percent;
    let low = *config.image_gc_low_threshold_percent;
    let high_name = "imageGCHighThresholdPercent (--image-gc-high-threshold)";
    let low_name = "imageGCLowThresholdPercent (--image-gc-low-threshold)";
    for (percent, field, name) in [
        (high, "imageGCHighThresholdPercent", high_name),
        (low, "imageGCLowThresholdPercent", low_name),
    ] {
        refusals.check(!(0..=100).contains(&percent), field, || {
            format!("{name} {percent} must be between 0 and 100, inclusive")
        });
    }
    refusals.check(low >= high, "imageGCLowThresholdPercent", || {
        format!("{low_name} {low} must be less than {high_name} {high}")
    });
    let minimum = *config.image_minimum_gc_age;
    let maximum = *config.image_maximum_gc_age;
    for (age, field) in [
        (minimum, "imageMinimumGCAge"),
        (maximum, "imageMaximumGCAge"),
    ] {
        refusals.check(age.is_negative(), field, || {
            format!("{field} {age} must not be negative")
        });
    }
    refusals.check(
        maximum > Duration::ZERO && maximum <= minimum,
        "imageMaximumGCAge",
        || format!("imageMaximumGCAge {maximum} must be greater than imageMinimumGCAge {minimum}"),
    );
}

const ENFORCEMENT_FIELD: &str = "enforceNodeAllocatable";
const ENFORCEMENT_NAME: &str = "enforceNodeAllocatable (--enforce-node-allocatable)";

fn validate_enforcement(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    let enforcements = &config.enforce_node_allocatable.value;
    let pairs = [
        (
            Enforcement::SystemReserved,
            Enforcement::SystemReservedCompressible,
        ),
        (
            Enforcement::KubeReserved,
            Enforcement::KubeReservedCompressible,
        ),
    ];
    for (full, compressible) in pairs {
        let both = enforcements.contains(&full) && enforcements.contains(&compressible);
        refusals.check(both, ENFORCEMENT_FIELD, || {
            let (full, compressible) = (full.as_str(), compressible.as_str());
            format!("both {full:?} and {compressible:?} cannot be specified together in {ENFORCEMENT_NAME}")
        });
    }
    let mut seen = BTreeSet::new();
    for (index, enforcement) in enforcements.iter().enumerate() {
        let word = enforcement.as_str();
        let field = format!("{ENFORCEMENT_FIELD}[{index}]");
        if !seen.insert(enforcement) {
            refusals.check(true, &field, || {
                format!("duplicated enforcements {word:?} in {ENFORCEMENT_NAME}")
            });
            continue;
        }
        validate_one_enforcement(refusals, *enforcement, &field);
        let is_none = *enforcement == Enforcement::None;
        refusals.check(!is_none && !*config.cgroups_per_qos, &field, || {
            format!(
                "cgroupsPerQOS (--cgroups-per-qos) must be set to true when {word:?} contained in \
                 {ENFORCEMENT_NAME}"
            )
        });
    }
}

fn validate_one_enforcement(refusals: &mut Refusals<'_>, enforcement: Enforcement, field: &str) {
    let config = refusals.config;
    let needs_cgroup = |name: &str, words: &str| {
        format!("{name} must be specified when {words} included in {ENFORCEMENT_NAME}")
    };
    match enforcement {
        Enforcement::Pods => {}
        Enforcement::SystemReserved | Enforcement::SystemReservedCompressible => {
            refusals.check(config.system_reserved_cgroup.is_empty(), field, || {
                needs_cgroup(
                    "systemReservedCgroup (--system-reserved-cgroup)",
                    "\"system-reserved\" or \"system-reserved-compressible\"",
                )
            });
        }
        Enforcement::KubeReserved | Enforcement::KubeReservedCompressible => {
            refusals.check(config.kube_reserved_cgroup.is_empty(), field, || {
                needs_cgroup(
                    "kubeReservedCgroup (--kube-reserved-cgroup)",
                    "\"kube-reserved\" or \"kube-reserved-compressible\"",
                )
            });
        }
        Enforcement::None => {
            let is_alone = config.enforce_node_allocatable.len() == 1;
            refusals.check(!is_alone, field, || {
                format!(
                    "{ENFORCEMENT_NAME} may not contain additional enforcements when \"none\" is \
                     specified"
                )
            });
        }
    }
}

fn validate_reserved_cpus(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    let has_cgroup =
        !config.system_reserved_cgroup.is_empty() || !config.kube_reserved_cgroup.is_empty();
    refusals.check(
        !config.reserved_system_cpus.is_empty() && has_cgroup,
        "reservedSystemCPUs",
        || {
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup \
             (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
                .to_owned()
        },
    );
}

fn validate_memory_qos(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    let factor = *config.memory_throttling_factor;
    refusals.check(
        !(factor > 0.0 && factor <= 1.0),
        "memoryThrottlingFactor",
        || {
            format!(
                "memoryThrottlingFactor {factor} must be greater than 0 and less than or equal to \
                 1.0"
            )
        },
    );
    let is_tiered = *config.memory_reservation_policy == MemoryReservationPolicy::TieredReservation;
    refusals.check(
        is_tiered && !config.is_alpha_gate_on("MemoryQoS"),
        "memoryReservationPolicy",
        || {
            "memoryReservationPolicy \"TieredReservation\" requires MemoryQoS feature gate to be \
             enabled"
                .to_owned()
        },
    );
}

fn validate_paths(refusals: &mut Refusals<'_>) {
    let path = refusals.config.pod_logs_dir.value.as_str();
    let field = "podLogsDir";
    refusals.check(path.is_empty(), field, || {
        "podLogsDir was not specified".to_owned()
    });
    refusals.check(!path.starts_with('/'), field, || {
        format!("pod logs path {} must be absolute path", quoted(path))
    });
    refusals.check(!is_clean(path), field, || {
        format!("pod logs path {} must be normalized", quoted(path))
    });
    refusals.check(!path.is_ascii(), field, || {
        format!(
            "pod logs path {} mut contains ASCII characters only",
            quoted(path)
        )
    });
}

/// Whether Go's `filepath.Clean` leaves the path alone.
fn is_clean(path: &str) -> bool {
    let (is_absolute, relative) = match path.strip_prefix('/') {
        Some(relative) => (true, relative),
        None => (false, path),
    };
    if relative.is_empty() {
        return is_absolute;
    }
    let mut seen_name = false;
    relative.split('/').all(|part| match part {
        "" => false,
        "." => relative == "." && !is_absolute,
        ".." => !is_absolute && !seen_name,
        _ => {
            seen_name = true;
            true
        }
    })
}

#[cfg(test)]
mod tests;
