//! `plimsoll node`: the node agent, joined to any Kubernetes API.

mod arguments;
mod confinement;
mod eviction;
mod preflight;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use plimsoll_core::config::NodeConfig;
use plimsoll_node::agent::{self, Serving};
use plimsoll_node::identity::exchange::ClientExchange;
use plimsoll_node::identity::join::{Invitation, join};
use plimsoll_node::identity::kubeconfig::{Kept, write_private};
use plimsoll_node::identity::pin::Pin;
use plimsoll_node::identity::renewal::{Validity, keep_client_certificate};
use plimsoll_runtime::huge_pages::use_huge_pages;
use plimsoll_runtime::open_files;

use crate::data_dir::{self, Part};
use crate::exit::Exit;
use crate::failure::{Advise, usage};
use crate::help::CLUSTER;
use crate::{logging, signals};
pub(crate) use arguments::{
    DEFAULT_DATA_DIR, DISK_WALKER, NodeArguments, RUNTIME_HELPER, absolute, helper_command,
    image_size, parse_image_size, subject,
};
pub(crate) use confinement::DefaultConfinement;
pub(crate) use preflight::{refuse_by, refuse_unfit};

/// A node may join any cluster, and pods of any cluster expect upstream's defaults.
const CONFINEMENT: DefaultConfinement = DefaultConfinement::Upstream;

/// Arguments of `plimsoll node`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  # Join a cluster; plimsoll token create prints the command
  plimsoll node --join https://10.0.0.1:6443 --token abcdef.0123456789abcdef \\
      --discovery-token-ca-cert-hash sha256:…
  # Start the node again later
  plimsoll node
  # Use containerd, and any Kubernetes API server
  plimsoll node --kubeconfig kubelet.kubeconfig --runtime unix:///run/containerd/containerd.sock")]
pub(crate) struct Arguments {
    /// Directory for keys, certificates, images and pod data.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,

    #[command(flatten)]
    node: NodeArguments,

    /// Kubeconfig of the node, for any Kubernetes API server.
    #[arg(long, value_name = "FILE", conflicts_with = "join", help_heading = CLUSTER)]
    kubeconfig: Option<PathBuf>,

    /// API server of the cluster to join; `plimsoll token create` prints the whole command.
    #[arg(long, value_name = "URL", requires = "token", help_heading = CLUSTER)]
    join: Option<http::Uri>,

    /// Bootstrap token to join with.
    #[arg(long, value_name = "TOKEN", requires = "join", help_heading = CLUSTER)]
    token: Option<String>,

    /// Hash of the cluster's CA public key, to verify the API server.
    #[arg(
        long,
        value_name = "sha256:…",
        value_delimiter = ',',
        requires = "join",
        help_heading = CLUSTER
    )]
    discovery_token_ca_cert_hash: Vec<Pin>,

    /// Join without verifying the API server.
    #[arg(
        long,
        requires = "join",
        conflicts_with = "discovery_token_ca_cert_hash",
        help_heading = CLUSTER
    )]
    discovery_token_unsafe_skip_ca_verification: bool,
}

/// Runs until SIGTERM or SIGINT; containers keep running.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    use_huge_pages(false);
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(run_until_stopped(arguments))
}

async fn run_until_stopped(arguments: &Arguments) -> Result<ExitCode> {
    let data_dir = arguments::absolute(&arguments.data_dir)?;
    // First, so that the directory is closed to other users before the node writes to it. Preflight
    // errors are reported before an error of the directory.
    let made = data_dir::make(&data_dir);
    // Checked before joining, so that a machine that cannot be a node does not register.
    let trial = arguments
        .node
        .options(CONFINEMENT, &data_dir, Serving::SelfSigned, None)?;
    refuse_unfit(&trial, &data_dir)?;
    made?;
    run_agent(arguments, &data_dir).await?;
    Ok(Exit::Success.into())
}

async fn run_agent(arguments: &Arguments, data_dir: &Path) -> Result<()> {
    let _lock = data_dir::lock(data_dir, Part::Node)?;
    let (kubeconfig, serving) = match &arguments.kubeconfig {
        Some(path) => (path.clone(), Serving::SelfSigned),
        None => (joined(arguments, data_dir).await?, Serving::Requested),
    };
    let file = Kubeconfig::read_from(&kubeconfig)
        .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config = config.with_context(|| format!("cannot use {}", kubeconfig.display()))?;
    let authority = config.root_cert.as_ref().map(|certificates| {
        let pems = certificates.iter().map(|der| crate::token::pem(der));
        pems.collect::<String>()
    });
    let options = arguments
        .node
        .options(CONFINEMENT, data_dir, serving, authority)?;
    let stop = signals::stop_token();
    let exchange = ClientExchange::new(move || kube::Client::try_from(config.clone()));
    let exchange = exchange.context("cannot create an API client")?;
    let client = exchange.client();
    // The user maintains a kubeconfig given with --kubeconfig.
    if arguments.kubeconfig.is_none() && renews_certificates(&options.config) {
        let name = options.node_name.clone();
        tokio::spawn(keep_client_certificate(
            kubeconfig,
            name,
            exchange,
            stop.clone(),
        ));
    }
    let name = options.node_name.clone();
    agent::run(client, options, stop, || announce(&name))
        .await
        .context("the node cannot run")
}

/// `rotateCertificates`, which kubeadm sets for nodes that join.
fn renews_certificates(config: &NodeConfig) -> bool {
    let rotation = config.carried.get("rotateCertificates");
    rotation.is_none_or(|setting| setting.value != false)
}

fn announce(name: &str) {
    logging::announce(&[format!("node {name} is registered")]);
}

/// The kubeconfig of the node; joins the cluster if there is none yet.
async fn joined(arguments: &Arguments, data_dir: &Path) -> Result<PathBuf> {
    let path = data_dir.join("node.kubeconfig");
    if path.exists() {
        let kept = Kept::read(&path)?;
        let validity = Validity::of_certificate(&kept.client.certificate_pem);
        let is_over = validity.is_ok_and(|validity| validity.is_over(SystemTime::now()));
        match is_over {
            false => return Ok(path),
            true if arguments.join.is_none() => bail!(
                "the certificate in {} has expired; join again with --join and --token",
                path.display()
            ),
            true => {}
        }
    }
    let (Some(server), Some(token)) = (&arguments.join, &arguments.token) else {
        return Err(usage("this machine has not joined a cluster").hint(
            "give --join and --token (\"plimsoll token create\" prints the whole command), or \
             --kubeconfig",
        ));
    };
    let is_pinned = !arguments.discovery_token_ca_cert_hash.is_empty();
    if !is_pinned && !arguments.discovery_token_unsafe_skip_ca_verification {
        return Err(usage(
            "--discovery-token-ca-cert-hash is missing; without it the API server cannot be verified",
        )
        .hint(
            "pass --discovery-token-unsafe-skip-ca-verification to join without verification",
        ));
    }
    let invitation = Invitation {
        server: server.clone(),
        token: token.clone(),
        pins: arguments.discovery_token_ca_cert_hash.clone(),
    };
    let name = arguments.node.node_name()?;
    let kubeconfig = join(&invitation, &name).await;
    let kubeconfig = kubeconfig.with_context(|| format!("cannot join {server}"))?;
    write_private(&path, &kubeconfig)?;
    Ok(path)
}
