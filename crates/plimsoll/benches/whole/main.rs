//! What the whole costs, and how fast it is, as people run it: processes, TLS, disks, containers.
//!
//! ```text
//! cargo bench -p plimsoll --bench whole -- node    as root: memory, cpu, how fast pods start
//! cargo bench -p plimsoll --bench whole -- binds   pods bound per second, by kind of pod
//! ```
//!
//! `PLIMSOLL_PROGRAM` names another build to measure.

#![expect(clippy::print_stdout, reason = "a table is what it is for")]

mod binds;
mod client;
mod cost;
mod load;
mod node;
mod pods;
mod stage;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// What was started is ended in any case: a stage is dropped with the future that holds it.
async fn until_interrupted(measuring: impl Future<Output = Result<()>>) -> Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot hear of signals")?;
    tokio::select! {
        measured = measuring => measured,
        _ = terminated.recv() => bail!("terminated"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.context("cannot start")?;
    // Cargo adds `--bench`.
    let asked = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    match asked.as_deref() {
        Some("node") => runtime.block_on(until_interrupted(node::run())),
        Some("binds") => runtime.block_on(until_interrupted(binds::run())),
        // As part of `cargo bench` for everything.
        None => {
            println!("ask for `-- node` (as root) or `-- binds`");
            Ok(())
        }
        Some(other) => bail!("{other:?} is not known; ask for node or binds"),
    }
}
