//! The eviction trial: a virtual machine as node, and a pod that allocates all its memory.
//!
//! A virtual machine (cgroup v2, 2 cpus, 2 GiB) runs `plimsoll up` with a hard line at 300 MiB. Beside
//! the hog there are a Guaranteed pod that notes down when it was kept waiting, and two small ones.
//! What is measured is when the line was crossed, when the agent chose a pod, when that was dead, how far
//! memory went down and which pods were affected. The same was measured with a kubelet.
//!
//!     cargo test -p plimsoll --test trial -- --ignored                        # a short set
//!     PLIMSOLL_TRIALS=36 cargo test --release -p plimsoll --test trial -- --ignored
//!     PLIMSOLL_TRIALS=36 PLIMSOLL_PROGRAM=target/release/plimsoll cargo test -p plimsoll --test trial -- --ignored
//!     PLIMSOLL_TRIALS=page-cache cargo test -p plimsoll --test trial -- --ignored
//!
//! This program is all of it: the test on the host (`vm`), the driver of the trials in the guest
//! (`driver`, with `hog`, `plan`, `node`, `sampler`, `outcome` and `table`), and what runs in the pods (`load`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and the console of the guest is all there is to see"
)]

mod driver;
mod hog;
mod load;
mod mem_info;
mod node;
mod outcome;
mod page_cache;
mod plan;
mod sampler;
mod table;
mod vm;
mod waits;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args();
    let own = words.next().unwrap_or_default();
    let name = Path::new(&own).file_name().unwrap_or_default();
    if let Some(role) = load::Role::called(&name.to_string_lossy()) {
        load::run(role, &load::Words(words.collect()));
    }
    let words: Vec<String> = words.collect();
    if let [first, plan, strictness] = words.as_slice()
        && first == vm::DRIVE
    {
        return driver::main(plan, strictness == vm::STRICT);
    }
    let arguments = libtest_mimic::Arguments::from_args();
    libtest_mimic::run(&arguments, vec![vm::trial()]).exit_code()
}
