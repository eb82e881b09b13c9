//! Reading all that is to be known about a pod or a node.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use plimsoll_client::watching;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::summary::PodStats;
use tokio::task::JoinSet;

use crate::kubelet::Kubelet;
use crate::loadline::compute::Reading;
use crate::loadline::read::Past;

use super::ended::is_evicted;
use super::events;
use super::pod::Found;
use super::snapshot::Snapshot;

/// How many decisions of a node are asked for.
const DECISIONS: usize = 10;

/// Everything about a pod. That it is not known at all is the API server's own answer.
pub(crate) async fn pod(client: &Client, namespace: &str, name: &str) -> Result<Found> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let asked = pods.get(name).await;
    let mut found = Found {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Found::default()
    };
    let missing = match asked {
        Ok(pod) => {
            found.pod = Some(pod);
            None
        }
        Err(error @ kube::Error::Api(_)) if is_not_found(&error) => Some(error),
        Err(error) => return Err(error.into()),
    };
    match pod_events(client, namespace, name).await {
        Ok(events) => found.events = events,
        Err(reason) => found.unknown.push(format!("events: {reason}")),
    }
    records(client, &mut found).await?;
    if let Some(error) = missing.filter(|_| found.events.is_empty() && found.records.is_empty()) {
        return Err(error.into());
    }
    let is_alive = found.pod.as_ref().is_some_and(is_alive);
    if is_alive {
        found.snapshot = Some(Snapshot::read(client).await?);
        found.usage = usage(client, &found).await;
    }
    Ok(found)
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

fn is_alive(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

async fn pod_events(client: &Client, namespace: &str, name: &str) -> Result<Vec<Event>, String> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let about = format!("involvedObject.kind=Pod,involvedObject.name={name}");
    let listed = watching::list(api, &ListParams::default().fields(&about)).await;
    listed.map_err(|error| crate::cluster::reason(&error))
}

/// Looks for the record of its eviction: on its node if that is known, else on all of them.
async fn records(client: &Client, found: &mut Found) -> Result<()> {
    let pod = found.pod.as_ref();
    let was_evicted = pod.is_none_or(is_evicted);
    if !was_evicted {
        return Ok(());
    }
    let spec = pod.and_then(|pod| pod.spec.as_ref());
    let node = spec.and_then(|spec| spec.node_name.clone());
    let node = node.or_else(|| events::node_of(&found.events));
    let names = match node {
        Some(node) => vec![node],
        None => node_names(client).await?,
    };
    let query = format!("pod={}/{}", found.namespace, found.name);
    let mut asked = JoinSet::new();
    for name in names {
        let (kubelet, query) = (Kubelet::new(client, &name), query.clone());
        asked.spawn(async move { (name, kubelet.decisions(&query).await) });
    }
    while let Some(answer) = asked.join_next().await {
        match answer? {
            (node, Ok(records)) => {
                let records = records.into_iter();
                found.records.extend(records.map(|one| (node.clone(), one)));
            }
            (node, Err(reason)) if found.pod.is_some() => {
                let text = format!("what node {node} recorded of the decision: {reason}");
                found.unknown.push(text);
            }
            (_, Err(_)) => {}
        }
    }
    found.records.sort_by_key(|(_, record)| record.at);
    Ok(())
}

async fn node_names(client: &Client) -> Result<Vec<String>> {
    let api: Api<Node> = Api::all(client.clone());
    let nodes = api.list_metadata(&ListParams::default()).await?;
    Ok(nodes.items.iter().map(ResourceExt::name_any).collect())
}

async fn usage(client: &Client, found: &Found) -> Option<PodStats> {
    let pod = found.pod.as_ref()?;
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    let summary = Kubelet::new(client, node).summary().await.ok()?;
    let uid = pod.metadata.uid.as_deref();
    let mut pods = summary.pods.into_iter();
    pods.find(|pod| Some(pod.pod_ref.uid.as_str()) == uid)
}

/// Everything about a node.
pub(crate) async fn node(
    client: &Client,
    name: &str,
) -> Result<(Reading, Result<Vec<Record>, String>)> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(name).await?;
    let mut readings = Past::default().look(client, vec![node]).await?;
    let Some(reading) = readings.pop() else {
        anyhow::bail!("node {name} cannot be read");
    };
    let query = format!("limit={DECISIONS}");
    let records = Kubelet::new(client, name).decisions(&query).await;
    Ok((reading, records))
}
