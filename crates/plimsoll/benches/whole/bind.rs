//! Pods bound per second: a server, a scheduler and the load as processes of their own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};

use crate::client::connect;
use crate::cost::Cost;
use crate::figure::{Better, print};
use crate::load::{Kind, make_nodes, make_pods};
use crate::stage::Stage;

/// Pods of a run, where so many fit.
const PODS: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// Plain pods on a small cluster.
pub(crate) async fn run() -> Result<()> {
    run_one(1_000, Kind::Basic, PODS).await
}

/// Every kind of pod on every size of cluster.
pub(crate) async fn run_all() -> Result<()> {
    for nodes in [1_000, 5_000] {
        for kind in Kind::ALL {
            let pods = if kind == Kind::PodAntiAffinity {
                // Groups are kept apart, so that each node takes one of a group.
                PODS.min(nodes * 5)
            } else {
                PODS
            };
            run_one(nodes, kind, pods).await?;
        }
    }
    Ok(())
}

async fn run_one(nodes: usize, kind: Kind, pods: usize) -> Result<()> {
    let mut stage = Stage::new()?;
    let server = stage.server()?;
    let client = connect(&stage.kubeconfig()).await?;
    make_nodes(&client, nodes).await?;
    make_pods(&client, kind, pods).await?;
    let bound = tokio::spawn(first_to_last(client, pods));
    // The watch has begun when the list has been read.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = Cost::of(server)?;
    let scheduler = stage.scheduler()?;
    let took = bound.await.context("the watcher is lost")??;
    let name = format!("bind, {}, {nodes} nodes", kind.name());
    print(&name, per_second(pods, took), "pods/s", Better::Higher);
    let server = Cost::of(server)?.since(&before, took);
    server.print_cpu_per(&format!("{name}: CPU of the server per pod"), pods);
    let scheduler = Cost::of(scheduler)?;
    scheduler.print_cpu_per(&format!("{name}: CPU of the scheduler per pod"), pods);
    Ok(())
}

/// The time from the first binding that is seen to the last.
async fn first_to_last(client: Client, count: usize) -> Result<Duration> {
    let api: Api<Pod> = Api::default_namespaced(client);
    let now = api.list(&ListParams::default().limit(1)).await?;
    let version = now.metadata.resource_version.unwrap_or_default();
    let mut changes = api.watch(&WatchParams::default(), &version).await?.boxed();
    let mut first = None;
    let mut seen = 0;
    while seen < count {
        let change = tokio::time::timeout(PATIENCE, changes.try_next()).await;
        let change = change.with_context(|| format!("{seen} of {count} pods are bound"))??;
        let Some(change) = change else {
            bail!("the watch ended after {seen} bindings");
        };
        let is_binding = matches!(&change, WatchEvent::Modified(pod)
            if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
        if is_binding {
            first.get_or_insert_with(Instant::now);
            seen += 1;
        }
    }
    Ok(first.map_or(Duration::ZERO, |first| first.elapsed()))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
