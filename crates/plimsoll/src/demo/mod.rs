//! `plimsoll demo`: an eviction for lack of memory in a temporary cluster.
//!
//! Reading order: `script` (the steps), `pods`, `frame` (the load line), `eviction` (its timing),
//! `screen` (output); `sandbox` (names and files of the cluster), `network` (free addresses),
//! `fitness` (preflight checks), `cluster` (`plimsoll up` as a child process), `interruption`
//! (signals) and `removal` (cleanup).

mod cluster;
mod eviction;
mod fitness;
mod frame;
mod interruption;
mod network;
mod pods;
mod removal;
mod sandbox;
mod screen;
mod script;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_report::text::span;

use cluster::Cluster;
use interruption::Interruption;
use removal::Removed;
use sandbox::Sandbox;
use screen::{ReaderGone, Screen};
use script::Script;

use crate::exit::Exit;
use crate::failure;

/// The exit code of shells for a process ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// Arguments of `plimsoll demo`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keep the cluster until Ctrl-C and print its kubeconfig.
    #[arg(long)]
    keep: bool,
}

/// Plays the demo and removes the cluster, also after a failure.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    fitness::refuse_unfit()?;
    let sandbox = Sandbox::choose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(play(arguments, &sandbox))
}

async fn play(arguments: &Arguments, sandbox: &Sandbox) -> Result<ExitCode> {
    let begun = Instant::now();
    // From here on a signal ends the process only after the cluster is removed.
    let mut interruption = Interruption::listen()?;
    sandbox.make_directory()?;
    let mut screen = Screen::stdout();
    let mut cluster = None;
    let played = tokio::select! {
        played = steps(arguments, sandbox, &mut cluster, &mut screen) => Some(played),
        () = interruption.received() => None,
    };
    let mut code = match played {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) if error.is::<ReaderGone>() => ExitCode::SUCCESS,
        Some(Err(error)) => fail(error, cluster.as_mut()).await,
        None => ExitCode::from(INTERRUPTED),
    };
    let removed = removal::remove(sandbox, cluster).await;
    // Fails if standard output is closed.
    let _ = conclude(&mut screen, &removed, begun);
    for problem in removed.problems {
        failure::report(&anyhow::Error::msg(problem));
        code = Exit::Failed.into();
    }
    Ok(code)
}

async fn steps(
    arguments: &Arguments,
    sandbox: &Sandbox,
    cluster: &mut Option<Cluster>,
    screen: &mut Screen,
) -> Result<()> {
    screen.write(
        "A node runs out of memory, and its agent evicts a pod. The cluster is temporary:\n\
         the demo creates it and removes it at the end.\n",
    )?;
    sandbox.make()?;
    let cluster = cluster.insert(Cluster::start(sandbox)?);
    let mut script = Script::new(cluster, screen);
    script.play().await?;
    if arguments.keep {
        script.stay().await?;
    }
    Ok(())
}

/// Prints the error and the end of the cluster's log.
async fn fail(mut error: anyhow::Error, cluster: Option<&mut Cluster>) -> ExitCode {
    let Some(cluster) = cluster else {
        return report(&error);
    };
    // If the process has exited, that explains more than the failed request.
    if let Err(ended) = cluster.check_running_soon().await {
        error = ended;
    }
    let code = report(&error);
    if let Some(log) = cluster.log_tail() {
        show_log(&log);
    }
    code
}

/// Shows what was removed.
fn conclude(screen: &mut Screen, removed: &Removed, begun: Instant) -> Result<()> {
    screen.heading("Removal")?;
    for line in &removed.lines {
        screen.say(line)?;
    }
    if removed.problems.is_empty() {
        let took = span(begun.elapsed().as_secs_f64());
        screen.say(&format!(
            "Nothing is left on this machine; the demo took {took}."
        ))?;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "it belongs to the error before it")]
fn show_log(log: &str) {
    eprint!("the end of its log:\n{log}");
}

fn report(error: &anyhow::Error) -> ExitCode {
    failure::report(error);
    failure::exit_of(error).into()
}
