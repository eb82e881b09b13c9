//! `plimsoll up`: a cluster on this machine, in one process.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_apiserver::auth::authority::{Authority, Term};
use plimsoll_apiserver::auth::identity::User;
use plimsoll_apiserver::server::{Server, is_over};
use plimsoll_client::supervision::Weight;
use plimsoll_control::{controllers, scheduler};
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_node::agent::{self, Serving};
use plimsoll_node::identity::request::KeyedCertificate;
use plimsoll_runtime::huge_pages::use_huge_pages;
use plimsoll_runtime::open_files;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::data_dir::{self, Part};
use crate::exit::Exit;
use crate::next_steps::print_when_ready;
use crate::node::{DEFAULT_DATA_DIR, DefaultConfinement, NodeArguments, refuse_unfit};
use crate::server::{self, Opened};
use crate::{logging, signals};

/// A new cluster has no pods that rely on upstream's defaults.
const CONFINEMENT: DefaultConfinement = DefaultConfinement::Hardened;

/// Arguments of `plimsoll up`: those of the server, and those of the node.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  # Run a cluster, and use kubectl in another terminal
  plimsoll up
  export KUBECONFIG=/var/lib/plimsoll/admin.kubeconfig
  # Let other machines join
  plimsoll up --listen 0.0.0.0:6443 --tls-san api.example.org
  # Configure the node, and keep everything in one directory
  plimsoll up --config kubelet-config.yaml --data-dir /srv/plimsoll
  # Stop the pods of the cluster
  plimsoll down")]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: server::Arguments,

    #[command(flatten)]
    node: NodeArguments,
}

/// Runs until SIGTERM or SIGINT; containers keep running, and the next start adopts them.
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
    let directory = arguments.server.data_dir();
    // First, so that the directory is closed to other users before the node writes to it. Preflight
    // errors are reported before an error of the directory.
    let made = data_dir::make(directory);
    let trial = arguments
        .node
        .options(CONFINEMENT, directory, Serving::SelfSigned, None)?;
    refuse_unfit(&trial, directory)?;
    made?;
    run_parts(arguments).await?;
    Ok(Exit::Success.into())
}

async fn run_parts(arguments: &Arguments) -> Result<()> {
    let opened = server::open(&arguments.server).await?;
    let directory = opened.directory.clone();
    let _lock = data_dir::lock(&directory, Part::Node)?;
    let options = node_options(arguments, &opened)?;
    let (server, kubeconfig) = (Arc::clone(&opened.server), opened.kubeconfig.clone());
    let stop = signals::stop_token();
    let mut parts: JoinSet<Result<()>> = JoinSet::new();
    parts.spawn(opened.serve());
    supervise_control_plane(&server);
    let node = options.node_name.clone();
    let user = User::new(format!("system:node:{node}"), &["system:nodes"]).authenticated();
    let client = server.client(user);
    let until = stop.clone();
    let watching = User::new("system:apiserver", &["system:masters"]).authenticated();
    let watching = server.client(watching);
    parts.spawn(async move {
        let registered = move || {
            tokio::spawn(print_when_ready(watching, node, kubeconfig));
        };
        let ran = agent::run(client, options, until, registered).await;
        ran.context("the node cannot run")
    });
    // The first part that ends stops the others.
    let first = parts.join_next().await;
    let was_requested = stop.is_cancelled();
    stop.cancel();
    server.stop();
    let mut outcome = flatten(first);
    while let Some(next) = parts.join_next().await {
        outcome = outcome.and(flatten(Some(next)));
    }
    server.supervisor().wait().await;
    outcome?;
    if was_requested {
        announce_end(&directory);
    }
    Ok(())
}

fn flatten(ended: Option<Result<Result<()>, tokio::task::JoinError>>) -> Result<()> {
    ended
        .unwrap_or(Ok(Ok(())))
        .context("a part of the cluster ended unexpectedly")?
}

/// Prints that containers keep running, and the command that stops them.
fn announce_end(directory: &Path) {
    let down = match directory == Path::new(DEFAULT_DATA_DIR) {
        true => "plimsoll down".to_owned(),
        false => format!("plimsoll down --data-dir {}", directory.display()),
    };
    logging::announce(&[
        "the cluster has stopped; containers keep running".to_owned(),
        format!("\"plimsoll up\" adopts them, \"{down}\" stops them"),
    ]);
}

fn node_options(arguments: &Arguments, opened: &Opened) -> Result<agent::Options> {
    let authority = opened.server.authority();
    let names = arguments.node.names()?;
    let name = arguments.node.node_name()?;
    let (first, term) = serving_certificate(authority, &name, &names)?;
    let (sender, given) = watch::channel(first);
    let (signing, signed_for) = (Arc::clone(authority), name.clone());
    tokio::spawn(keep_serving_certificate(
        signing, signed_for, names, term, sender,
    ));
    let serving = Serving::Given(given);
    let ca_pem = Some(authority.trusted_by_nodes_pem());
    arguments
        .node
        .options(CONFINEMENT, &opened.directory, serving, ca_pem)
}

/// The node's serving certificate, and until when it is valid.
fn serving_certificate(
    authority: &Authority,
    node: &str,
    names: &[String],
) -> Result<(KeyedCertificate, Term)> {
    let serving = authority.kubelet_serving(node, names, server::now());
    let serving = serving.context("cannot sign the node's certificate")?;
    let term = authority.term(&serving);
    let keyed = KeyedCertificate {
        certificate_pem: serving.certificate_pem,
        key_pem: serving.key_pem,
    };
    Ok((keyed, term))
}

/// Renews the node's serving certificate before it expires, until the node stops.
async fn keep_serving_certificate(
    authority: Arc<Authority>,
    node: String,
    names: Vec<String>,
    mut term: Term,
    given: watch::Sender<KeyedCertificate>,
) {
    loop {
        tokio::select! {
            () = is_over(term) => {}
            () = given.closed() => return,
        }
        match serving_certificate(&authority, &node, &names) {
            Ok((next, next_term)) => {
                term = next_term;
                given.send_replace(next);
                tracing::info!(node, "renewed serving certificate");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(node, error, "failed to renew serving certificate");
                tokio::time::sleep(server::RETRY).await;
            }
        }
    }
}

/// Runs the scheduler and the controllers for as long as the server runs. Restarts one that fails;
/// the pods of the node are not affected.
fn supervise_control_plane(server: &Arc<Server>) {
    let supervisor = server.supervisor();
    let user = User::new("system:kube-scheduler", &[]).authenticated();
    let (client, stop) = (server.client(user), supervisor.stopping().clone());
    supervisor.keep("scheduler", Weight::Vital, move || {
        let mut configuration = Configuration::default();
        configuration.leader_election.leader_elect = false;
        let options = scheduler::Options::new(configuration);
        let ran = scheduler::run(client.clone(), options, stop.clone());
        async { ran.await.map_err(|error| format!("{error:#}")) }
    });
    // Upstream gives each controller an account of its own; here they share one trusted account.
    let user = User::new("system:kube-controller-manager", &["system:masters"]).authenticated();
    let options = controllers::Options::default();
    controllers::supervise(
        supervisor,
        server.client(user),
        options,
        supervisor.stopping(),
    );
}
