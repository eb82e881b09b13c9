//! Decisions per second, by kind of constraint and number of nodes, with 30 pods on each node.
//!
//! `cargo bench -p plimsoll-core --bench scheduling [-- NODES…]`; without numbers 1,000, 5,000 and
//! 50,000. Each decision is carried out: the pod is put on its node before the next decision. Where
//! room has to be made, that is carried out as well in some rows, and a row counts pods that take
//! two decisions each. At 5,000 nodes and below the plain engine is measured too, on a few
//! decisions.

#![expect(clippy::unwrap_used, reason = "the objects are written below")]
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock"
)]
#![expect(clippy::cast_precision_loss, reason = "rates are approximate")]

#[path = "shared/cluster.rs"]
mod cluster;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::decision::Decision;
use plimsoll_core::scheduling::filters::Cycle;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::reference;
use plimsoll_core::scheduling::tie_break::Attempts;
use serde_json::json;

use cluster::{PODS_PER_NODE, cluster, node, pod, pod_with_cpu, scenarios};

/// Decisions measured per row, at most, and for how long.
const DECISIONS: usize = 20_000;
const TIME: Duration = Duration::from_secs(4);

/// Schedules pods and puts them on their nodes; decisions per second.
fn measure(engine: &mut Engine, pods: &[Arc<SchedulingPod>]) -> f64 {
    let started = Instant::now();
    let mut decided = 0usize;
    for pod in pods {
        if let Ok(Decision::Place(placement)) = engine.schedule(0, pod) {
            let node = engine.cluster().node(placement.slot).unwrap();
            let name = node.view.name.clone();
            engine.change(|cluster| cluster.assume_pod(Arc::clone(pod), &name));
        }
        decided += 1;
        if started.elapsed() > TIME {
            break;
        }
    }
    decided as f64 / started.elapsed().as_secs_f64()
}

fn measure_reference(engine: &Engine, pod: &SchedulingPod) -> f64 {
    let mut attempts = Attempts::new(1);
    let started = Instant::now();
    let mut decided = 0usize;
    while decided < 3 || started.elapsed() < Duration::from_millis(500) && decided < 100 {
        let profile = &engine.profiles()[0];
        let cycle = Cycle {
            cluster: engine.cluster(),
            profile,
            pod,
        };
        let _ = std::hint::black_box(reference::schedule(&cycle, &mut attempts));
        decided += 1;
    }
    decided as f64 / started.elapsed().as_secs_f64()
}

fn clean(engine: &mut Engine, pods: &[Arc<SchedulingPod>]) {
    for pod in pods {
        engine.change(|cluster| cluster.remove_pod(&pod.uid));
    }
}

fn row(engine: &mut Engine, name: &str, pods: &[Arc<SchedulingPod>], with_reference: bool) {
    // The first decision of a shape looks at every node; it is shown apart.
    let started = Instant::now();
    let _ = engine.schedule(0, &pods[0]);
    let first = started.elapsed();
    let rate = measure(engine, pods);
    let reference = with_reference.then(|| measure_reference(engine, &pods[0]));
    let ratio = reference.map_or("-".to_owned(), |plain| format!("{:.0}", rate / plain));
    let plain = reference.map_or("-".to_owned(), |plain| format!("{plain:.0}"));
    println!(
        "| {} | {name} | {rate:.0} | {plain} | {ratio} | {:.1} ms |",
        engine.cluster().node_count(),
        first.as_secs_f64() * 1000.0,
    );
    clean(engine, pods);
}

/// Nodes so full of unimportant pods that each important one preempts one of them.
fn full_cluster(nodes: usize) -> Engine {
    let mut engine = Engine::new(vec![Profile::default()], 1);
    let low = pod_with_cpu(String::new(), "low", &json!({"priority": -1}), "2133m");
    for number in 0..nodes {
        let view = node(number);
        let name = view.name.clone();
        engine.change(|cluster| [cluster.set_node(view)]);
        for place in 0..PODS_PER_NODE {
            let mut low = (*low).clone();
            let uid = format!("low-{number}-{place}");
            low.uid = uid.as_str().into();
            low.pod_ref.name = uid;
            low.start_time = Some(i64::try_from((number * 31 + place * 17) % 1000).unwrap());
            engine.change(|cluster| cluster.assume_pod(Arc::new(low), &name));
        }
    }
    engine
}

