//! All controllers in one process: the loops about nodes, workloads and housekeeping, sharing one
//! set of watches, led by one of several processes.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::leadership::Election;
use crate::serving::{self, Site};
use crate::{housekeeping, nodes, work_queue, workloads};
use plimsoll_client::events::Recorder;
use plimsoll_client::informer::Informers;
use plimsoll_client::process;

/// The Lease. It has the name of upstream's, so that never both act on one cluster.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// How the controllers are run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether one of several processes is elected to act.
    pub elects_leader: bool,
    /// Where health is served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// When silent nodes are given up.
    pub node_lifecycle: nodes::lifecycle::Options,
    /// What is kept of evicted pods.
    pub evicted_pods: housekeeping::evicted_pods::Options,
    /// What every namespace is given; nothing where the API server sees to that itself.
    pub furniture: Option<housekeeping::furniture::Options>,
    /// When finished and orphaned pods are removed.
    pub pod_gc: housekeeping::pod_gc::Options,
}

/// Runs all controllers until `stop`, or until leadership is lost.
pub async fn run(client: Client, options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    // Everything that runs here ends with it, however it ends.
    let stop = stop.child_token();
    let _all_ends = stop.clone().drop_guard();
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        tokio::spawn(serving::serve(listener, Arc::new(Health), stop.clone()));
    }
    if !options.elects_leader {
        run_all(client, options, stop).await;
        return Ok(());
    }
    let identity = process::identity();
    let recorder = Recorder::counted(client.clone(), LEASE.1, stop.clone());
    let election = Election::new(LEASE.0, LEASE.1, &identity);
    let leading = client.clone();
    let lead = move |stop| run_all(leading, options, stop);
    election.run(client, Some(recorder), stop, lead).await?;
    Ok(())
}

async fn run_all(client: Client, options: Options, stop: CancellationToken) {
    let informers = Informers::new(client);
    let shared = || Arc::clone(&informers);
    let until = || stop.clone();
    tokio::join!(
        nodes::lifecycle::run(shared(), options.node_lifecycle, until()),
        nodes::taint_eviction::run(shared(), Default::default(), until()),
        workloads::run_all(shared(), Default::default(), until()),
        housekeeping::evicted_pods::run(shared(), options.evicted_pods, until()),
        housekeeping::pod_gc::run(shared(), options.pod_gc, until()),
        housekeeping::ttl_after_finished::run(shared(), Default::default(), until()),
        housekeeping::namespace::run(shared(), Default::default(), until()),
        housekeeping::garbage_collector::run(shared(), Default::default(), until()),
        housekeeping::resource_quota::run(shared(), Default::default(), until()),
        async {
            if let Some(furniture) = options.furniture {
                housekeeping::furniture::run(shared(), furniture, until()).await;
            }
        },
    );
}

/// A process that answers is well: its loops retry whatever fails.
struct Health;

impl Site for Health {
    fn metrics(&self) -> String {
        work_queue::metrics::text()
    }

    fn configuration(&self) -> serde_json::Value {
        serde_json::json!({})
    }
}
