//! Cost and speed of whole processes, as in production: TLS, disks, containers.
//!
//! `scripts/bench` runs it; by hand, `cargo bench -p plimsoll --bench whole -- WORD` with a word of
//! [`WORDS`]. `PLIMSOLL_PROGRAM` names another build to measure.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

mod bind;
mod client;
mod cost;
mod create;
mod figure;
mod link;
mod load;
mod node;
mod pods;
mod stage;
mod times;
mod watch;

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
    let measuring = async {
        match asked.as_deref() {
            Some("create") => create::run().await,
            Some("bind") => bind::run().await,
            Some("bind-all") => bind::run_all().await,
            Some("watch") => watch::run().await,
            Some("watch-own") => watch::run_own().await,
            Some("start-up") => node::start_up().await,
            Some("node") => node::run().await,
            // As part of `cargo bench` for everything.
            None => {
                println!("{WORDS}");
                Ok(())
            }
            Some(other) => bail!("{other:?} is not known\n{WORDS}"),
        }
    };
    runtime.block_on(until_interrupted(measuring))
}

/// What there is.
const WORDS: &str = "\
name one of these behind `--`:
  create      pods created per second by 32 clients
  bind        plain pods bound per second on 1,000 nodes
  bind-all    pods bound per second, by kind of pod and number of nodes
  watch       1,000 watchers over 8 connections
  watch-own   1,000 watchers with a connection each
  start-up    from the start of `plimsoll up` to node Ready (as root)
  node        memory, cpu, and how fast pods start (as root)";