fn budget(allowed: usize) -> DisruptionBudget {
    let api = json!({
        "metadata": {"name": "low", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0},
    });
    DisruptionBudget::from_api(&serde_json::from_value(api).unwrap())
}

/// Makes room for pods and puts them there: victims removed, the pod nominated, and tried again.
/// Pods per second; each takes two decisions.
fn measure_preemption(
    engine: &mut Engine,
    pods: &[Arc<SchedulingPod>],
    mut allowed: Option<usize>,
) -> f64 {
    let started = Instant::now();
    let mut decided = 0usize;
    for pod in pods {
        let Ok(Decision::Wait(waiting)) = engine.schedule(0, pod) else {
            panic!("there was room");
        };
        let PreemptionResult::At(candidate) = waiting.room else {
            panic!("{}", waiting.message);
        };
        let mut nominated = (**pod).clone();
        nominated.nominated_node_name = waiting.nominated;
        let nominated = Arc::new(nominated);
        engine.change(|cluster| cluster.set_pod(Arc::clone(&nominated)));
        for victim in candidate.victims {
            engine.change(|cluster| cluster.remove_pod(&victim.uid));
            if let Some(allowed) = &mut allowed {
                *allowed = allowed.saturating_sub(1);
                engine.change(|cluster| [cluster.set_budget(budget(*allowed))]);
            }
        }
        let Ok(Decision::Place(placement)) = engine.schedule(0, &nominated) else {
            panic!("the room is not enough");
        };
        let node = engine.cluster().node(placement.slot).unwrap();
        let name = node.view.name.clone();
        engine.change(|cluster| cluster.assume_pod(nominated, &name));
        decided += 1;
        if started.elapsed() > TIME {
            break;
        }
    }
    decided as f64 / started.elapsed().as_secs_f64()
}

fn preemption_rows(nodes: usize) {
    let mut engine = full_cluster(nodes);
    let high = |priority: i32| -> Vec<Arc<SchedulingPod>> {
        let spec = json!({"priority": priority});
        let pods = 0..DECISIONS.min(nodes * 10);
        pods.map(|number| {
            let uid = format!("high-{priority}-{number}");
            pod_with_cpu(uid, "high", &spec, "2130m")
        })
        .collect()
    };
    row(&mut engine, "no room, no preemption", &high(-1), false);
    let pods = high(100);
    row(
        &mut engine,
        "preemption, not carried out",
        &pods,
        nodes <= 5000,
    );
    for (name, allowed) in [
        ("preemption, carried out", None),
        ("preemption under a budget", Some(PODS_PER_NODE * nodes / 2)),
    ] {
        let rate = measure_preemption(&mut engine, &pods, allowed);
        println!("| {nodes} | {name} | {rate:.0} | - | - | - |");
        engine = full_cluster(nodes);
    }
}

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let sizes = if numbers.is_empty() {
        vec![1000, 5000, 50_000]
    } else {
        numbers
    };
    println!("| nodes | pods | decisions/s | plain engine | ratio | first of its shape |");
    println!("|---|---|---|---|---|---|");
    for nodes in sizes {
        let mut engine = cluster(nodes);
        for (name, spec) in scenarios() {
            let pods: Vec<Arc<SchedulingPod>> = (0..DECISIONS)
                .map(|number| pod(format!("incoming-{number}"), "incoming", &spec))
                .collect();
            row(&mut engine, name, &pods, nodes <= 5000);
        }
        let pods: Vec<Arc<SchedulingPod>> = (0..DECISIONS)
            .map(|n| {
                pod(
                    format!("incoming-{n}"),
                    &format!("shape-{}", n % 8),
                    &json!({}),
                )
            })
            .collect();
        row(&mut engine, "eight shapes in turn", &pods, false);
        drop(engine);
        preemption_rows(nodes);
    }
}
