//! `plimsoll controllers`: the control loops alone, against any Kubernetes API.

mod node_lifecycle;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_control::controllers::{self, Options};
use plimsoll_control::housekeeping::namespace_defaults;

use crate::cluster::Cluster;
use crate::exit::Exit;
use crate::help::ADVANCED;
use crate::{listen, signals};

/// Arguments of `plimsoll controllers`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Run the controllers, with health and metrics on the usual port
  plimsoll controllers --kubeconfig admin.kubeconfig --listen 127.0.0.1:10257")]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,

    /// Run the controllers only while this process is the elected leader.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    leader_elect: bool,

    /// Address and port for health checks and metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::parse(10257))]
    listen: Option<SocketAddr>,

    /// CA certificate (PEM) to publish in each namespace as ConfigMap kube-root-ca.crt.
    ///
    /// Not needed with Plimsoll's own server, which publishes it itself.
    #[arg(long, value_name = "FILE")]
    root_ca_file: Option<PathBuf>,

    /// Maximum number of evicted pods to keep per owner [default: 5].
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    keep_evicted_pods: Option<usize>,

    /// Maximum number of terminated pods before garbage collection; 0 for no limit [default: 12500].
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    terminated_pod_gc_threshold: Option<usize>,

    #[command(flatten)]
    node_lifecycle: node_lifecycle::Flags,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let client = arguments.cluster.client().await?;
        let root_ca = arguments.root_ca_file.as_deref().map(read).transpose()?;
        let mut options = Options {
            elects_leader: arguments.leader_elect,
            listen: arguments.listen,
            node_lifecycle: arguments.node_lifecycle.options(),
            namespace_defaults: Some(namespace_defaults::Options { root_ca }),
            ..Options::default()
        };
        if let Some(count) = arguments.keep_evicted_pods {
            options.evicted_pods.settings.keep_per_owner = Some(count);
        }
        if let Some(count) = arguments.terminated_pod_gc_threshold {
            options.pod_gc.settings.terminated_threshold = count;
        }
        let stop = signals::stop_token();
        let ran = controllers::run(client, options, stop).await;
        ran.map_err(|error| listen::advise_if(error, arguments.listen, "--listen"))
    })?;
    Ok(Exit::Success.into())
}

fn read(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read --root-ca-file {}", file.display()))?;
    let is_pem = text.contains("-----BEGIN CERTIFICATE-----");
    anyhow::ensure!(
        is_pem,
        "--root-ca-file {} does not contain a PEM certificate",
        file.display()
    );
    Ok(text)
}
