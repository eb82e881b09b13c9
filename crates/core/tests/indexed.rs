//! The indexed engine comes to the same decisions as the plain one after any history.
//!
//! Both see the same random stream of events, mixing every kind of constraint with updates and
//! deletes. Compared are the node chosen, its score, how many nodes would have done, and, where
//! none does, the verdict on every node, the whole message and the victims.

#![expect(clippy::unwrap_used, reason = "generated objects are well formed")]

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodUid};
use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::{Change, DisruptionBudget};
use plimsoll_core::scheduling::decision::{Decision, Error, Rationale};
use plimsoll_core::scheduling::filters::Cycle;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::plugin_names::PostFilterPlugin;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::preemption::{Candidate, PreemptionResult};
use plimsoll_core::scheduling::profile::Profile;
use plimsoll_core::scheduling::reference;
use plimsoll_core::scheduling::tie_break::Attempts;
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const NODES: usize = 20;

fn node(number: usize) -> impl Strategy<Value = Value> {
    let zone = weighted(0.9, select(vec!["a", "b", ""]));
    let rack = weighted(0.8, 0..7u8);
    let taint = weighted(0.25, (select(vec!["k", "j"]), effect()));
    let room = (1..5u32, 1..5u32, select(vec![2u32, 3, 110]));
    let image = weighted(0.5, (0..3u8, select(vec![50_000_000u64, 900_000_000])));
    (
        zone,
        rack,
        taint,
        room,
        image,
        weighted(0.95, Just(())),
        weighted(0.1, Just(())),
    )
        .prop_map(
            move |(zone, rack, taint, (cpu, memory, pods), image, hostname, cordoned)| {
                let name = format!("n{number}");
                let mut labels = json!({});
                if hostname.is_some() {
                    labels[HOSTNAME] = json!(name);
                }
                if let Some(zone) = zone {
                    labels[ZONE] = json!(zone);
                }
                if let Some(rack) = rack {
                    labels["rack"] = json!(rack.to_string());
                }
                let taints = taint.map(|(key, effect)| json!({"key": key, "effect": effect}));
                let images = image.map(|(number, size)| {
                json!({"names": [format!("image-{number}:1")], "sizeBytes": size})
            });
                json!({
                    "metadata": {"name": name, "labels": labels},
                    "spec": {
                        "taints": taints.into_iter().collect::<Vec<_>>(),
                        "unschedulable": cordoned.is_some(),
                    },
                    "status": {
                        "allocatable": {
                            "cpu": cpu.to_string(), "memory": format!("{memory}Gi"),
                            "pods": pods.to_string(), "example.com/gpu": "1",
                        },
                        "images": images.into_iter().collect::<Vec<_>>(),
                    },
                })
            },
        )
}

fn effect() -> impl Strategy<Value = &'static str> {
    select(vec!["NoSchedule", "PreferNoSchedule", "NoExecute"])
}

fn key() -> impl Strategy<Value = &'static str> {
    select(vec![HOSTNAME, ZONE, "rack"])
}

fn selector() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => "[abc]".prop_map(|app| json!({"matchLabels": {"app": app}})),
        1 => Just(json!({})),
        1 => Just(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]})),
    ]
}

fn term() -> impl Strategy<Value = Value> {
    let namespaces = prop_oneof![
        5 => Just(json!({})),
        1 => Just(json!({"namespaces": ["default", "other"]})),
        1 => Just(json!({"namespaceSelector": {}})),
        1 => Just(json!({"namespaceSelector": {"matchLabels": {"team": "x"}}})),
        1 => Just(json!({"namespaceSelector":
            {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}})),
    ];
    (selector(), key(), namespaces).prop_map(|(selector, key, mut term)| {
        term["labelSelector"] = selector;
        term["topologyKey"] = json!(key);
        term
    })
}

fn pod_affinity() -> impl Strategy<Value = Value> {
    let preferred = || {
        (1..100i32, term())
            .prop_map(|(weight, term)| json!({"weight": weight, "podAffinityTerm": term}))
    };
    let terms = || (vec(term(), 0..2), vec(preferred(), 0..2));
    let none = || (Just(Vec::new()), Just(Vec::new()));
    let near = prop_oneof![3 => none().boxed(), 1 => terms().boxed()];
    let far = prop_oneof![3 => none().boxed(), 1 => terms().boxed()];
    let affinity = |(required, preferred): (Vec<Value>, Vec<Value>)| {
        json!({
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        })
    };
    (near, far).prop_map(
        move |(near, far)| json!({"podAffinity": affinity(near), "podAntiAffinity": affinity(far)}),
    )
}

