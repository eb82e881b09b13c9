//! Laws of the scheduler's state and of its decisions.

#![expect(clippy::unwrap_used, reason = "generated objects are well formed")]

use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodUid};
use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::Cluster;
use plimsoll_core::scheduling::decision::Decision;
use plimsoll_core::scheduling::filters::{Cycle, FilterState, Trial};
use plimsoll_core::scheduling::pod::{Request, SchedulingPod};
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::reference::{Search, filter_nodes, rationale, schedule};
use plimsoll_core::scheduling::tie_break::Attempts;
use proptest::prelude::*;
use serde_json::{Value, json};

fn node() -> impl Strategy<Value = Value> {
    let zone = prop::option::of("[ab]");
    (0..5usize, 1..5u32, zone, any::<bool>(), 0..3u32).prop_map(
        |(number, cpu, zone, is_tainted, pods)| {
            let name = format!("n{number}");
            let mut labels = json!({"kubernetes.io/hostname": name});
            if let Some(zone) = zone {
                labels["topology.kubernetes.io/zone"] = json!(zone);
            }
            let taints = if is_tainted && number > 2 {
                json!([{"key": "k", "effect": "NoSchedule"}])
            } else {
                json!([])
            };
            json!({
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {
                    "allocatable": {"cpu": cpu.to_string(), "pods": (pods + 2).to_string()},
                    "images": [{"names": [format!("image-{pods}:1")], "sizeBytes": 100_000_000}],
                },
            })
        },
    )
}

fn term(app: &str, key: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

/// What a pod says of others: nothing, enmity, friendship or even spreading.
fn relation() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("kubernetes.io/hostname"),
        Just("topology.kubernetes.io/zone")
    ];
    ("[abc]", key, 0..4u8).prop_map(|(app, key, kind)| match kind {
        0 => json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(&app, key)],
        }}}),
        1 => json!({"affinity": {"podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": term(&app, key)},
            ],
        }}}),
        2 => json!({"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }]}),
        _ => json!({}),
    })
}

fn pod() -> impl Strategy<Value = Value> {
    (0..12u8, "[abc]", 0..3000u32, 0..3, relation(), 0..6u8).prop_map(
        |(number, app, cpu, priority, relation, port)| {
            let mut spec = json!({
                "priority": priority,
                "containers": [{
                    "name": "c",
                    "image": "image-1:1",
                    "resources": {"requests": {"cpu": format!("{cpu}m")}},
                    "ports": [{"containerPort": 1, "hostPort": if port == 0 { 80 } else { 0 }}],
                }],
            });
            for (key, value) in relation.as_object().unwrap() {
                spec[key] = value.clone();
            }
            json!({
                "metadata": {
                    "name": format!("p{number}"), "namespace": "default",
                    "uid": format!("p{number}"), "labels": {"app": app},
                },
                "spec": spec,
            })
        },
    )
}

#[derive(Clone, Debug)]
enum Event {
    Node(Value),
    NoNode(usize),
    Pod(Value, usize),
    Assume(Value, usize),
    Nominate(Value, usize),
    NoPod(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => node().prop_map(Event::Node),
        1 => (0..5usize).prop_map(Event::NoNode),
        4 => (pod(), 0..5usize).prop_map(|(pod, node)| Event::Pod(pod, node)),
        1 => (pod(), 0..5usize).prop_map(|(pod, node)| Event::Assume(pod, node)),
        1 => (pod(), 0..5usize).prop_map(|(pod, node)| Event::Nominate(pod, node)),
        1 => (0..12u8).prop_map(Event::NoPod),
    ]
}

fn read(pod: &Value) -> Arc<SchedulingPod> {
    let api = serde_json::from_value(pod.clone()).unwrap();
    Arc::new(SchedulingPod::from_api(&api).unwrap())
}

fn cluster(events: &[Event]) -> Cluster {
    let mut cluster = Cluster::new();
    for event in events {
        match event.clone() {
            Event::Node(node) => {
                let api = serde_json::from_value(node).unwrap();
                cluster.set_node(NodeView::from_api(&api).unwrap());
            }
            Event::NoNode(number) => {
                cluster.remove_node(&NodeName::new(format!("n{number}")));
            }
            Event::Pod(mut pod, number) => {
                pod["spec"]["nodeName"] = json!(format!("n{number}"));
                cluster.set_pod(read(&pod));
            }
            Event::Assume(pod, number) => {
                cluster.assume_pod(read(&pod), &NodeName::new(format!("n{number}")));
            }
            Event::Nominate(mut pod, number) => {
                pod["status"] = json!({"nominatedNodeName": format!("n{number}")});
                cluster.set_pod(read(&pod));
            }
            Event::NoPod(number) => {
                cluster.remove_pod(&PodUid::new(format!("p{number}")));
            }
        }
    }
    cluster
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 0..40)
}

fn cycle<'a>(cluster: &'a Cluster, profile: &'a Profile, pod: &'a SchedulingPod) -> Cycle<'a> {
    Cycle {
        cluster,
        profile,
        pod,
    }
}

/// The pod that looks for a node is none of those that are there.
fn incoming() -> impl Strategy<Value = Arc<SchedulingPod>> {
    pod().prop_map(|mut pod| {
        pod["metadata"]["uid"] = json!("incoming");
        read(&pod)
    })
}

