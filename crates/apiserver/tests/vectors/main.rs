//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

mod answer;
mod patch_http;
mod patch_json;
mod patch_merge;
mod patch_strategic;
mod server_side_apply;
mod stand_in;

use plimsoll_testkit::vectors::{Suite, run};

fn main() -> std::process::ExitCode {
    run(&[
        Suite::new("api", "patch-http", patch_http::check).only(patch_http::applies),
        Suite::new("api", "patch-json", patch_json::check),
        Suite::new("api", "patch-merge", patch_merge::check),
        Suite::new("api", "patch-strategic", patch_strategic::check),
        Suite::new("api", "server-side-apply", server_side_apply::check)
            .only(server_side_apply::applies),
    ])
}