fn node_affinity() -> impl Strategy<Value = Value> {
    let zone = |zone: &str| json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
    prop_oneof![
        6 => Just(json!({})),
        1 => Just(json!({"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [zone("a")]}})),
        1 => (1..100i32).prop_map(move |weight| json!({
            "preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": weight, "preference": zone("b")}],
        })),
        1 => (0..NODES).prop_map(|number| json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": [format!("n{number}")]},
                ]},
            ]},
        })),
    ]
}

fn spread() -> impl Strategy<Value = Value> {
    let policy = || of(select(vec!["Honor", "Ignore"]));
    let unsatisfiable = select(vec!["DoNotSchedule", "ScheduleAnyway"]);
    let constraint = (
        1..3,
        key(),
        unsatisfiable,
        selector(),
        policy(),
        policy(),
        of(1..4),
    );
    let constraint = constraint.prop_map(
        |(skew, key, unsatisfiable, selector, affinity, taints, domains)| {
            let mut constraint = json!({
                "maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": unsatisfiable,
                "labelSelector": selector,
            });
            if let Some(policy) = affinity {
                constraint["nodeAffinityPolicy"] = json!(policy);
            }
            if let Some(policy) = taints {
                constraint["nodeTaintsPolicy"] = json!(policy);
            }
            if let (Some(domains), "DoNotSchedule") = (domains, unsatisfiable) {
                constraint["minDomains"] = json!(domains);
            }
            constraint
        },
    );
    prop_oneof![
        3 => Just(json!([])),
        2 => vec(constraint, 1..3).prop_map(Value::Array),
    ]
}

/// What pods differ in, apart from their names: few values, so that some share a shape.
///
/// Many ask nothing of other pods: for these, the engine keeps what making room would cost.
fn shape() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => shape_with(Just(json!([])).boxed(), Just(json!({})).boxed()),
        1 => shape_with(spread().boxed(), pod_affinity().boxed()),
    ]
}

fn shape_with(
    spread: BoxedStrategy<Value>,
    pod_affinity: BoxedStrategy<Value>,
) -> impl Strategy<Value = Value> {
    let resources = (
        0..6u32,
        0..3u32,
        weighted(0.1, Just(())),
        weighted(0.1, Just(())),
    );
    let toleration = weighted(0.2, select(vec!["k", "j"]));
    let owner = weighted(0.4, Just(()));
    let rest = (
        spread,
        node_affinity(),
        pod_affinity,
        toleration,
        owner,
        0..3u8,
    );
    (resources, "[abc]", select(vec!["default", "other"]), rest).prop_map(
        |((cpu, memory, gpu, port), app, namespace, rest)| {
            let (spread, node_affinity, pod_affinity, toleration, owner, image) = rest;
            let mut requests = json!({"cpu": format!("{}m", cpu * 300)});
            if memory > 0 {
                requests["memory"] = json!(format!("{memory}Gi"));
            }
            if gpu.is_some() {
                requests["example.com/gpu"] = json!("1");
            }
            let mut affinity = pod_affinity;
            affinity["nodeAffinity"] = node_affinity;
            let tolerations = toleration.map(|key| json!({"key": key, "operator": "Exists"}));
            let owners = owner.map(|()| {
                json!({
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("rs-{app}"),
                    "uid": "u", "controller": true,
                })
            });
            json!({
                "metadata": {
                    "namespace": namespace, "labels": {"app": app},
                    "ownerReferences": owners.into_iter().collect::<Vec<_>>(),
                },
                "spec": {
                    "topologySpreadConstraints": spread,
                    "affinity": affinity,
                    "tolerations": tolerations.into_iter().collect::<Vec<_>>(),
                    "containers": [{
                        "name": "c", "image": format!("image-{image}:1"),
                        "resources": {"requests": requests},
                        "ports": [{
                            "containerPort": 1, "hostPort": if port.is_some() { 80 } else { 0 },
                        }],
                    }],
                },
            })
        },
    )
}

/// What happens to the victims, once room is to be made.
#[derive(Clone, Copy, Debug)]
enum Victims {
    /// They stay; the pod is not even nominated.
    Untold,
    /// They stay for the time being.
    TolerationTime,
    /// They are about to end.
    Terminate,
    /// They are gone.
    Go,
}

