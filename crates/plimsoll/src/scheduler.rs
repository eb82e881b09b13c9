//! `plimsoll scheduler`: the scheduler alone, against any Kubernetes API.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use plimsoll_control::scheduler::{self, Options};
use plimsoll_core::scheduling::configuration::{self, Configuration};
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::input::read_bytes;
use crate::signals;

/// Arguments of `plimsoll scheduler`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,

    /// A KubeSchedulerConfiguration: profiles, plugins, backoff, leader election.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// Act only while elected; what the configuration says if this is not given.
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true")]
    leader_elect: Option<bool>,

    /// Where health, metrics and the configuration are served.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Writes to the API that are under way at once.
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_MAX_IN_FLIGHT)]
    max_in_flight: usize,
}

/// What the file says, or upstream's defaults. All mistakes of the file are told at once.
pub(crate) fn configuration(file: Option<&str>) -> Result<Configuration> {
    let Some(file) = file else {
        return Ok(Configuration::default());
    };
    let reading = configuration::read(&read_bytes(file)?);
    if reading.problems.is_empty() {
        return Ok(reading.configuration);
    }
    let problems = reading.problems.iter().map(ToString::to_string);
    let problems: Vec<String> = problems.collect();
    bail!("{file} cannot be used: {}", problems.join("; "))
}

/// Runs until told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut configuration = configuration(arguments.config.as_deref())?;
    if let Some(elects) = arguments.leader_elect {
        configuration.leader_election.leader_elect = elects;
    }
    let options = Options {
        listen: arguments.listen,
        max_in_flight: arguments.max_in_flight,
        ..Options::new(configuration)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let client = arguments.cluster.client().await?;
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move {
            signals::stopped().await;
            stopping.cancel();
        });
        scheduler::run(client, options, stop).await
    })?;
    Ok(ExitCode::SUCCESS)
}
