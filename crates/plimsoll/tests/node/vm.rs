//! The same cases in a virtual machine, where cgroups are v2.

use std::path::Path;
use std::time::Duration;

use plimsoll_testkit::vm::{Machine, given_program};

use crate::hostile::RUNTIME_VARIABLE;

/// Names other cases than the [chosen](CHOSEN) ones, as words: `embedded` and `containerd` name all
/// of a runtime.
///
/// `PLIMSOLL_VM_CASES=embedded cargo test -p plimsoll --test node -- --ignored --nocapture vm::`
const CASES_VARIABLE: &str = "PLIMSOLL_VM_CASES";

/// The tests that depend on the kernel's interface. The others do not depend on the cgroup version,
/// and emulated cpus are slow.
const CHOSEN: [&str; 7] = [
    "cgroups::embedded::every_cgroup_matches_its_pods_resources",
    "cgroups::embedded::oom_score_adj_follows_qos_class",
    "limits::embedded::container_above_its_memory_limit_is_oom_killed",
    "adoption::embedded::containers_outlive_an_agent_that_is_killed",
    "lifecycle::embedded::readiness_gates_a_pod",
    "streams::embedded::commands_run_in_containers",
    "pressure::process_ids::pod_with_most_processes_is_killed_at_once",
];

/// Machines that run tests are busy, and all cases take most of an hour.
pub(crate) const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Where the program is, here and in a machine.
pub(crate) const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

pub(crate) fn machine() -> Machine {
    let plimsoll = given_program().unwrap_or_else(|| PLIMSOLL.into());
    Machine::new()
        .memory_mib(2048)
        .program(&plimsoll, PLIMSOLL)
        .tool("kubectl")
}

#[test]
#[ignore = "tier: vm"]
fn hostile_containers_of_the_embedded_runtime_are_confined_on_cgroup_v2() {
    hostile_containers_are_confined("embedded", machine());
}

#[test]
#[ignore = "tier: vm"]
fn hostile_containers_of_containerd_are_confined_on_cgroup_v2() {
    hostile_containers_are_confined("containerd", machine().containerd().tool("ip"));
}

fn hostile_containers_are_confined(runtime: &str, machine: Machine) {
    let machine = machine.variable(RUNTIME_VARIABLE, runtime);
    machine.run_own_tests(&["hostile::"], LIMIT).unwrap();
}

#[test]
#[ignore = "tier: vm"]
fn nodes_are_the_same_on_cgroup_v2() {
    let printed = std::env::var(CASES_VARIABLE).unwrap_or_default();
    let printed: Vec<&str> = printed.split_whitespace().collect();
    let mut machine = machine()
        .tool("mkfs.ext4")
        .tool("script")
        .tool("docker-registry");
    if printed.is_empty() {
        return machine.run_own_tests(&CHOSEN, LIMIT).unwrap();
    }
    machine = machine.containerd().tool("ip");
    // Without CA certificates, images are not even pulled without TLS.
    let authorities = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if authorities.exists() {
        machine = machine.file(authorities, &authorities.to_string_lossy());
    }
    machine.run_own_tests(&printed, LIMIT).unwrap();
}
