//! `plimsoll scheduler`: the scheduler alone, against any Kubernetes API.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_control::scheduler::{self, Options};
use plimsoll_core::scheduling::configuration::{self, Configuration};

use crate::cluster::Cluster;
use crate::exit::Exit;
use crate::help::ADVANCED;
use crate::input::read_bytes;
use crate::mistakes::checkable;
use crate::{listen, signals};

/// Arguments of `plimsoll scheduler`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Run the default scheduler
  plimsoll scheduler --kubeconfig admin.kubeconfig
  # Check a configuration, then use it
  plimsoll check scheduler-config.yaml
  plimsoll scheduler --kubeconfig admin.kubeconfig --config scheduler-config.yaml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,

    /// KubeSchedulerConfiguration: profiles, plugins, back-off, leader election.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,

    /// Schedule only while this process is the elected leader; overrides the configuration.
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true")]
    leader_elect: Option<bool>,

    /// Address and port for health checks, metrics, configuration and decisions.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::parse(10259))]
    listen: Option<SocketAddr>,

    /// Maximum number of API writes in flight.
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_MAX_IN_FLIGHT,
        help_heading = ADVANCED)]
    max_in_flight: usize,
}

/// The configuration in the file, or upstream's defaults. Reports all mistakes at once.
pub(crate) fn configuration(file: Option<&str>) -> Result<Configuration> {
    let Some(file) = file else {
        return Ok(Configuration::default());
    };
    let reading = configuration::read(&read_bytes(file)?);
    if reading.problems.is_empty() {
        return Ok(reading.configuration);
    }
    Err(checkable(file, &reading.problems))
}

/// Runs until SIGTERM or SIGINT.
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
        let stop = signals::stop_token();
        let ran = scheduler::run(client, options, stop).await;
        ran.map_err(|error| listen::advise_if(error, arguments.listen, "--listen"))
    })?;
    Ok(Exit::Success.into())
}
