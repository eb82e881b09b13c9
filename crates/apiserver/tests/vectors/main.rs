//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

mod answer;
mod create_defaulted;
mod defaulting_scheme;
mod patch_http;
mod patch_json;
mod patch_merge;
mod patch_strategic;
mod recording_server;
mod server_side_apply;
mod table;
mod validation;

use plimsoll_testkit::vectors::{Suite, run};

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "create-defaulted", create_defaulted::check),
        Suite::new("api", "defaulting-scheme", defaulting_scheme::check)
            .only(defaulting_scheme::applies),
        Suite::new("api", "patch-http", patch_http::check),
        Suite::new("api", "patch-json", patch_json::check),
        Suite::new("api", "patch-merge", patch_merge::check),
        Suite::new("api", "patch-strategic", patch_strategic::check),
        Suite::new("api", "server-side-apply", server_side_apply::check),
        Suite::new("api", "table", table::check),
        Suite::new("api", "validation", validation::check),
    ])
}
