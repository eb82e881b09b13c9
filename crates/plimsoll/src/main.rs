//! The `plimsoll` command.
//!
//! One file per command; what they share is `print` (tables, colour). Errors reach people here and nowhere else: `error:`, its causes indented,
//! then hints. Exit codes: 0 fine, 1 the input has errors, the machine is not fit or the cluster said
//! no, 2 wrong usage, 70 a fault of ours.

mod check;
mod cluster;
mod controllers;
mod convert;
mod explain;
mod image;
mod input;
mod kubelet;
mod loadline;
mod node;
mod print;
mod scheduler;
mod server;
mod signals;
mod token;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::print::Colour;

/// The API server makes and drops many small values per request, which this allocator does in about
/// half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Kubernetes-compatible node-resource plane in one binary.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check node configurations and manifests, and show what they come to.
    Check(check::Arguments),
    /// Work with node configurations.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Run the controllers: node lifecycle, workloads, garbage collection, quotas.
    Controllers(controllers::Arguments),
    /// Say why a pod waits, is where it is, or had to go, and how a node stands.
    Explain {
        #[command(subcommand)]
        command: explain::Command,
    },
    /// Manage the images of the embedded container runtime.
    Image(image::Arguments),
    /// Draw how deep nodes lie: capacity, reservations, requests, use, and how far the lines are.
    Loadline(loadline::Arguments),
    /// Run the node agent, joined to a cluster.
    Node(Box<node::Arguments>),
    /// Run the scheduler.
    Scheduler(scheduler::Arguments),
    /// Serve the Kubernetes API.
    Server(server::Arguments),
    /// Invite other machines.
    Token {
        #[command(subcommand)]
        command: token::Command,
    },
    /// Run a whole cluster on this machine.
    Up(Box<up::Arguments>),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Turn an OKD node-config.yaml into a `KubeletConfiguration`.
    Convert(convert::Arguments),
}

fn main() -> ExitCode {
    // Helpers of the embedded runtime have to be single-threaded and small: they come first.
    let mut words = std::env::args_os().skip(1);
    if words
        .next()
        .is_some_and(|word| word == node::RUNTIME_HELPER)
    {
        return plimsoll_node::runtime::embedded::helper_main();
    }
    let command = Cli::parse().command;
    start_logging(default_level(&command));
    let result = match command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Config {
            command: ConfigCommand::Convert(arguments),
        } => convert::run(&arguments),
        Command::Controllers(arguments) => controllers::run(&arguments),
        Command::Explain { command } => explain::run(&command),
        Command::Image(arguments) => image::run(&arguments),
        Command::Loadline(arguments) => loadline::run(&arguments),
        Command::Node(arguments) => node::run(&arguments),
        Command::Scheduler(arguments) => scheduler::run(&arguments),
        Command::Server(arguments) => server::run(&arguments),
        Command::Token { command } => token::run(&command),
        Command::Up(arguments) => up::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        report(&error);
        ExitCode::from(2)
    })
}

/// Commands that answer a question say themselves what went wrong, once.
fn default_level(command: &Command) -> LevelFilter {
    match command {
        Command::Explain { .. } | Command::Loadline(_) => LevelFilter::OFF,
        _ => LevelFilter::WARN,
    }
}

/// What happens is told on standard error; `RUST_LOG` says how much of it.
fn start_logging(level: LevelFilter) {
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(Colour::for_stderr() == Colour::On)
        .with_writer(std::io::stderr)
        .init();
}

/// Tells what does not work on this machine, though it was asked for in the right way.
fn unfit(error: &anyhow::Error) -> ExitCode {
    report(error);
    ExitCode::from(1)
}

#[expect(clippy::print_stderr, reason = "this is where errors reach people")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  {cause}");
    }
}
