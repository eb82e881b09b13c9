//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod allocatable;
mod cgroup_json;
mod conversions;
mod qos;
mod qos_cgroups;
mod quantity;
mod thresholds;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "quantity", quantity::check),
        Suite::new("node", "thresholds", thresholds::check),
        Suite::new("node", "allocatable", allocatable::check),
        Suite::new("node", "conversions", conversions::check),
        Suite::new("node", "qos", qos::check),
        Suite::new("node", "qos-cgroups", qos_cgroups::check),
    ])
}
