//! Laws of the scheduler's loop under any order of events: watches lag behind, writes are carried
//! out or refused, answers come late, pods and nodes come and go, the scheduler is restarted.
//!
//! - No pod is bound twice, nor while a binding of it is under way.
//! - No node ever has more on it than it can hold.
//! - When everything has come to rest, no pod waits that would fit, and none is forgotten.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_control::scheduler::{Action, Eviction, Input, KnownPod, Loop, WatchEvent};
use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_core::scheduling::queue::{NodeFacts, Time};
use proptest::prelude::*;
use serde_json::json;

/// Something that happens. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    AddPod { name: u8, cpu: i64, priority: i32 },
    DeletePod(usize),
    AddNode { cpu: i64 },
    RemoveNode(usize),
    SeePods(usize),
    SeeNodes(usize),
    TryPods(usize),
    Write { index: usize, is_refused: bool },
    Answer(usize),
    Pass { millis: u64 },
    ListPodsAnew,
    Restart { carried_out: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = 0..8usize;
    let step = prop_oneof![
        6 => (0..12u8, 1..5i64, 0..3i32)
            .prop_map(|(name, cpu, priority)| Step::AddPod { name, cpu, priority }),
        2 => index.clone().prop_map(Step::DeletePod),
        2 => (1..9i64).prop_map(|cpu| Step::AddNode { cpu }),
        1 => index.clone().prop_map(Step::RemoveNode),
        6 => index.clone().prop_map(Step::SeePods),
        3 => index.clone().prop_map(Step::SeeNodes),
        6 => index.clone().prop_map(Step::TryPods),
        6 => (index.clone(), prop::bool::weighted(0.2))
            .prop_map(|(index, is_refused)| Step::Write { index, is_refused }),
        6 => index.prop_map(Step::Answer),
        3 => (0..20_000u64).prop_map(|millis| Step::Pass { millis }),
        1 => Just(Step::ListPodsAnew),
        1 => any::<u64>().prop_map(|carried_out| Step::Restart { carried_out }),
    ];
    prop::collection::vec(step, 1..150)
}

/// A pod as the API server has it.
#[derive(Clone, Debug)]
struct ServedPod {
    uid: String,
    cpu: i64,
    priority: i32,
    node: Option<String>,
    nominated: Option<String>,
}

/// The API server, the watches and writes under way, and the scheduler.
struct World {
    pods: BTreeMap<String, ServedPod>,
    nodes: BTreeMap<String, i64>,
    made: u64,
    pod_events: VecDeque<Input>,
    node_events: VecDeque<Input>,
    writes: Vec<Action>,
    answers: Vec<Input>,
    scheduler: Loop,
    /// Uids for which this scheduler must not order another binding.
    taken: BTreeSet<String>,
    now: Time,
}

