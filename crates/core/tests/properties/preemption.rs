//! On clusters of some hundred full nodes, the indexed engine makes room where the plain one does.
//!
//! What making room costs is kept by blocks of nodes, so it takes several blocks to see a search
//! begin, go round and end within and between them.

#![expect(clippy::unwrap_used, reason = "generated objects are well formed")]

use std::sync::Arc;

use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::decision::Decision;
use plimsoll_core::scheduling::filters::Cycle;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::reference;
use plimsoll_core::scheduling::tie_break::Attempts;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

/// A pod that is on a node from the beginning.
#[derive(Clone, Copy, Debug)]
struct Existing {
    priority: i32,
    app: &'static str,
    start_time: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Schedules a pod and, if room has to be made, makes it and tries again.
    Schedule {
        priority: i32,
        is_carried_out: bool,
    },
    /// A pod of the node with that number ends.
    Remove(usize),
    Budget {
        app: &'static str,
        allowed: i32,
    },
}

fn app() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b"])
}

fn existing() -> impl Strategy<Value = Existing> {
    (-1..3i32, app(), proptest::option::of(0..3i64)).prop_map(|(priority, app, start_time)| {
        Existing {
            priority,
            app,
            start_time,
        }
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..4i32, any::<bool>()).prop_map(|(priority, is_carried_out)| {
            Event::Schedule { priority, is_carried_out }
        }),
        1 => any::<usize>().prop_map(Event::Remove),
        1 => (app(), 0..4i32).prop_map(|(app, allowed)| Event::Budget { app, allowed }),
    ]
}

fn node(number: usize) -> NodeView {
    let api = json!({
        "metadata": {"name": format!("n{number}"), "labels": {
            "topology.kubernetes.io/zone": (number % 3).to_string(),
        }},
        "status": {"allocatable": {"cpu": "2", "pods": "110"}},
    });
    NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

fn pod(name: &str, app: &str, priority: i32) -> SchedulingPod {
    let api = json!({
        "metadata": {"name": name, "uid": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"priority": priority, "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1"}}},
        ]},
    });
    SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

fn budget(app: &str, allowed: i32) -> DisruptionBudget {
    let api = json!({
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0},
    });
    DisruptionBudget::from_api(&serde_json::from_value(api).unwrap())
}

fn engine(nodes: &[[Existing; 2]], wanted: i32, seed: u64) -> Engine {
    let config = json!({"name": "DefaultPreemption", "args": {
        "minCandidateNodesPercentage": wanted, "minCandidateNodesAbsolute": 1,
    }});
    let profile = Profile::default().with_plugin_config(&[config]).unwrap();
    let mut engine = Engine::new(vec![profile], seed);
    for (number, pods) in nodes.iter().enumerate() {
        let view = node(number);
        let name = view.name.clone();
        engine.change(|cluster| [cluster.set_node(view)]);
        for (place, existing) in pods.iter().enumerate() {
            let mut pod = pod(
                &format!("e{number}-{place}"),
                existing.app,
                existing.priority,
            );
            pod.start_time = existing.start_time;
            engine.change(|cluster| cluster.assume_pod(Arc::new(pod), &name));
        }
    }
    engine
}

/// Runs both engines, and carries out the decision.
fn schedule(
    engine: &mut Engine,
    attempts: &mut Attempts,
    pod: &Arc<SchedulingPod>,
    is_carried_out: bool,
) -> Result<Option<NodeName>, TestCaseError> {
    let cluster = engine.cluster().clone();
    let cycle = Cycle {
        cluster: &cluster,
        profile: &engine.profiles()[0].clone(),
        pod,
    };
    let plain = reference::rationale(&cycle, *attempts).preemption;
    let indexed = engine.rationale(0, pod).preemption;
    prop_assert_eq!(format!("{plain:?}"), format!("{indexed:?}"));
    let plain = reference::schedule(&cycle, attempts);
    let indexed = engine.schedule(0, pod);
    prop_assert_eq!(format!("{plain:?}"), format!("{indexed:?}"));
    match indexed {
        Ok(Decision::Place(placement)) => {
            let name = cluster.node(placement.slot).unwrap().view.name.clone();
            engine.change(|cluster| cluster.assume_pod(Arc::clone(pod), &name));
            Ok(None)
        }
        Ok(Decision::Wait(waiting)) if is_carried_out => {
            if let PreemptionResult::At(candidate) = waiting.room {
                for victim in candidate.victims {
                    engine.change(|cluster| cluster.remove_pod(&victim.uid));
                }
            }
            Ok(waiting.nominated)
        }
        _ => Ok(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8)))]

    #[test]
    fn preemption_finds_the_same_nodes(
        nodes in (1..300usize).prop_flat_map(|count| vec([existing(), existing()], count)),
        events in vec(event(), 1..20),
        wanted in select(vec![0, 10, 30, 60, 100]),
        seed in any::<u64>(),
    ) {
        let mut engine = engine(&nodes, wanted, seed);
        let mut attempts = Attempts::new(seed);
        for (number, event) in events.iter().enumerate() {
            match event {
                Event::Schedule { priority, is_carried_out } => {
                    let mut pod = pod(&format!("p{number}"), "high", *priority);
                    let waiting = Arc::new(pod.clone());
                    let nominated =
                        schedule(&mut engine, &mut attempts, &waiting, *is_carried_out)?;
                    if let Some(node) = nominated {
                        pod.nominated_node_name = Some(node);
                        let pod = Arc::new(pod);
                        engine.change(|cluster| cluster.set_pod(Arc::clone(&pod)));
                        schedule(&mut engine, &mut attempts, &pod, false)?;
                    }
                }
                Event::Remove(number) => {
                    let uid = format!("e{}-0", number % nodes.len());
                    engine.change(|cluster| cluster.remove_pod(&uid.as_str().into()));
                }
                Event::Budget { app, allowed } => {
                    engine.change(|cluster| [cluster.set_budget(budget(app, *allowed))]);
                }
            }
        }
    }
}
