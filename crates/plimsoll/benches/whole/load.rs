//! Nodes and pods that exist only as objects.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// So many requests at once.
const IN_FLIGHT: usize = 32;
/// Nodes lie in so many zones.
const ZONES: usize = 3;
/// Pods that select each other are of one of so many groups.
const GROUPS: usize = 10;

/// Kinds of pods, by what they ask of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Basic,
    NodeAffinity,
    PodAffinity,
    PodAntiAffinity,
    Spread,
    PreferredMix,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] = [
        Kind::Basic,
        Kind::NodeAffinity,
        Kind::PodAffinity,
        Kind::PodAntiAffinity,
        Kind::Spread,
        Kind::PreferredMix,
    ];

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Basic => "basic",
            Kind::NodeAffinity => "node affinity",
            Kind::PodAffinity => "pod affinity",
            Kind::PodAntiAffinity => "pod anti-affinity",
            Kind::Spread => "spread",
            Kind::PreferredMix => "preferred mix",
        }
    }

    fn spec(self, serial: usize) -> Value {
        let mut spec = json!({
            "containers": [{
                "name": "main", "image": "pause",
                "resources": { "requests": { "cpu": "100m", "memory": "500Mi" } },
            }],
            "terminationGracePeriodSeconds": 0,
        });
        let peers = json!({ "matchLabels": { "group": group(serial) } });
        let zone = "topology.kubernetes.io/zone";
        let host = "kubernetes.io/hostname";
        let fast = json!([{ "key": "disk", "operator": "In", "values": ["ssd"] }]);
        match self {
            Kind::Basic => {}
            Kind::NodeAffinity => {
                spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!({ "nodeSelectorTerms": [{ "matchExpressions": fast }] });
            }
            Kind::PodAffinity => {
                spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{ "labelSelector": peers, "topologyKey": zone }]);
            }
            Kind::PodAntiAffinity => {
                spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{ "labelSelector": peers, "topologyKey": host }]);
            }
            Kind::Spread => {
                spec["topologySpreadConstraints"] = json!([
                    spread(zone, "DoNotSchedule", &peers),
                    spread(host, "ScheduleAnyway", &peers),
                ]);
            }
            Kind::PreferredMix => {
                spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{ "weight": 10, "preference": { "matchExpressions": fast } }]);
                spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([{
                    "weight": 50,
                    "podAffinityTerm": { "labelSelector": peers, "topologyKey": host },
                }]);
                spec["topologySpreadConstraints"] = json!([spread(zone, "ScheduleAnyway", &peers)]);
            }
        }
        spec
    }
}

fn spread(topology: &str, otherwise: &str, peers: &Value) -> Value {
    json!({
        "maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": otherwise,
        "labelSelector": peers,
    })
}

fn group(serial: usize) -> String {
    format!("g{}", serial % GROUPS)
}

/// Makes nodes that are ready.
pub(crate) async fn make_nodes(client: &Client, count: usize) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let make = |serial| {
        let api = api.clone();
        async move {
            let (node, status) = node(serial);
            let node = serde_json::from_value(node)?;
            let made = api.create(&PostParams::default(), &node).await;
            let made = made.context("cannot create a node")?;
            let name = made.metadata.name.unwrap_or_default();
            // New nodes are tainted until a controller finds them ready; there is none here.
            let untainted = Patch::Merge(json!({ "spec": { "taints": null } }));
            api.patch(&name, &PatchParams::default(), &untainted)
                .await
                .context("cannot take a node's taint away")?;
            let status = Patch::Merge(status);
            api.patch_status(&name, &PatchParams::default(), &status)
                .await
                .context("cannot update a node's status")?;
            anyhow::Ok(())
        }
    };
    let all = stream::iter(0..count).map(make).buffer_unordered(IN_FLIGHT);
    all.try_collect().await
}

/// Makes pods of a kind.
pub(crate) async fn make_pods(client: &Client, kind: Kind, count: usize) -> Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let make = |serial| {
        let api = api.clone();
        async move {
            let name = format!("p-{serial}");
            let pod = json!({
                "metadata": { "name": name, "labels": { "group": group(serial) } },
                "spec": kind.spec(serial),
            });
            let pod = serde_json::from_value(pod)?;
            let made = api.create(&PostParams::default(), &pod).await;
            made.context("cannot create a pod").map(drop)
        }
    };
    let all = stream::iter(0..count).map(make).buffer_unordered(IN_FLIGHT);
    all.try_collect().await
}

fn node(serial: usize) -> (Value, Value) {
    let name = format!("node-{serial:06}");
    let disk = if serial.is_multiple_of(2) {
        "ssd"
    } else {
        "hdd"
    };
    let node = json!({ "metadata": { "name": name, "labels": {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": format!("zone-{}", serial % ZONES),
        "disk": disk,
    } } });
    let has = json!({ "cpu": "32", "memory": "256Gi", "pods": "110" });
    let ready = json!({ "type": "Ready", "status": "True", "reason": "KubeletReady" });
    let status = json!({ "status": {
        "capacity": has, "allocatable": has, "conditions": [ready],
    } });
    (node, status)
}
