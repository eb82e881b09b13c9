//! The `plimsoll` command.
//!
//! One file per command. What they share: `print` (answers), `failure` (errors and hints), `exit`
//! (exit codes), `help` (headings of flags), `logging`, `signals`, `data_dir`, `listen` and `input`.

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
mod help;
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
mod node_reader;
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

use help::Grouped;

/// How the long help of the program ends.
const LONG_HELP: &str = "\
Examples:
  # Show a pod eviction in a temporary cluster, as root
  plimsoll demo
  # Run a cluster on this machine, as root
  plimsoll up
  # Show the nodes of any cluster
  plimsoll loadline --kubeconfig FILE
  # Check a node configuration for a machine of 32 GiB
  plimsoll check --capacity cpu=4,memory=32Gi kubelet-config.yaml";

/// Kubernetes-compatible node-resource plane in one binary.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true,
    after_long_help = format!("{LONG_HELP}\n\n{}\n\n{}", help::ENVIRONMENT, exit::HELP))]
struct Cli {
    #[command(flatten)]
    logging: logging::Arguments,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check node configurations, scheduler configurations and manifests.
    Check(check::Arguments),
    /// Print a shell completion script.
    Completion(completion::Arguments),
    /// Convert node configurations.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Run the controllers against any Kubernetes API server.
    Controllers(Grouped<controllers::Arguments>),
    /// Show an eviction for lack of memory in a temporary cluster.
    Demo(demo::Arguments),
    /// Stop the pods on this machine and remove cgroups, mounts and networks.
    Down(down::Arguments),
    /// Explain a pod that is pending, failing or evicted, a node, or the pods of an owner.
    Explain(explain::Arguments),
    /// Manage images of the embedded container runtime.
    Image(image::Arguments),
    /// Print the admin's kubeconfig or merge it into ~/.kube/config.
    Kubeconfig(kubeconfig::Arguments),
    /// Show node capacity, usage and eviction thresholds.
    Loadline(loadline::Arguments),
    /// Write manual pages.
    Man(man::Arguments),
    /// Run the node agent and join it to a cluster.
    Node(Box<Grouped<node::Arguments>>),
    /// Replay the eviction decisions of a node and compare.
    Replay(replay::Arguments),
    /// Run the scheduler against any Kubernetes API server.
    Scheduler(scheduler::Arguments),
    /// Run the API server.
    Server(Box<Grouped<server::Arguments>>),
    /// Back up, restore, verify and copy the store of a cluster.
    Store {
        #[command(subcommand)]
        command: store::Command,
    },
    /// Manage join tokens.
    Token {
        #[command(subcommand)]
        command: token::Command,
    },
    /// Run a cluster on this machine.
    Up(Box<Grouped<up::Arguments>>),
    /// Print the version.
    Version(version::Arguments),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Convert an OKD node-config.yaml to a KubeletConfiguration.
    Convert(convert::Arguments),
}

fn main() -> ExitCode {
    // Helpers of a node have to be single-threaded and small: they come first.
    match std::env::args_os().nth(1) {
        Some(word) if word == node::RUNTIME_HELPER => {
            return plimsoll_runtime::embedded::helper_main();
        }
        Some(word) if word == node::DISK_WALKER => return plimsoll_runtime::walk::walker_main(),
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
        Command::Controllers(arguments) => controllers::run(&arguments.0),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Down(arguments) => down::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Image(arguments) => image::run(arguments),
        Command::Kubeconfig(arguments) => kubeconfig::run(arguments),
        Command::Loadline(arguments) => loadline::run(arguments),
        Command::Man(arguments) => man::run(arguments),
        Command::Node(arguments) => node::run(&arguments.0),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Scheduler(arguments) => scheduler::run(arguments),
        Command::Server(arguments) => server::run(&arguments.0),
        Command::Store { command } => store::run(command),
        Command::Token { command } => token::run(command),
        Command::Up(arguments) => up::run(&arguments.0),
        Command::Version(arguments) => version::run(arguments),
    }
}

/// Commands that print an answer also print their error; logging it would repeat it.
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