#[derive(Clone, Debug)]
enum Event {
    /// Schedules a pod of the shape with that number, and lets it stay where it goes.
    Schedule {
        shape: usize,
        priority: i32,
        may_preempt: bool,
        victims: Victims,
    },
    /// Tries one of the waiting pods again.
    Retry(usize),
    /// A pod that another client put on a node.
    Bind {
        shape: usize,
        node: usize,
        priority: i32,
        started: Option<u32>,
        is_terminating: bool,
    },
    /// A pod ends; which one of those that were scheduled or bound.
    Remove(usize),
    Node(Value),
    NoNode(usize),
    Namespace {
        name: &'static str,
        team: Option<&'static str>,
    },
    ReplicaSet(&'static str, bool),
    Service(&'static str, bool),
    Budget {
        app: &'static str,
        allowed: i32,
        disrupted: Option<usize>,
    },
    NoBudget(&'static str),
}

fn event() -> impl Strategy<Value = Event> {
    let app = || select(vec!["a", "b", "c"]);
    let namespace = (select(vec!["default", "other"]), of(select(vec!["x", "y"])));
    let victims = prop_oneof![
        1 => Just(Victims::Untold),
        2 => Just(Victims::TolerationTime),
        2 => Just(Victims::Terminate),
        4 => Just(Victims::Go),
    ];
    let schedule = (0..4usize, 0..4i32, weighted(0.9, Just(())), victims);
    let bind = (
        0..4usize,
        0..NODES,
        -1..3i32,
        weighted(0.7, 0..4u32),
        weighted(0.1, Just(())),
    );
    prop_oneof![
        16 => schedule.prop_map(|(shape, priority, may_preempt, victims)| {
            Event::Schedule { shape, priority, may_preempt: may_preempt.is_some(), victims }
        }),
        4 => (0..200usize).prop_map(Event::Retry),
        8 => bind.prop_map(|(shape, node, priority, started, ends)| {
            Event::Bind { shape, node, priority, started, is_terminating: ends.is_some() }
        }),
        3 => (0..200usize).prop_map(Event::Remove),
        1 => (0..NODES).prop_flat_map(node).prop_map(Event::Node),
        1 => (0..NODES).prop_map(Event::NoNode),
        1 => namespace.prop_map(|(name, team)| Event::Namespace { name, team }),
        1 => (app(), any::<bool>()).prop_map(|(app, is)| Event::ReplicaSet(app, is)),
        1 => (app(), any::<bool>()).prop_map(|(app, is)| Event::Service(app, is)),
        3 => (app(), -1..4i32, weighted(0.4, 0..12usize)).prop_map(|(app, allowed, disrupted)| {
            Event::Budget { app, allowed, disrupted }
        }),
        1 => app().prop_map(Event::NoBudget),
    ]
}

#[derive(Clone, Debug)]
struct Story {
    nodes: Vec<Value>,
    shapes: Vec<Value>,
    events: Vec<Event>,
    profile: usize,
    seed: u64,
}

fn story() -> impl Strategy<Value = Story> {
    let count = prop_oneof![3 => 1..=5usize, 2 => 1..=NODES];
    let nodes = count.prop_flat_map(|count| (0..count).map(node).collect::<Vec<_>>());
    let shapes = vec(shape(), 4..=4);
    (nodes, shapes, vec(event(), 1..60), 0..6usize, any::<u64>()).prop_map(
        |(nodes, shapes, events, profile, seed)| Story {
            nodes,
            shapes,
            events,
            profile,
            seed,
        },
    )
}

/// The default profile and some that differ in what can be configured.
fn profile(number: usize) -> Profile {
    let config = match number {
        1 => json!([
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
                "type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}],
            }}},
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 50}},
            {"name": "DefaultPreemption", "args": {
                "minCandidateNodesPercentage": 30, "minCandidateNodesAbsolute": 1,
            }},
        ]),
        2 => json!([
            {"name": "InterPodAffinity", "args": {"ignorePreferredTermsOfExistingPods": true}},
            {"name": "PodTopologySpread", "args": {"defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
                    {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},
                ],
            }},
        ]),
        3 => json!([
            {"name": "DefaultPreemption", "args": {
                "minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2,
            }},
        ]),
        _ => json!([]),
    };
    let config: Vec<Value> = config.as_array().unwrap().clone();
    let mut profile = Profile::default().with_plugin_config(&config).unwrap();
    match number {
        4 => profile.post_filters.clear(),
        5 => profile
            .post_filters
            .retain(|plugin| *plugin != PostFilterPlugin::DefaultPreemption),
        _ => {}
    }
    profile
}

