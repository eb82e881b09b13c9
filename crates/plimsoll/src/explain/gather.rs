//! Reads everything about a pod or a node.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};
use plimsoll_client::clock::Clock;
use plimsoll_client::watching;
use plimsoll_core::eviction::summary::PodStats;
use plimsoll_core::scheduling::preemption::PREEMPTED_EVENT_REASON;
use plimsoll_report::explain::{
    DELETED_BY_OWNER, Found, FoundNode, Logs, SchedulerTraces, Snapshot, events, is_evicted,
    is_lease_of, scheduler_of, signals_at_risk, with_relevant_log,
};
use plimsoll_report::loadline::compute;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::kubelet::Kubelet;
use crate::node_reader::Past;

use super::snapshot::snapshot;

/// The number of decisions to read of a node.
const DECISIONS: usize = 10;
/// The number of lines to read of a log, and the maximum size.
const LOG_LINES: i64 = 10;
const LOG_BYTES: i64 = 16 << 10;
/// The maximum number of containers of a pod whose logs are read.
const CONTAINERS: usize = 8;
/// The timeout of a log.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything about a pod. Returns the API server's NotFound error if there is no trace of the pod.
pub(crate) async fn pod(client: &Client, namespace: &str, name: &str) -> Result<Found> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let answer = pods.get(name).await;
    let mut found = Found {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Found::default()
    };
    let missing = match answer {
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
    if let Some(pod) = found.pod.clone() {
        found.logs = logs(client, &pod).await;
        found.preemptions = preemptions(client, &pod).await;
        if is_alive(&pod) {
            found.usage = usage(client, &found).await;
            let snapshot = snapshot(client).await?;
            if found.node().is_none() {
                let traces = scheduler_traces(client, scheduler_of(&pod), &snapshot).await;
                found.scheduler = Some(traces);
            }
            found.snapshot = Some(snapshot);
        }
    }
    let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    if found.pod.as_ref().is_none_or(is_going) {
        found.deletions = deletions(client, namespace).await;
        found.cordoned_node = cordoned_node(client, &found).await;
    }
    Ok(found)
}

/// The last log lines of failing containers.
async fn logs(client: &Client, pod: &Pod) -> Logs {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let name = pod.name_any();
    let mut logs = Logs::new();
    for (container, previous) in with_relevant_log(pod).into_iter().take(CONTAINERS) {
        let parameters = LogParams {
            container: Some(container.clone()),
            previous,
            tail_lines: Some(LOG_LINES),
            limit_bytes: Some(LOG_BYTES),
            ..LogParams::default()
        };
        let answer = timeout(PATIENCE, pods.logs(&name, &parameters)).await;
        let lines = match answer {
            Ok(Ok(text)) => Ok(text.lines().map(printable).collect()),
            Ok(Err(error)) => Err(crate::cluster::reason(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        };
        logs.insert(container, lines);
    }
    logs
}

/// A line without control characters, so that a log cannot move the cursor or change colours.
fn printable(line: &str) -> String {
    let line = line.replace('\t', "    ");
    line.chars().filter(|c| !c.is_control()).collect()
}

/// Events of pods that were preempted for this pod.
async fn preemptions(client: &Client, pod: &Pod) -> Vec<Event> {
    let spec = pod.spec.as_ref();
    let priority = spec.and_then(|spec| spec.priority).unwrap_or(0);
    let status = pod.status.as_ref();
    let nominated = status.and_then(|status| status.nominated_node_name.as_ref());
    if priority == 0 && nominated.is_none() {
        return Vec::new();
    }
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let is_by = |event: &Event| {
        let related = event.related.as_ref();
        let by = related.and_then(|related| related.uid.as_deref());
        let message = event.message.as_deref().unwrap_or_default();
        by == Some(&uid) || message.contains(&format!("pod {uid} "))
    };
    let mut events = events_of_reason(client, None, PREEMPTED_EVENT_REASON).await;
    events.retain(is_by);
    events.sort_by_key(events::timestamp);
    events
}

async fn deletions(client: &Client, namespace: &str) -> Vec<Event> {
    events_of_reason(client, Some(namespace), DELETED_BY_OWNER).await
}

/// Optional details: returns nothing if the events cannot be listed.
async fn events_of_reason(client: &Client, namespace: Option<&str>, reason: &str) -> Vec<Event> {
    let api: Api<Event> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let fields = ListParams::default().fields(&format!("reason={reason}"));
    watching::list(api, &fields).await.unwrap_or_default()
}

async fn cordoned_node(client: &Client, found: &Found) -> Option<String> {
    let name = found.node()?;
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(&name).await.ok()?;
    let is_cordoned = node.spec.and_then(|spec| spec.unschedulable);
    (is_cordoned == Some(true)).then_some(name)
}

/// The objects that show whether a scheduler runs.
async fn scheduler_traces(client: &Client, name: &str, snapshot: &Snapshot) -> SchedulerTraces {
    let leases: Api<Lease> = Api::all(client.clone());
    let leases = watching::list(leases, &ListParams::default()).await;
    let mut leases = leases.unwrap_or_default();
    leases.retain(|lease| is_lease_of(lease, name));
    let api: Api<Event> = Api::all(client.clone());
    let own = ListParams::default().fields(&format!("reportingComponent={name}"));
    SchedulerTraces {
        name: name.to_owned(),
        leases,
        events: watching::list(api, &own).await.unwrap_or_default(),
        pods: snapshot.pods.clone(),
        now: Clock::system().now(),
    }
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

/// Reads the record of the pod's eviction from its node, or from all nodes if its node is unknown.
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
    let mut requests = JoinSet::new();
    for name in names {
        let (kubelet, query) = (Kubelet::new(client, &name), query.clone());
        requests.spawn(async move { (name, kubelet.decisions(&query).await) });
    }
    while let Some(answer) = requests.join_next().await {
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
pub(crate) async fn node(client: &Client, name: &str) -> Result<FoundNode> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(name).await?;
    let mut readings = Past::default().look(client, vec![node]).await?;
    let Some(reading) = readings.pop() else {
        anyhow::bail!("node {name} cannot be read");
    };
    let kubelet = Kubelet::new(client, name);
    let mut rankings = Vec::new();
    for signal in signals_at_risk(&compute(&reading)) {
        rankings.extend(kubelet.ranking(signal).await.ok());
    }
    let records = kubelet.decisions(&format!("limit={DECISIONS}")).await;
    Ok(FoundNode {
        reading,
        rankings,
        records,
    })
}
