//! What a node costs, as root.
//!
//! Memory and cpu of the agent at rest with few pods and with as many as a node takes, memory of a
//! whole `plimsoll up`, and how long a pod takes from being asked for to running. The containers
//! are those of the embedded runtime.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cost::Cost;
use crate::pods::Pods;
use crate::stage::{NODE, Stage};

/// A node at rest is watched for so long.
const AT_REST: Duration = Duration::from_secs(30);
/// How many pods are started one after the other.
const STARTS: usize = 50;

/// All figures of a node.
pub(crate) async fn run() -> Result<()> {
    println!("| what | figure |\n|---|---|");
    everything_in_one_process().await?;
    agent_alone().await
}

async fn everything_in_one_process() -> Result<()> {
    let mut stage = Stage::new()?;
    let began = Instant::now();
    let up = stage.up()?;
    let pods = Pods::connect(&stage.kubeconfig(), None).await?;
    pods.until_node_is_ready().await?;
    row(
        "`plimsoll up`: started to node Ready",
        &millis(began.elapsed()),
    );
    let cost = cost_at_rest(up).await?;
    row("`plimsoll up`, no pods: memory", &cost.memory());
    row("`plimsoll up`, no pods: cpu", &cost.cpu());
    start_one_by_one(&pods, "`plimsoll up`").await
}

async fn agent_alone() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.server()?;
    // The agent reads the credentials once: they have to be there.
    let pods = Pods::connect(&stage.kubeconfig(), Some(NODE)).await?;
    let agent = stage.node()?;
    pods.until_node_is_ready().await?;
    for (from, to) in [(0, 10), (10, 110)] {
        pods.start_all(from..to).await?;
        let cost = cost_at_rest(agent).await?;
        row(
            &format!("`plimsoll node`, {to} pods: memory"),
            &cost.memory(),
        );
        row(&format!("`plimsoll node`, {to} pods: cpu"), &cost.cpu());
        row(
            &format!("its helpers, {to} pods: memory (proportional)"),
            &cost.helpers(),
        );
    }
    Ok(())
}

async fn cost_at_rest(process: u32) -> Result<Cost> {
    // What starting has brought settles first.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let before = Cost::of(process)?;
    tokio::time::sleep(AT_REST).await;
    Ok(Cost::of(process)?.since(&before, AT_REST))
}

async fn start_one_by_one(pods: &Pods, whose: &str) -> Result<()> {
    let mut took = Vec::new();
    for serial in 0..STARTS {
        took.push(pods.start_and_remove(&format!("single-{serial}")).await?);
    }
    took.sort();
    let at = |part: usize| millis(took[(took.len() - 1) * part / 100]);
    row(
        &format!("{whose}: pod created to Running, p50 / p90 / max"),
        &format!("{} / {} / {}", at(50), at(90), at(100)),
    );
    Ok(())
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
