//! Runs the recorded cases of upstream against this crate, one reported test per file.
//!
//! `PLIMSOLL_VECTORS=<dir>` runs another set of the same format.

use plimsoll_testkit::vectors::run;

fn main() -> std::process::ExitCode {
    run(&[])
}
