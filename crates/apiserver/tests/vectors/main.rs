//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

#![expect(clippy::unwrap_used, reason = "a malformed case is a failed case")]

mod table;

use plimsoll_testkit::vectors::{Suite, run};

fn main() -> std::process::ExitCode {
    run(&[Suite::new("api", "table", table::check)])
}
