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
use crate::{listen, signals};

/// Arguments of `plimsoll controllers`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,

    /// Act only while elected; others may stand by.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    leader_elect: bool,

    #[command(flatten)]
    node_lifecycle: node_lifecycle::Flags,

    /// Where health is served.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::parse(10257))]
    listen: Option<SocketAddr>,

    /// The certificate by which pods know the API server, in PEM: every namespace gets it as the
    /// ConfigMap kube-root-ca.crt. Plimsoll's own server gives it by itself.
    #[arg(long, value_name = "FILE")]
    root_ca_file: Option<PathBuf>,

    /// Evicted pods that are kept of each owner.
    #[arg(long, value_name = "N")]
    keep_evicted_pods: Option<usize>,

    /// Finished pods that are kept in the whole cluster before the oldest are removed; 0 keeps all.
    #[arg(long, value_name = "N")]
    terminated_pod_gc_threshold: Option<usize>,
}

/// Runs until told to stop.
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
        "--root-ca-file {} has no certificate in PEM",
        file.display()
    );
    Ok(text)
}
