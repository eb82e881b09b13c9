//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod limit_range_defaults;
mod quantity;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "quantity", quantity::check),
        Suite::new("api", "defaulting-scheme", limit_range_defaults::check)
            .only(limit_range_defaults::applies),
    ])
}
