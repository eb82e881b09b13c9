//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

use plimsoll_testkit::vectors::{Suite, run};

mod create_defaulted;
mod defaulting_scheme;
mod kinds;
mod recording_server;
mod validation;

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "create-defaulted", create_defaulted::check),
        Suite::new("api", "defaulting-scheme", defaulting_scheme::check)
            .only(defaulting_scheme::applies),
        Suite::new("api", "validation", validation::check),
    ])
}
