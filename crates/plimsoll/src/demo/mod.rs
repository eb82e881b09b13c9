//! `plimsoll demo`: a node runs short of memory, in a cluster that exists for some seconds.
//!
//! Reading order: `script` (what happens), `pods` (which pods), `frame` (the load line), `eviction`
//! (when what happened), `screen` (where it is shown); `sandbox` (what the cluster uses of the
//! machine), `network` (which addresses are free), `fitness` (whether the machine can do it),
//! `cluster` (`plimsoll up` as a child process), `interruption` and `removal` (the end of it).

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

use cluster::Cluster;
use interruption::Interruption;
use removal::Removed;
use sandbox::Sandbox;
use screen::{ReaderGone, Screen};
use script::Script;

use crate::exit::Exit;
use crate::failure;
use crate::print::span;

/// What a shell gives for a process that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// Arguments of `plimsoll demo`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keep the cluster until Ctrl-C, and print how to reach it.
    #[arg(long)]
    keep: bool,
}

/// Plays, and removes everything, whatever happens.
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
    // From here on signals do not end the process before everything is removed.
    let mut interruption = Interruption::listen()?;
    sandbox.make_directory()?;
    let mut screen = Screen::stdout();
    let mut cluster = None;
    let told = tokio::select! {
        told = tell(arguments, sandbox, &mut cluster, &mut screen) => Some(told),
        () = interruption.received() => None,
    };
    let mut code = match told {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) if error.is::<ReaderGone>() => ExitCode::SUCCESS,
        Some(Err(error)) => fail(error, cluster.as_mut()).await,
        None => ExitCode::from(INTERRUPTED),
    };
    let removed = removal::remove(sandbox, cluster).await;
    // Where nothing reads any more, there is no place for it.
    let _ = conclude(&mut screen, &removed, begun);
    for problem in removed.problems {
        failure::report(&anyhow::Error::msg(problem));
        code = Exit::Failed.into();
    }
    Ok(code)
}

async fn tell(
    arguments: &Arguments,
    sandbox: &Sandbox,
    cluster: &mut Option<Cluster>,
    screen: &mut Screen,
) -> Result<()> {
    screen.write(
        "A node runs short of memory, and its agent evicts a pod. All of this happens in\n\
         a cluster that is made for it and removed at the end.\n",
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

/// Shows what went wrong, with the log of the cluster.
async fn fail(mut error: anyhow::Error, cluster: Option<&mut Cluster>) -> ExitCode {
    let Some(cluster) = cluster else {
        return report(&error);
    };
    // What it was asked at that moment says less than that it has ended.
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
            "Nothing is left on this machine; all of it took {took}."
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
