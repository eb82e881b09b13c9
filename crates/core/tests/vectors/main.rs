//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod admitted_pod;
mod allocatable;
mod cgroup_json;
mod cluster_resource_override;
mod conversions;
mod create_defaulted;
mod daemon_pod;
mod defaulting_scheme;
mod eviction_ranking;
mod eviction_synchronize;
mod limit_range_defaults;
mod limitranger;
mod node_admission;
mod qos;
mod qos_cgroups;
mod quantity;
mod quota;
mod resource_validation;
mod scheduler;
mod selectors;
mod thresholds;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "create-defaulted", create_defaulted::check)
            .only(create_defaulted::applies),
        Suite::new(
            "api",
            "cluster-resource-override",
            cluster_resource_override::check,
        ),
        Suite::new("api", "defaulting-scheme", defaulting_scheme::check)
            .only(defaulting_scheme::applies),
        Suite::new("api", "limitranger", limitranger::check),
        Suite::new("api", "quantity", quantity::check),
        Suite::new("api", "quota", quota::check),
        Suite::new("api", "selectors", selectors::check),
        Suite::new("api", "validation", resource_validation::check)
            .only(resource_validation::applies),
        Suite::new("node", "admission", node_admission::check),
        Suite::new("node", "allocatable", allocatable::check),
        Suite::new("node", "conversions", conversions::check),
        Suite::new("node", "qos", qos::check),
        Suite::new("node", "qos-cgroups", qos_cgroups::check),
        Suite::new("node", "thresholds", thresholds::check),
        Suite::new("node", "eviction-ranking", eviction_ranking::check),
        Suite::new("node", "eviction-synchronize", eviction_synchronize::check),
        Suite::new(
            "node",
            "eviction-synchronize-random",
            eviction_synchronize::check,
        ),
        Suite::new("scheduler", "edge", scheduler::check),
        Suite::new("scheduler", "hostports", scheduler::check),
        Suite::new("scheduler", "imagelocality", scheduler::check),
        Suite::new("scheduler", "mixed", scheduler::check),
        Suite::new("scheduler", "nodeaffinity", scheduler::check),
        Suite::new("scheduler", "podaffinity", scheduler::check),
        Suite::new("scheduler", "preemption", scheduler::check),
        Suite::new("scheduler", "resources", scheduler::check),
        Suite::new("scheduler", "taints", scheduler::check),
        Suite::new("scheduler", "topologyspread", scheduler::check),
    ])
}
