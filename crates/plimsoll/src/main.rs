//! The `plimsoll` command.
//!
//! One file per command. What they share: `print` (answers), `failure` (errors and hints), `exit`
//! (exit codes), `logging`, `signals`, `data_dir`, `listen` and `input`.

mod admission;
mod audit;
mod backend;
mod check;
mod cluster;
mod completion;
mod controllers;
mod convert;
mod data_dir;
mod demo;
mod demo_image;
mod down;
mod exit;
mod explain;
mod failure;
mod image;
mod input;
mod kubeconfig;
mod kubelet;
mod listen;
mod loadline;
mod logging;
mod man;
mod mistakes;
mod next_steps;
mod node;
mod print;
mod replay;
mod scheduler;
mod server;
mod signals;
mod store;
mod token;
mod up;
mod version;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

/// The API server makes and drops many small values per request, which this allocator does in about
/// half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Kubernetes-compatible node-resource plane in one binary.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about, arg_required_else_help = true,
    after_long_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    logging: logging::Arguments,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check node configurations and manifests, and show what they come to.
    Check(check::Arguments),
    /// Print the completion script of a shell.
    Completion(completion::Arguments),
    /// Work with node configurations.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Run the controllers: node lifecycle, workloads, garbage collection, quotas.
    Controllers(controllers::Arguments),
    /// Show a node that runs short of memory, in a cluster that is removed at the end.
    Demo(demo::Arguments),
    /// Stop the cluster or node on this machine, and remove what it has made.
    Down(down::Arguments),
    /// Explain a pod that waits, fails or was evicted, a node, or the pods of an owner.
    Explain(explain::Arguments),
    /// Manage the images of the embedded container runtime.
    Image(image::Arguments),
    /// Print the administrator's kubeconfig, or add it to ~/.kube/config.
    Kubeconfig(kubeconfig::Arguments),
    /// Draw the load of nodes: capacity, requests, usage, and how far eviction thresholds are.
    Loadline(loadline::Arguments),
    /// Write manual pages, one per command.
    Man(man::Arguments),
    /// Run the node agent, joined to a cluster.
    Node(Box<node::Arguments>),
    /// Decide again what a node decided about evictions, and compare.
    Replay(replay::Arguments),
    /// Run the scheduler.
    Scheduler(scheduler::Arguments),
    /// Serve the Kubernetes API.
    Server(server::Arguments),
    /// Save, restore, check and copy what a cluster stores.
    Store {
        #[command(subcommand)]
        command: store::Command,
    },
    /// Manage the tokens that further machines join with.
    Token {
        #[command(subcommand)]
        command: token::Command,
    },
    /// Run a whole cluster on this machine.
    Up(Box<up::Arguments>),
    /// Print the version.
    Version(version::Arguments),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Turn an OKD node-config.yaml into a `KubeletConfiguration`.
    Convert(convert::Arguments),
}

fn main() -> ExitCode {
    // Helpers of a node have to be single-threaded and small: they come first.
    match std::env::args_os().nth(1) {
        Some(word) if word == node::RUNTIME_HELPER => {
            return plimsoll_node::runtime::embedded::helper_main();
        }
        Some(word) if word == node::DISK_WALKER => return plimsoll_node::walk::walker_main(),
        _ => {}
    }
    let cli = Cli::parse();
    logging::start(&cli.logging, default_level(&cli.command));
    exit::guarded(|| {
        run(&cli.command).unwrap_or_else(|error| {
            failure::report(&error);
            failure::exit_of(&error).into()
        })
    })
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(arguments) => check::run(arguments),
        Command::Completion(arguments) => completion::run(arguments),
        Command::Config {
            command: ConfigCommand::Convert(arguments),
        } => convert::run(arguments),
        Command::Controllers(arguments) => controllers::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Down(arguments) => down::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Image(arguments) => image::run(arguments),
        Command::Kubeconfig(arguments) => kubeconfig::run(arguments),
        Command::Loadline(arguments) => loadline::run(arguments),
        Command::Man(arguments) => man::run(arguments),
        Command::Node(arguments) => node::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Scheduler(arguments) => scheduler::run(arguments),
        Command::Server(arguments) => server::run(arguments),
        Command::Store { command } => store::run(command),
        Command::Token { command } => token::run(command),
        Command::Up(arguments) => up::run(arguments),
        Command::Version(arguments) => version::run(arguments),
    }
}

/// Commands that answer a question say themselves what went wrong, once.
fn default_level(command: &Command) -> LevelFilter {
    match command {
        Command::Demo(_)
        | Command::Explain(_)
        | Command::Replay(_)
        | Command::Loadline(_)
        | Command::Store { .. }
        | Command::Token { .. } => LevelFilter::OFF,
        _ => LevelFilter::WARN,
    }
}