proptest! {
    #[test]
    fn sums_match_the_pods_after_any_history(events in events()) {
        let cluster = cluster(&events);
        let mut order = cluster.node_order();
        order.sort_unstable();
        let slots: Vec<_> = cluster.nodes().map(|(slot, _)| slot).collect();
        prop_assert_eq!(order, slots);
        for (slot, node) in cluster.nodes() {
            prop_assert_eq!(cluster.slot(&node.view.name), Some(slot));
            let mut sum = Request::default();
            for pod in node.pods() {
                sum.add(&pod.requests.on_node);
                prop_assert!(cluster.pod(&pod.uid).is_some());
            }
            prop_assert_eq!(&sum, node.requested());
            for name in node.view.images.keys() {
                let having = cluster.nodes().filter(|(_, n)| n.view.images.contains_key(name));
                let (_, counted) = cluster.images().get(name).unwrap();
                prop_assert_eq!(u32::try_from(having.count()).unwrap(), counted);
            }
        }
    }

    #[test]
    fn undone_trial_leaves_the_state_unchanged(events in events(), pod in incoming()) {
        let (cluster, profile) = (cluster(&events), Profile::default());
        let cycle = cycle(&cluster, &profile, &pod);
        let state = FilterState::scan(&cluster, &profile, &pod);
        for (_, node) in cluster.nodes() {
            let mut trial = Trial { node: node.clone(), state: state.clone() };
            for existing in node.pods() {
                cycle.remove_on_trial(&mut trial, existing);
            }
            prop_assert!(trial.node.pods().is_empty());
            for existing in node.pods() {
                cycle.add_on_trial(&mut trial, existing);
            }
            prop_assert_eq!(&trial.state.spread, &state.spread);
            prop_assert_eq!(&trial.state.affinity, &state.affinity);
            prop_assert_eq!(trial.node.requested().milli_cpu, node.requested().milli_cpu);
        }
    }

    #[test]
    fn pods_are_placed_only_where_they_fit_or_preempt(
        events in events(), pod in incoming(), seed in any::<u64>(),
    ) {
        let (cluster, profile) = (cluster(&events), Profile::default());
        let seeking = cycle(&cluster, &profile, &pod);
        let Ok(decision) = schedule(&seeking, &mut Attempts::new(seed)) else {
            prop_assert_eq!(cluster.node_count(), 0);
            return Ok(());
        };
        match decision {
            Decision::Place(placement) => {
                let slot = placement.slot;
                let again = schedule(&seeking, &mut Attempts::new(seed));
                let is_same = matches!(again, Ok(Decision::Place(p)) if p == placement);
                prop_assert!(is_same);
                let filtered = filter_nodes(&seeking, Search::All);
                prop_assert!(filtered.feasible().any(|feasible| feasible == slot));
            }
            Decision::Wait(unschedulable) => {
                let rationale = rationale(&seeking, Attempts::new(seed));
                prop_assert!(rationale.filtered.feasible().next().is_none());
                let PreemptionResult::At(candidate) = unschedulable.room else { return Ok(()); };
                let slot = candidate.slot;
                prop_assert_eq!(cluster.slot(&unschedulable.nominated.unwrap()), Some(slot));
                let best = rationale.preemption.best();
                prop_assert!(best.into_iter().any(|best| best.slot == slot));
                prop_assert!(!candidate.victims.is_empty());
                let mut after = cluster.clone();
                for victim in &candidate.victims {
                    prop_assert!(victim.priority < pod.priority);
                    after.remove_pod(&victim.uid);
                }
                let filtered = filter_nodes(&cycle(&after, &profile, &pod), Search::All);
                prop_assert!(filtered.feasible().any(|feasible| feasible == slot));
            }
        }
    }

    #[test]
    fn no_amount_causes_a_panic(
        cpu in "-?[0-9]{1,20}(m|k|E|Ei)?", memory in "-?[0-9]{1,20}(m|k|E|Ei)?",
        allocatable in "-?[0-9]{1,20}(m|k|E|Ei)?",
    ) {
        let node = |name: &str| json!({
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": allocatable, "memory": allocatable, "pods": "9"}},
        });
        let request = json!({"requests": {"cpu": cpu, "memory": memory, "example.com/a": cpu}});
        let pod = |uid: &str, node: &str| json!({
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": request}]},
        });
        let mut cluster = cluster(&[Event::Node(node("n")), Event::Node(node("m"))]);
        for uid in ["a", "b"] {
            cluster.set_pod(read(&pod(uid, "n")));
        }
        let (profile, pod) = (Profile::default(), read(&pod("c", "")));
        let _ = schedule(&cycle(&cluster, &profile, &pod), &mut Attempts::new(0));
    }

    #[test]
    fn no_plugin_config_causes_a_panic(
        name in "NodeResourcesFit|NodeAffinity|PodTopologySpread|[a-z]*", json in "[{}\\[\\]a-z:\",0-9]{0,40}",
    ) {
        let args: Value = serde_json::from_str(&json).unwrap_or(json!({"scoringStrategy": json}));
        let _ = Profile::default().with_plugin_config(&[json!({"name": name, "args": args})]);
    }
}