fn pod_ref(name: &str) -> PodRef {
    PodRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

impl World {
    fn new() -> World {
        let now = Time::from_secs(1_000_000);
        let mut world = World {
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            made: 0,
            pod_events: VecDeque::new(),
            node_events: VecDeque::new(),
            writes: Vec::new(),
            answers: Vec::new(),
            scheduler: Loop::new(&Configuration::default(), 0, 5, now),
            taken: BTreeSet::new(),
            now,
        };
        world.start();
        world
    }

    /// A scheduler that knows nothing begins to watch.
    fn start(&mut self) {
        self.scheduler = Loop::new(&Configuration::default(), self.made, 5, self.now);
        self.taken.clear();
        self.answers.clear();
        for input in [
            Input::Namespace(WatchEvent::ListEnds),
            Input::Budget(WatchEvent::ListEnds),
            Input::Service(WatchEvent::ListEnds),
            Input::ReplicationController(WatchEvent::ListEnds),
            Input::ReplicaSet(WatchEvent::ListEnds),
            Input::StatefulSet(WatchEvent::ListEnds),
        ] {
            self.scheduler.observe(input, self.now);
        }
        self.node_events.clear();
        for name in self.nodes.keys().cloned().collect::<Vec<_>>() {
            self.show_node(&name);
        }
        self.node_events
            .push_back(Input::Node(WatchEvent::ListEnds));
        self.pod_events.clear();
        self.list_pods();
    }

    fn list_pods(&mut self) {
        self.pod_events
            .push_back(Input::Pod(WatchEvent::ListBegins));
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.show_pod(&name);
        }
        self.pod_events.push_back(Input::Pod(WatchEvent::ListEnds));
    }

    fn show_node(&mut self, name: &str) {
        let cpu = self.nodes[name].to_string();
        let node = json!({
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
        });
        let node: Node = serde_json::from_value(node).expect("a node");
        let facts = Arc::new(NodeFacts::from_api(&node).expect("a node"));
        self.node_events
            .push_back(Input::Node(WatchEvent::Is(facts)));
    }

    fn show_pod(&mut self, name: &str) {
        self.made += 1;
        let served = &self.pods[name];
        let requests = json!({"cpu": served.cpu.to_string()});
        let pod = json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": served.uid,
                "resourceVersion": self.made.to_string(),
            },
            "spec": {
                "nodeName": served.node, "priority": served.priority,
                "containers": [{"name": "c", "resources": {"requests": requests}}],
            },
            "status": {"nominatedNodeName": served.nominated},
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let record = KnownPod::from_api(&pod).expect("a pod");
        self.pod_events
            .push_back(Input::Pod(WatchEvent::Is(record)));
    }

    fn delete_pod(&mut self, name: &str) {
        if self.pods.remove(name).is_some() {
            let gone = WatchEvent::Deleted(pod_ref(name));
            self.pod_events.push_back(Input::Pod(gone));
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::AddPod {
                name,
                cpu,
                priority,
            } => self.add_pod(&format!("p{name}"), cpu, priority),
            Step::DeletePod(index) => {
                if let Some(name) = nth(&self.pods, index) {
                    self.delete_pod(&name);
                }
            }
            Step::AddNode { cpu } => {
                self.made += 1;
                let name = format!("n{}", self.made);
                self.nodes.insert(name.clone(), cpu);
                self.show_node(&name);
            }
            Step::RemoveNode(index) => {
                if let Some(name) = nth(&self.nodes, index) {
                    self.nodes.remove(&name);
                    let gone = WatchEvent::Deleted(NodeName::new(name));
                    self.node_events.push_back(Input::Node(gone));
                }
            }
            Step::SeePods(count) => self.see_pods(count),
            Step::SeeNodes(count) => self.see_nodes(count),
            Step::TryPods(count) => self.try_pods(count),
            Step::Write { index, is_refused } => {
                if !self.writes.is_empty() {
                    let write = self.writes.swap_remove(index % self.writes.len());
                    let answer = self.carry_out(write, is_refused);
                    self.answers.push(answer);
                }
            }
            Step::Answer(index) => {
                if !self.answers.is_empty() {
                    let answer = self.answers.swap_remove(index % self.answers.len());
                    self.answer(answer);
                }
            }
            Step::Pass { millis } => {
                self.now = self.now + Duration::from_millis(millis);
                self.scheduler.flush(self.now);
            }
            Step::ListPodsAnew => self.list_pods(),
            Step::Restart { carried_out } => self.restart(carried_out),
        }
    }

    fn add_pod(&mut self, name: &str, cpu: i64, priority: i32) {
        if self.pods.contains_key(name) {
            return;
        }
        self.made += 1;
        let served = ServedPod {
            uid: format!("u{}", self.made),
            cpu,
            priority,
            node: None,
            nominated: None,
        };
        self.pods.insert(name.to_owned(), served);
        self.show_pod(name);
    }

    fn see_pods(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(event) = self.pod_events.pop_front() {
                self.scheduler.observe(event, self.now);
            }
        }
    }

    fn see_nodes(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(event) = self.node_events.pop_front() {
                self.scheduler.observe(event, self.now);
            }
        }
    }

    fn try_pods(&mut self, count: usize) {
        for _ in 0..count {
            self.scheduler.attempt(self.now);
            self.take_actions();
        }
    }

    fn take_actions(&mut self) {
        for action in self.scheduler.take_actions() {
            if let Action::Bind { pod, .. } = &action {
                let is_first = self.taken.insert(pod.uid.to_string());
                assert!(is_first, "{} is bound a second time", pod.pod_ref);
            }
            if !matches!(action, Action::RecordEvent { .. }) {
                self.writes.push(action);
            }
        }
    }

    fn answer(&mut self, answer: Input) {
        if let Input::Bound {
            uid,
            result: Err(_),
        } = &answer
        {
            self.taken.remove(uid.as_str());
        }
        self.scheduler.observe(answer, self.now);
        self.take_actions();
    }

    /// What the API server makes of a write.
    fn carry_out(&mut self, write: Action, is_refused: bool) -> Input {
        match write {
            Action::Bind { pod, node } => {
                let result = self.bind(&pod.pod_ref.name, pod.uid.as_str(), &node, is_refused);
                let uid = pod.uid.clone();
                Input::Bound { uid, result }
            }
            Action::Patch(patch) => {
                let name = patch.pod_ref.name.clone();
                let served = self.pods.get_mut(&name);
                let served = served.filter(|own| own.uid == patch.uid.as_str() && !is_refused);
                let is_written = served.is_some();
                if let (Some(served), Some(node)) = (served, patch.nominated_node_name) {
                    served.nominated = node.map(|node| node.to_string());
                    self.show_pod(&name);
                }
                Input::Patched {
                    pod_ref: patch.pod_ref,
                    is_written,
                }
            }
            Action::Evict { preemptor, victim } => {
                let name = victim.pod_ref.name.clone();
                let served = self.pods.get(&name);
                let is_there = served.is_some_and(|own| own.uid == victim.uid.as_str());
                let outcome = match (is_refused, is_there) {
                    (true, _) => Eviction::Failed,
                    (false, false) => Eviction::Gone,
                    (false, true) => {
                        self.delete_pod(&name);
                        Eviction::Deleted
                    }
                };
                Input::Evicted {
                    preemptor,
                    victim: victim.pod_ref,
                    outcome,
                }
            }
            Action::RecordEvent { .. } => unreachable!("telling is not answered"),
        }
    }

    fn bind(
        &mut self,
        name: &str,
        uid: &str,
        node: &NodeName,
        is_refused: bool,
    ) -> Result<(), String> {
        let served = self.pods.get_mut(name).filter(|served| served.uid == uid);
        let Some(served) = served else {
            return Err("not found".to_owned());
        };
        if served.node.is_some() || is_refused {
            return Err("refused".to_owned());
        }
        served.node = Some(node.to_string());
        served.nominated = None;
        self.show_pod(name);
        if let Some(capacity) = self.nodes.get(node.as_str()) {
            let used = self.used(node.as_str());
            assert!(used <= *capacity, "{node} has {used} of {capacity}");
        }
        Ok(())
    }

    fn used(&self, node: &str) -> i64 {
        let own = self.pods.values();
        let own = own.filter(|pod| pod.node.as_deref() == Some(node));
        own.map(|pod| pod.cpu).sum()
    }

    /// The scheduler dies; each write under way was carried out before, or never will be.
    fn restart(&mut self, carried_out: u64) {
        for (index, write) in std::mem::take(&mut self.writes).into_iter().enumerate() {
            if carried_out >> (index % 64) & 1 == 1 {
                self.carry_out(write, false);
            }
        }
        self.start();
    }

    /// Lets everything come to rest.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.now = self.now + Duration::from_mins(6);
            self.scheduler.flush(self.now);
            for _ in 0..100 {
                self.see_nodes(self.node_events.len());
                self.see_pods(self.pod_events.len());
                self.try_pods(20);
                for write in std::mem::take(&mut self.writes) {
                    let answer = self.carry_out(write, false);
                    self.answers.push(answer);
                }
                for answer in std::mem::take(&mut self.answers) {
                    self.answer(answer);
                }
            }
        }
    }
}

fn nth<V>(map: &BTreeMap<String, V>, index: usize) -> Option<String> {
    let keys: Vec<&String> = map.keys().collect();
    (!keys.is_empty()).then(|| keys[index % keys.len()].clone())
}

proptest! {
    #[test]
    fn no_pod_is_bound_twice_or_missed_and_no_node_overflows(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        let waiting: Vec<&ServedPod> =
            world.pods.values().filter(|pod| pod.node.is_none()).collect();
        for pod in &waiting {
            for (name, capacity) in &world.nodes {
                let room = capacity - world.used(name);
                prop_assert!(pod.cpu > room, "{pod:?} waits, {name} has room for {room}");
            }
        }
        // Without any node a pod backs off instead, as no plugin rejected it.
        let sizes = world.scheduler.queue().sizes();
        prop_assert_eq!(sizes.unschedulable + sizes.backoff + sizes.active, waiting.len());
        prop_assert_eq!(sizes.in_flight, 0);
        prop_assert_eq!(sizes.gated, 0);
    }
}