struct Run {
    engine: Engine,
    attempts: Attempts,
    shapes: Vec<Value>,
    uids: Vec<PodUid>,
    made: usize,
    /// The pods that had to wait, with the nodes on which room is to be made.
    waiting: Vec<(Value, Option<NodeName>)>,
}

impl Run {
    fn named(&mut self, mut pod: Value) -> Value {
        let name = format!("p{}", self.made);
        self.made += 1;
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod
    }

    fn read(&self, pod: &Value) -> Arc<SchedulingPod> {
        let api = serde_json::from_value(pod.clone()).unwrap();
        Arc::new(SchedulingPod::from_api(&api).unwrap())
    }

    fn set_node(&mut self, node: &Value) {
        let api = serde_json::from_value(node.clone()).unwrap();
        let view = NodeView::from_api(&api).unwrap();
        self.engine.change(|cluster| [cluster.set_node(view)]);
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match event {
            Event::Schedule {
                shape,
                priority,
                may_preempt,
                victims,
            } => {
                let mut pod = self.named(self.shapes[*shape].clone());
                pod["spec"]["priority"] = json!(priority);
                if !may_preempt {
                    pod["spec"]["preemptionPolicy"] = json!("Never");
                }
                return self.schedule(pod, *victims);
            }
            Event::Retry(number) => {
                if self.waiting.is_empty() {
                    return Ok(());
                }
                let place = number % self.waiting.len();
                let (mut pod, node) = self.waiting.swap_remove(place);
                pod["status"] = json!({"nominatedNodeName": node.map(|n| n.to_string())});
                return self.schedule(pod, Victims::Go);
            }
            Event::Bind {
                shape,
                node,
                priority,
                started,
                is_terminating,
            } => {
                let mut pod = self.named(self.shapes[*shape].clone());
                pod["spec"]["nodeName"] = json!(format!("n{node}"));
                pod["spec"]["priority"] = json!(priority);
                if let Some(hour) = started {
                    pod["status"] = json!({"startTime": format!("2026-01-01T0{hour}:00:00Z")});
                }
                if *is_terminating {
                    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                let pod = self.read(&pod);
                self.uids.push(pod.uid.clone());
                self.engine.change(|cluster| cluster.set_pod(pod));
            }
            Event::Remove(number) => {
                if !self.uids.is_empty() {
                    let uid = self.uids.swap_remove(number % self.uids.len());
                    self.engine.change(|cluster| cluster.remove_pod(&uid));
                }
            }
            Event::Node(node) => self.set_node(node),
            Event::NoNode(number) => {
                let name = NodeName::new(format!("n{number}"));
                self.engine.change(|cluster| cluster.remove_node(&name));
            }
            Event::Namespace { name, team } => {
                let labels = team
                    .iter()
                    .map(|team| ("team".to_owned(), (*team).to_owned()));
                let labels: BTreeMap<String, String> = labels.collect();
                self.engine
                    .change(|cluster| [cluster.set_namespace(name, labels)]);
            }
            Event::ReplicaSet(app, is_there) => self.engine.change(|cluster| {
                let name = format!("rs-{app}");
                if *is_there {
                    let set = json!({
                        "metadata": {"name": name, "namespace": "default"},
                        "spec": {"selector": {"matchLabels": {"app": app}}},
                    });
                    let set = serde_json::from_value(set).unwrap();
                    cluster.owners.set_replica_set(&set);
                } else {
                    cluster.owners.remove_replica_set("default", &name);
                }
                [Change::Other]
            }),
            Event::Service(app, is_there) => self.engine.change(|cluster| {
                if *is_there {
                    let service = json!({
                        "metadata": {"name": app, "namespace": "other"},
                        "spec": {"selector": {"app": app}},
                    });
                    let service = serde_json::from_value(service).unwrap();
                    cluster.owners.set_service(&service);
                } else {
                    cluster.owners.remove_service("other", app);
                }
                [Change::Other]
            }),
            Event::Budget {
                app,
                allowed,
                disrupted,
            } => self.engine.change(|cluster| {
                let disrupted = disrupted.iter();
                let disrupted: BTreeMap<String, &str> = disrupted
                    .map(|number| (format!("p{number}"), "2026-01-01T00:00:00Z"))
                    .collect();
                let budget = json!({
                    "metadata": {"name": app, "namespace": "default"},
                    "spec": {"selector": {"matchLabels": {"app": app}}},
                    "status": {"disruptionsAllowed": allowed, "currentHealthy": 0,
                        "desiredHealthy": 0, "expectedPods": 0, "disruptedPods": disrupted},
                });
                let budget = serde_json::from_value(budget).unwrap();
                [cluster.set_budget(DisruptionBudget::from_api(&budget))]
            }),
            Event::NoBudget(app) => {
                self.engine
                    .change(|cluster| [cluster.remove_budget("default", app)]);
            }
        }
        Ok(())
    }

    fn schedule(&mut self, source: Value, victims: Victims) -> Result<(), TestCaseError> {
        let pod = &self.read(&source);
        let profile = self.engine.profiles()[0].clone();
        let cluster = self.engine.cluster().clone();
        let cycle = Cycle {
            cluster: &cluster,
            profile: &profile,
            pod,
        };
        if cluster.node_count() > 0 {
            let plain = reference::rationale(&cycle, self.attempts);
            compare_grounds(&plain, &self.engine.rationale(0, pod))?;
        }
        let plain = reference::schedule(&cycle, &mut self.attempts);
        let indexed = self.engine.schedule(0, pod);
        compare(&plain, &indexed)?;
        match indexed {
            Ok(Decision::Place(placement)) => {
                let name = cluster.node(placement.slot).unwrap().view.name.clone();
                self.uids.push(pod.uid.clone());
                self.engine
                    .change(|cluster| cluster.assume_pod(Arc::clone(pod), &name));
            }
            Ok(Decision::Wait(waiting)) => {
                if let PreemptionResult::At(candidate) = &waiting.room {
                    self.make_room(pod, candidate, victims);
                }
                self.waiting.push((source, waiting.nominated));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Nominates a pod, and does to its victims what happens to them.
    fn make_room(&mut self, pod: &SchedulingPod, candidate: &Candidate, victims: Victims) {
        if let Victims::Untold = victims {
            return;
        }
        let mut pod = pod.clone();
        let node = self.engine.cluster().node(candidate.slot).unwrap();
        pod.nominated_node_name = Some(node.view.name.clone());
        self.uids.push(pod.uid.clone());
        self.engine.change(|cluster| cluster.set_pod(Arc::new(pod)));
        for victim in &candidate.victims {
            match victims {
                Victims::Untold | Victims::TolerationTime => {}
                Victims::Terminate => {
                    let mut ending = (**victim).clone();
                    ending.node_name = self
                        .engine
                        .cluster()
                        .node(candidate.slot)
                        .map(|node| node.view.name.clone());
                    ending.is_terminating = true;
                    ending.is_preempted = true;
                    self.engine
                        .change(|cluster| cluster.set_pod(Arc::new(ending)));
                }
                Victims::Go => self
                    .engine
                    .change(|cluster| cluster.remove_pod(&victim.uid)),
            }
        }
    }
}

fn compare_grounds(plain: &Rationale, indexed: &Rationale) -> Result<(), TestCaseError> {
    let (state, indexed_state) = (&plain.filtered.state, &indexed.filtered.state);
    prop_assert_eq!(&plain.filtered.nodes, &indexed.filtered.nodes);
    prop_assert_eq!(&state.spread, &indexed_state.spread);
    prop_assert_eq!(&state.affinity, &indexed_state.affinity);
    let (plain, indexed) = (&plain.preemption, &indexed.preemption);
    prop_assert_eq!(format!("{plain:?}"), format!("{indexed:?}"));
    Ok(())
}

fn compare(
    plain: &Result<Decision, Error>,
    indexed: &Result<Decision, Error>,
) -> Result<(), TestCaseError> {
    match (plain, indexed) {
        (Ok(Decision::Wait(plain)), Ok(Decision::Wait(indexed))) => {
            prop_assert_eq!(format!("{plain:?}"), format!("{indexed:?}"));
        }
        (Ok(Decision::Place(plain)), Ok(Decision::Place(indexed))) => {
            prop_assert_eq!(plain, indexed);
        }
        (Err(plain), Err(indexed)) => prop_assert_eq!(plain, indexed),
        (plain, indexed) => prop_assert!(false, "plain {plain:?}\nindexed {indexed:?}"),
    }
    Ok(())
}

proptest! {
    #[test]
    fn both_engines_decide_alike(story in story()) {
        let mut run = Run {
            engine: Engine::new(vec![profile(story.profile)], story.seed),
            attempts: Attempts::new(story.seed),
            shapes: story.shapes.clone(),
            uids: Vec::new(),
            made: 0,
            waiting: Vec::new(),
        };
        for node in &story.nodes {
            run.set_node(node);
        }
        for event in &story.events {
            run.happen(event)?;
        }
    }
}
