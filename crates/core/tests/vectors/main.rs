//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod admitted_pod;
mod cluster_resource_override;
mod limit_range_defaults;
mod limitranger;
mod quantity;
mod quota;
mod resource_validation;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "quantity", quantity::check),
        Suite::new("api", "limitranger", limitranger::check),
        Suite::new(
            "api",
            "cluster-resource-override",
            cluster_resource_override::check,
        ),
        Suite::new("api", "defaulting-scheme", limit_range_defaults::check)
            .only(limit_range_defaults::applies),
        Suite::new("api", "quota", quota::check),
        Suite::new("api", "validation", resource_validation::check)
            .only(resource_validation::applies),
    ])
}
