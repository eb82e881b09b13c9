//! `plimsoll explain`: reads a pod, a node or an owner of pods, and prints what explains it.
//!
//! Reading order: `target` (the object to explain), `gather`, `gather_owner` and `snapshot` (what
//! is read). The explanations are `plimsoll_report`'s.

mod gather;
mod gather_owner;
mod snapshot;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use kube::{Client, ResourceExt};
use plimsoll_client::clock::Clock;
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_report::explain::render::{self, Detail};
use plimsoll_report::explain::report::{OwnerReport, PodReport};
use plimsoll_report::explain::{OwnerKind, explain_node, explain_owner, explain_pod};
use plimsoll_report::text::Terminal;
use serde::Serialize;

use crate::cluster::{self, Cluster};
use crate::help::ADVANCED;
use crate::print;
use crate::replay;
use crate::scheduler;

use target::{Kind, Target};

/// Arguments of `plimsoll explain`.
#[derive(Debug, Args)]
#[command(
    override_usage = "plimsoll explain [OPTIONS] <TYPE NAME | TYPE/NAME>\n       \
                      plimsoll explain --replay <FILE>",
    after_help = "\
Examples:
  # Explain why a pod is pending, failing or evicted
  plimsoll explain pod web
  # Explain the pods of a Deployment in another namespace
  plimsoll explain deploy/web -n shop
  # Show the conditions and taints of a node, and the pods that it would evict first
  plimsoll explain node n1
  # Replay the eviction decisions in a file
  plimsoll explain --replay decisions.json"
)]
pub(crate) struct Arguments {
    /// Pod, node or owner of pods, such as `pod web`, `deploy/web` or `node n1`.
    ///
    /// Types are pod, node, deployment, replicaset, statefulset, daemonset, job and
    /// replicationcontroller, with the short names of kubectl. Deleted pods can be explained too.
    #[arg(
        value_name = "TYPE NAME",
        required_unless_present = "replay",
        conflicts_with = "replay",
        num_args = 1..
    )]
    target: Vec<String>,

    /// Replay the eviction decisions in FILE (`-`: standard input) and compare.
    ///
    /// FILE has records from an agent's data directory, or the list that the agent serves at
    /// `/plimsoll/decisions`. The exit code is 1 if a decision differs.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Namespace of the pod or owner [default: the namespace of the context].
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Compute the scores of the nodes again for a pod that has a node.
    #[arg(long)]
    verbose: bool,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,

    #[command(flatten)]
    cluster: Cluster,

    /// KubeSchedulerConfiguration of the pod's scheduler [default: upstream's defaults].
    #[arg(long, value_name = "FILE", help_heading = ADVANCED)]
    scheduler_config: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
}

/// Prints the explanation of an object, or replays a file.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(file) = &arguments.replay {
        return replay::run_file(file, arguments.output == Some(Format::Json));
    }
    let target = match Target::parse(&arguments.target) {
        Ok(target) => target,
        Err(problem) => {
            let mut command = crate::Cli::command();
            command.error(ErrorKind::ValueValidation, problem).exit();
        }
    };
    let configuration = scheduler::configuration(arguments.scheduler_config.as_deref())?;
    cluster::ask(&arguments.cluster, async {
        let client = arguments.cluster.client().await?;
        let namespace = arguments.namespace.as_deref();
        let namespace = namespace.unwrap_or(client.default_namespace());
        match target.kind {
            Kind::Pod => {
                let report = report_on(&client, namespace, &target.name, &configuration).await?;
                arguments.show(&report, |detail, terminal| {
                    render::pod(&report, detail, Clock::system().now(), terminal)
                })
            }
            Kind::Node => {
                let report = explain_node(&gather::node(&client, &target.name).await?);
                arguments.show(&report, |_, terminal| {
                    render::node(&report, Clock::system().now(), terminal)
                })
            }
            Kind::Owner(kind) => {
                let owner = (kind, namespace, target.name.as_str());
                let report = report_on_owner(&client, owner, &configuration).await?;
                arguments.show(&report, |detail, terminal| {
                    render::owner(&report, detail, Clock::system().now(), terminal)
                })
            }
        }
    })
}

/// The explanation of a pod as text, with the default scheduler configuration.
pub(crate) async fn pod_text(
    client: &Client,
    namespace: &str,
    name: &str,
    terminal: Terminal,
) -> Result<String> {
    let configuration = Configuration::default();
    let report = report_on(client, namespace, name, &configuration).await?;
    let now = Clock::system().now();
    Ok(render::pod(&report, Detail::Brief, now, terminal))
}

async fn report_on(
    client: &Client,
    namespace: &str,
    name: &str,
    configuration: &Configuration,
) -> Result<PodReport> {
    let found = gather::pod(client, namespace, name).await?;
    Ok(explain_pod(&found, configuration))
}

async fn report_on_owner(
    client: &Client,
    (kind, namespace, name): (OwnerKind, &str, &str),
    configuration: &Configuration,
) -> Result<OwnerReport> {
    let found = gather_owner::owner(client, kind, namespace, name).await?;
    let first = match found.first_in_trouble() {
        Some(pod) => Some(report_on(client, namespace, &pod.name_any(), configuration).await?),
        None => None,
    };
    Ok(explain_owner(&found, first))
}

impl Arguments {
    fn show(
        &self,
        report: &impl Serialize,
        text: impl Fn(Detail, Terminal) -> String,
    ) -> Result<()> {
        let detail = match self.verbose {
            true => Detail::Verbose,
            false => Detail::Brief,
        };
        let text = match self.output {
            Some(Format::Json) => serde_json::to_string_pretty(report)? + "\n",
            None => text(detail, print::terminal()),
        };
        print::write(&text)?;
        Ok(())
    }
}
