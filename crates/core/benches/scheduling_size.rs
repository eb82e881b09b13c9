//! Memory of the indexes, and the cost of a decision, on very large clusters.
//!
//! `cargo bench -p plimsoll-core --bench scheduling_size [-- NODESxPODS…]`; without arguments 5,000
//! nodes with 30 pods each and 100,000 with 10 each. The resident size is read after each step,
//! which separates the indexes from the views they are about.

#![expect(clippy::unwrap_used, reason = "the objects are written below")]
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and its own size"
)]
#![expect(clippy::cast_precision_loss, reason = "sizes are approximate")]

use std::sync::Arc;
use std::time::Instant;

use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::Cluster;
use plimsoll_core::scheduling::decision::Decision;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::profile::Profile;
use serde_json::{Value, json};

const ZONES: usize = 10;
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const DECISIONS: usize = 20_000;

fn node(number: usize) -> NodeView {
    let name = format!("node-{number}");
    let api = json!({
        "metadata": {"name": name, "labels": {
            HOSTNAME: name, ZONE: format!("zone-{}", number % ZONES),
        }},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
    });
    NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

fn pod(uid: String, app: &str, spec: &Value) -> SchedulingPod {
    let mut spec = spec.clone();
    spec["containers"] = json!([{
        "name": "c", "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }]);
    let api = json!({
        "metadata": {"name": uid, "namespace": "default", "uid": uid, "labels": {"app": app}},
        "spec": spec,
    });
    SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

/// Resident size in bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

fn measure(nodes: usize, pods_per_node: usize) {
    let kinds: Vec<SchedulingPod> = (0..100)
        .map(|kind| pod(String::new(), &format!("existing-{kind}"), &json!({})))
        .collect();
    let views: Vec<NodeView> = (0..nodes).map(node).collect();
    let mut pods = Vec::new();
    for number in 0..nodes {
        for place in 0..pods_per_node {
            let mut pod = kinds[(number * 7 + place * 13) % kinds.len()].clone();
            let uid = format!("existing-{number}-{place}");
            pod.uid = uid.as_str().into();
            pod.pod_ref.name = uid;
            pods.push((number, Arc::new(pod)));
        }
    }
    let with_views = resident();
    let mut cluster = Cluster::new();
    for view in &views {
        cluster.set_node(view.clone());
    }
    for (number, pod) in &pods {
        cluster.assume_pod(Arc::clone(pod), &views[*number].name);
    }
    let with_cluster = resident();
    let started = Instant::now();
    let mut engine = Engine::new(vec![Profile::default()], 1);
    for view in &views {
        engine.change(|cluster| [cluster.set_node(view.clone())]);
    }
    for (number, pod) in &pods {
        engine.change(|cluster| cluster.assume_pod(Arc::clone(pod), &views[*number].name));
    }
    let loading = started.elapsed();
    let selector = json!({"matchLabels": {"app": "incoming-1"}});
    let constraint = |key: &str| {
        json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector})
    };
    let specs = [
        json!({}),
        json!({"topologySpreadConstraints": [constraint(ZONE), constraint(HOSTNAME)]}),
    ];
    // One decision of each shape builds its class; the pods to come are not part of the index.
    for (number, spec) in specs.iter().enumerate() {
        let first = pod(
            format!("first-{number}"),
            &format!("incoming-{number}"),
            spec,
        );
        let _ = engine.schedule(0, &Arc::new(first));
    }
    let with_engine = resident();
    let mut rates = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        let incoming: Vec<Arc<SchedulingPod>> = (0..DECISIONS)
            .map(|n| {
                Arc::new(pod(
                    format!("incoming-{number}-{n}"),
                    &format!("incoming-{number}"),
                    spec,
                ))
            })
            .collect();
        let _ = engine.schedule(0, &incoming[0]);
        let started = Instant::now();
        for pod in &incoming {
            if let Ok(Decision::Place(placement)) = engine.schedule(0, pod) {
                let node = engine.cluster().node(placement.slot).unwrap();
                let name = node.view.name.clone();
                engine.change(|cluster| cluster.assume_pod(Arc::clone(pod), &name));
            }
        }
        rates.push(DECISIONS as f64 / started.elapsed().as_secs_f64());
    }
    let state = with_cluster - with_views;
    let index = with_engine - with_cluster - state;
    let total = (nodes * pods_per_node) as f64;
    println!(
        "| {nodes} | {total} | {:.1} | {:.0} | {:.0} | {:.0} | {index_per_node:.0} | {:.0} | {:.0} |",
        loading.as_secs_f64(),
        with_views / 1e6,
        state / 1e6,
        index / 1e6,
        rates[0],
        rates[1],
        index_per_node = index / nodes as f64,
    );
}

fn main() {
    let sizes: Vec<(usize, usize)> = std::env::args()
        .filter_map(|arg| {
            let (nodes, pods) = arg.split_once('x')?;
            Some((nodes.parse().ok()?, pods.parse().ok()?))
        })
        .collect();
    let sizes = if sizes.is_empty() {
        vec![(5_000, 30), (100_000, 10)]
    } else {
        sizes
    };
    println!(
        "| nodes | pods | loading s | views MB | cluster MB | indexes MB | index B per node | \
         basic/s | spread/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (nodes, pods) in sizes {
        measure(nodes, pods);
    }
}
