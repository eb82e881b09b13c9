//! The cost of a node; needs root.
//!
//! Memory and cpu of the agent at rest with few pods and with as many as a node takes, memory of a
//! whole `plimsoll up`, and how long a pod takes from its creation to running. The containers
//! are those of the embedded runtime.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cost::Cost;
use crate::pods::Pods;
use crate::stage::{NODE, Stage};
use crate::times::Times;

/// How long an idle node is measured.
const AT_REST: Duration = Duration::from_secs(30);
/// How many pods are started one after the other.
const STARTS: usize = 50;

/// From the start of the process to node Ready, over and over.
const STARTS_OF_UP: usize = 5;

/// How fast a cluster starts.
pub(crate) async fn start_up() -> Result<()> {
    let mut took = Times::default();
    for _ in 0..STARTS_OF_UP {
        let mut stage = Stage::new()?;
        let began = Instant::now();
        stage.up()?;
        let pods = Pods::connect(&stage.kubeconfig(), None).await?;
        pods.until_node_is_ready().await?;
        took.push(began.elapsed());
    }
    took.print("start-up, `plimsoll up` to node Ready");
    Ok(())
}

/// What a node costs, and how fast pods start.
pub(crate) async fn run() -> Result<()> {
    everything_in_one_process().await?;
    agent_alone().await
}

async fn everything_in_one_process() -> Result<()> {
    let mut stage = Stage::new()?;
    let up = stage.up()?;
    let pods = Pods::connect(&stage.kubeconfig(), None).await?;
    pods.until_node_is_ready().await?;
    cost_at_rest(up).await?.print("`plimsoll up`, no pods");
    let mut took = Times::default();
    for serial in 0..STARTS {
        took.push(pods.start_and_remove(&format!("single-{serial}")).await?);
    }
    took.print("`plimsoll up`, pod created to Running");
    Ok(())
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
        cost.print(&format!("`plimsoll node`, {to} pods"));
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
