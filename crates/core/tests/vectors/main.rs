//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod allocatable;
mod cgroup_json;
mod conversions;
mod create_defaulted;
mod defaulting_scheme;
mod eviction_ranking;
mod eviction_synchronize;
mod node_admission;
mod qos;
mod qos_cgroups;
mod quantity;
mod selectors;
mod thresholds;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "create-defaulted", create_defaulted::check)
            .only(create_defaulted::applies),
        Suite::new("api", "defaulting-scheme", defaulting_scheme::check)
            .only(defaulting_scheme::applies),
        Suite::new("api", "quantity", quantity::check),
        Suite::new("api", "selectors", selectors::check),
        Suite::new("node", "admission", node_admission::check),
        Suite::new("node", "allocatable", allocatable::check),
        Suite::new("node", "conversions", conversions::check),
        Suite::new("node", "eviction-ranking", eviction_ranking::check),
        Suite::new("node", "eviction-synchronize", eviction_synchronize::check),
        Suite::new(
            "node",
            "eviction-synchronize-random",
            eviction_synchronize::check,
        ),
        Suite::new("node", "qos", qos::check),
        Suite::new("node", "qos-cgroups", qos_cgroups::check),
        Suite::new("node", "thresholds", thresholds::check),
    ])
}
