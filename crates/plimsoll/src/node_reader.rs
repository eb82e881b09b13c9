//! Reads nodes: the objects, their pods, configuration and usage.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use plimsoll_client::watching::list;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_report::reading::Reading;
use tokio::task::JoinSet;

use crate::kubelet::Kubelet;

/// The number of samples kept of a node: as many as the forecast uses.
const SAMPLES: usize = 8;

/// Samples of nodes from earlier reads.
#[derive(Default)]
pub(crate) struct Past {
    samples: BTreeMap<String, Vec<Summary>>,
}

/// The nodes of these names, or all of them.
pub(crate) async fn nodes(client: &Client, names: &[String]) -> Result<Vec<Node>> {
    let api: Api<Node> = Api::all(client.clone());
    if names.is_empty() {
        return Ok(list(api, &ListParams::default()).await?);
    }
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(api.get(name).await?);
    }
    Ok(nodes)
}

impl Past {
    /// Reads all nodes again, in parallel.
    pub(crate) async fn look(&mut self, client: &Client, nodes: Vec<Node>) -> Result<Vec<Reading>> {
        let mut looks = JoinSet::new();
        for (index, node) in nodes.into_iter().enumerate() {
            let client = client.clone();
            looks.spawn(async move { read(&client, node).await.map(|read| (index, read)) });
        }
        let mut found = Vec::new();
        while let Some(look) = looks.join_next().await {
            found.push(look??);
        }
        found.sort_by_key(|(index, _)| *index);
        let readings = found.into_iter().map(|(_, look)| self.remember(look));
        Ok(readings.collect())
    }

    fn remember(&mut self, look: Look) -> Reading {
        let Look {
            mut reading,
            sample,
        } = look;
        let past = self.samples.entry(reading.node.name_any()).or_default();
        match sample {
            Ok(sample) => past.push(sample),
            Err(reason) => reading.no_sample = Some(reason),
        }
        let beyond = past.len().saturating_sub(SAMPLES);
        past.drain(..beyond);
        // An old sample does not show the present usage.
        if reading.no_sample.is_none() {
            reading.samples.clone_from(past);
        }
        reading
    }
}

struct Look {
    reading: Reading,
    sample: Result<Summary, String>,
}

async fn read(client: &Client, node: Node) -> Result<Look> {
    let name = node.name_any();
    let pods: Api<Pod> = Api::all(client.clone());
    let bound = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let pods = list(pods, &bound).await?;
    let kubelet = Kubelet::new(client, &name);
    // In parallel, so that several nodes that do not answer cost one timeout.
    let (sample, config, lines) =
        tokio::join!(kubelet.summary(), kubelet.configuration(), kubelet.lines());
    Ok(Look {
        reading: Reading {
            node,
            pods,
            config,
            samples: Vec::new(),
            no_sample: None,
            lines: lines.ok(),
        },
        sample,
    })
}
