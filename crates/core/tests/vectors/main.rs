//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

use plimsoll_testkit::vectors::{Suite, run};

mod quantity;

fn main() -> std::process::ExitCode {
    run(&[Suite::new("api", "quantity", quantity::check)])
}
