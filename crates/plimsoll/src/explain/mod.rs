//! `plimsoll explain`: why a pod waits, is where it is, or had to go; how a node stands.
//!
//! Reading order: `gather` and `snapshot` (what is read), `pod` (what became of a pod) with
//! `pending` and `fix`, `placed`, `evicted`, `ended` and `events`, `node` (how a node stands),
//! `report` (the result as data; documented in docs/explain.md), `render` (the same for people).

mod ended;
mod events;
mod evicted;
mod fix;
mod gather;
mod node;
mod pending;
mod placed;
mod pod;
mod render;
mod report;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use kube::Client;
use plimsoll_client::clock::Clock;
use plimsoll_core::scheduling::configuration::Configuration;
use serde::Serialize;

use crate::cluster::{self, Cluster};
use crate::failure;
use crate::print::{self, Terminal};
use crate::replay;
use crate::scheduler;

pub(crate) use evicted::unit_of;
use report::PodReport;

/// Arguments of `plimsoll explain`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Decide again what FILE says a node decided, and compare; `-` reads standard input. Exit code 1
    /// if anything comes out otherwise. FILE holds records as agents keep them, or the list that
    /// `/plimsoll/decisions` shows.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", requires = "replay")]
    output: Option<Format>,
}

/// What is explained.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Why a pod waits, is where it is, or had to go; also after it is gone.
    #[command(visible_alias = "pods", visible_alias = "po")]
    Pod(PodArguments),
    /// How a node stands: its lines, conditions and taints, whom it would evict, what it decided.
    #[command(visible_alias = "nodes", visible_alias = "no")]
    Node(NodeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PodArguments {
    /// The pod.
    #[arg(value_name = "NAME")]
    name: String,

    /// Its namespace; by the kubeconfig if not given.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// The `KubeSchedulerConfiguration` of the pod's scheduler, if it is not the default one.
    #[arg(long, value_name = "FILE")]
    scheduler_config: Option<String>,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// The node.
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, Args)]
struct Shared {
    #[command(flatten)]
    cluster: Cluster,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
}

/// Explains.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(file) = &arguments.replay {
        return replay::run_file(file, arguments.output == Some(Format::Json));
    }
    match &arguments.command {
        None => Err(failure::usage(
            "name a pod or a node, or give --replay FILE",
        )),
        Some(Command::Pod(arguments)) => {
            let configuration = scheduler::configuration(arguments.scheduler_config.as_deref())?;
            cluster::ask(&arguments.shared.cluster, async {
                let client = arguments.shared.cluster.client().await?;
                let namespace = arguments.namespace.as_deref();
                let namespace = namespace.unwrap_or(client.default_namespace());
                let report = report_on(&client, namespace, &arguments.name, &configuration).await?;
                arguments.shared.show(&report, |terminal| {
                    render::pod(&report, Clock::system().now(), terminal)
                })
            })
        }
        Some(Command::Node(arguments)) => cluster::ask(&arguments.shared.cluster, async {
            let client = arguments.shared.cluster.client().await?;
            let (reading, records) = gather::node(&client, &arguments.name).await?;
            let report = node::explain_node(&reading, records);
            arguments.shared.show(&report, |terminal| {
                render::node(&report, Clock::system().now(), terminal)
            })
        }),
    }
}

/// What became of a pod, for people; its scheduler is the default one.
pub(crate) async fn pod_text(
    client: &Client,
    namespace: &str,
    name: &str,
    terminal: Terminal,
) -> Result<String> {
    let configuration = Configuration::default();
    let report = report_on(client, namespace, name, &configuration).await?;
    Ok(render::pod(&report, Clock::system().now(), terminal))
}

async fn report_on(
    client: &Client,
    namespace: &str,
    name: &str,
    configuration: &Configuration,
) -> Result<PodReport> {
    let found = gather::pod(client, namespace, name).await?;
    Ok(pod::explain_pod(&found, configuration))
}

impl Shared {
    fn show(&self, report: &impl Serialize, text: impl Fn(Terminal) -> String) -> Result<()> {
        let text = match self.output {
            Some(Format::Json) => serde_json::to_string_pretty(report)? + "\n",
            None => text(Terminal::stdout()),
        };
        print::write(&text)?;
        Ok(())
    }
}
