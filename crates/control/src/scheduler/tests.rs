//! The loop without a network, in virtual time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::scheduling::configuration::{Configuration, read};
use plimsoll_core::scheduling::queue::{NodeFacts, Time};
use serde_json::{Value, json};

use super::*;

/// A loop with a clock, and its actions.
struct World {
    state: Loop,
    now: Time,
    version: u64,
}

fn pod_ref(name: &str) -> PodRef {
    PodRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

/// A pod that requests so much cpu, with the other fields given merged in.
fn pod(name: &str, cpu: &str, more: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 3},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {},
    });
    merge(&mut pod, more);
    pod
}

fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (key, value) in more {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

impl World {
    fn new() -> World {
        World::of(&Configuration::default())
    }

    fn of(configuration: &Configuration) -> World {
        let now = Time::from_secs(1000);
        let mut state = Loop::new(configuration, 1, 100, now);
        for input in [
            Input::Pod(WatchEvent::ListEnds),
            Input::Node(WatchEvent::ListEnds),
            Input::Namespace(WatchEvent::ListEnds),
            Input::Budget(WatchEvent::ListEnds),
            Input::Service(WatchEvent::ListEnds),
            Input::ReplicationController(WatchEvent::ListEnds),
            Input::ReplicaSet(WatchEvent::ListEnds),
            Input::StatefulSet(WatchEvent::ListEnds),
        ] {
            state.observe(input, now);
        }
        World {
            state,
            now,
            version: 0,
        }
    }

    fn node(&mut self, name: &str, cpu: &str) {
        let api = json!({
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
        });
        let api: Node = serde_json::from_value(api).unwrap();
        let facts = Arc::new(NodeFacts::from_api(&api).unwrap());
        self.state
            .observe(Input::Node(WatchEvent::Is(facts)), self.now);
    }

    fn see(&mut self, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let record = KnownPod::from_api(&pod).unwrap();
        self.state
            .observe(Input::Pod(WatchEvent::Is(record)), self.now);
    }

    fn lose(&mut self, name: &str) {
        let gone = WatchEvent::Deleted(pod_ref(name));
        self.state.observe(Input::Pod(gone), self.now);
    }

    fn bound(&mut self, uid: &str, result: Result<(), &str>) {
        let input = Input::Bound {
            uid: uid.into(),
            result: result.map_err(str::to_owned),
        };
        self.state.observe(input, self.now);
    }

    fn evicted(&mut self, preemptor: &str, victim: &str, outcome: Eviction) {
        let input = Input::Evicted {
            preemptor: preemptor.into(),
            victim: pod_ref(victim),
            outcome,
        };
        self.state.observe(input, self.now);
    }

    /// Tries all pods that may be tried, and returns the actions in short.
    fn run(&mut self) -> Vec<String> {
        self.state.flush(self.now);
        while self.state.attempt(self.now) {}
        let actions = self.state.take_actions();
        actions.iter().map(short).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + std::time::Duration::from_millis(millis);
    }
}

fn short(action: &Action) -> String {
    match action {
        Action::Bind { pod, node } => format!("bind {} to {node}", pod.pod_ref.name),
        Action::Patch(patch) => {
            let reason = patch.condition.as_ref().map_or("", |c| c.reason);
            let nominated = match &patch.nominated_node_name {
                None => String::new(),
                Some(None) => " nominated nowhere".to_owned(),
                Some(Some(node)) => format!(" nominated {node}"),
            };
            format!("patch {} {reason}{nominated}", patch.pod_ref.name)
        }
        Action::Evict { victim, .. } => format!("evict {}", victim.pod_ref.name),
        Action::RecordEvent { occurrence, .. } => {
            let about = occurrence.regarding.name.as_deref().unwrap_or_default();
            format!("tell {about} {}", occurrence.reason)
        }
    }
}

#[test]
fn pod_is_bound_once_with_event_on_success() {
    let mut world = World::new();
    world.node("n", "4");
    world.see(pod("a", "1", json!({})));
    assert_eq!(world.run(), ["bind a to n"]);
    world.see(pod("a", "1", json!({"metadata": {"labels": {"x": "y"}}})));
    assert!(world.run().is_empty());
    world.bound("a", Ok(()));
    assert_eq!(world.run(), ["tell a Scheduled"]);
    world.see(pod("a", "1", json!({"spec": {"nodeName": "n"}})));
    assert!(world.run().is_empty());
    let text = world.state.metrics().text();
    assert!(text.contains("scheduler_schedule_attempts_total{result=\"scheduled\""));
    let about = world.state.records().about(&pod_ref("a"));
    assert_eq!(about[0].to_json()["decision"]["node"], "n");
}

#[test]
fn nothing_is_scheduled_before_all_lists_are_loaded() {
    let mut state = Loop::new(&Configuration::default(), 1, 10, Time::default());
    state.observe(Input::Pod(WatchEvent::ListEnds), Time::default());
    assert!(!state.is_synced());
    assert!(!state.attempt(Time::default()));
}

#[test]
fn assumed_pods_use_resources_until_their_binding_fails() {
    let mut world = World::new();
    world.node("n", "1");
    world.see(pod("a", "1", json!({})));
    assert_eq!(world.run(), ["bind a to n"]);
    world.see(pod("b", "1", json!({})));
    assert_eq!(
        world.run(),
        ["tell b FailedScheduling", "patch b Unschedulable"]
    );
    world.bound("a", Err("pod a is already assigned to node \"m\""));
    // The room is free for the other one, while the one that failed waits.
    let mut actions = world.run();
    actions.sort();
    assert_eq!(
        actions,
        [
            "bind b to n",
            "patch a SchedulerError",
            "tell a FailedScheduling"
        ]
    );
    let about = world.state.records().about(&pod_ref("a"));
    let message = about[1].to_json()["decision"]["message"].to_string();
    assert!(message.contains("running Bind plugin \\\"DefaultBinder\\\": pod a is already"));
    world.bound("b", Err("b is gone"));
    world.lose("b");
    world.pass(3000);
    let actions = world.run();
    assert!(actions.contains(&"bind a to n".to_owned()), "{actions:?}");
}

#[test]
fn the_condition_is_written_when_it_changes_and_events_each_time() {
    let mut world = World::new();
    world.node("n", "1");
    world.see(pod("a", "2", json!({})));
    world.run();
    world.pass(400_000);
    assert_eq!(world.run(), ["tell a FailedScheduling"]);
    world.node("m", "1");
    world.pass(400_000);
    assert_eq!(
        world.run(),
        ["tell a FailedScheduling", "patch a Unschedulable"]
    );
}

#[test]
fn pod_is_tried_again_when_a_fitting_node_is_added() {
    let mut world = World::new();
    world.see(pod("a", "2", json!({})));
    let actions = world.run();
    assert_eq!(
        actions,
        ["tell a FailedScheduling", "patch a Unschedulable"]
    );
    world.pass(2000);
    world.node("small", "1");
    assert_eq!(
        world.run(),
        ["tell a FailedScheduling", "patch a Unschedulable"]
    );
    world.node("large", "4");
    world.pass(3000);
    assert_eq!(world.run(), ["bind a to large"]);
}

#[test]
fn gated_pods_wait_for_their_gates_and_deleted_ones_are_skipped() {
    let mut world = World::new();
    world.node("n", "4");
    let gated = json!({"spec": {"schedulingGates": [{"name": "g"}]}});
    world.see(pod("a", "1", gated));
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.see(pod("b", "1", deleted));
    assert_eq!(world.run(), ["tell b FailedScheduling"]);
    world.see(pod("a", "1", json!({})));
    assert_eq!(world.run(), ["bind a to n"]);
}

#[test]
fn other_schedulers_pods_are_left_alone_and_profiles_are_chosen_by_name() {
    let file = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                profiles: [{schedulerName: first}, {schedulerName: second}]\n";
    let mut world = World::of(&read(file.as_bytes()).configuration);
    world.node("n", "1");
    let of = |name: &str| json!({"spec": {"schedulerName": name}});
    world.see(pod("a", "500m", of("default-scheduler")));
    world.see(pod("b", "500m", of("second")));
    assert_eq!(world.run(), ["bind b to n"]);
    world.bound("b", Ok(()));
    let actions = world.state.take_actions();
    assert!(matches!(actions[0], Action::RecordEvent { profile: 1, .. }));
    // Pods that others bind take up room too.
    let mut other = of("default-scheduler");
    merge(&mut other, json!({"spec": {"nodeName": "n"}}));
    world.see(pod("a", "500m", other));
    world.see(pod("c", "500m", of("first")));
    assert!(world.run()[0].starts_with("tell c Failed"));
}

/// A node full of pods of low priority, and a pod of high priority that is to push them out.
fn contested(victims: &[&str]) -> World {
    let mut world = World::new();
    world.node("n", "1");
    for name in victims {
        world.see(pod(name, "500m", json!({"spec": {"nodeName": "n"}})));
    }
    world.see(pod("high", "1", json!({"spec": {"priority": 10}})));
    world
}

#[test]
fn last_victim_is_deleted_after_others_and_preemptor_waits() {
    let mut world = contested(&["v1", "v2"]);
    assert_eq!(
        world.run(),
        [
            "evict v2",
            "tell high FailedScheduling",
            "patch high Unschedulable nominated n"
        ]
    );
    world.evicted("high", "v2", Eviction::Deleted);
    assert_eq!(world.run(), ["tell v2 Preempted", "evict v1"]);
    world.lose("v2");
    world.pass(3000);
    assert!(
        world.run().is_empty(),
        "held while the last victim is there"
    );
    world.lose("v1");
    world.evicted("high", "v1", Eviction::Deleted);
    let actions = world.run();
    assert!(
        actions.contains(&"bind high to n".to_owned()),
        "{actions:?}"
    );
    let text = world.state.metrics().text();
    assert!(text.contains("scheduler_preemption_victims_sum 2"));
    assert!(text.contains("scheduler_preemption_attempts_total 1"));
}

#[test]
fn preempted_resources_are_kept_from_pods_of_lower_priority() {
    let mut world = contested(&["v1", "v2"]);
    world.run();
    world.evicted("high", "v2", Eviction::Gone);
    world.lose("v2");
    world.see(pod("low", "500m", json!({"spec": {"priority": 1}})));
    let actions = world.run();
    assert!(
        !actions.iter().any(|action| action.starts_with("bind")),
        "{actions:?}"
    );
}

#[test]
fn a_preemptor_is_tried_again_when_a_victim_cannot_be_deleted() {
    let mut world = contested(&["v1"]);
    world.node("m", "500m");
    let actions = world.run();
    assert!(actions.contains(&"evict v1".to_owned()), "{actions:?}");
    world.evicted("high", "v1", Eviction::Failed);
    let actions = world.run();
    assert!(actions.contains(&"evict v1".to_owned()), "{actions:?}");
}

#[test]
fn lower_nominations_are_cleared_by_a_preemptor_on_the_same_node() {
    let mut world = contested(&["v1"]);
    let nominated = json!({"spec": {"priority": 5}, "status": {"nominatedNodeName": "n"}});
    world.see(pod("middle", "900m", nominated));
    let actions = world.run();
    let cleared = "patch middle  nominated nowhere".to_owned();
    assert!(actions.contains(&cleared), "{actions:?}");
}

#[test]
fn pod_deleted_during_binding_frees_its_resources_at_once() {
    let mut world = World::new();
    world.node("n", "1");
    world.see(pod("a", "1", json!({})));
    world.see(pod("b", "1", json!({"spec": {"priority": -1}})));
    let actions = world.run();
    assert_eq!(actions[0], "bind a to n");
    world.lose("a");
    world.pass(2000);
    assert_eq!(world.run(), ["bind b to n"]);
    world.bound("a", Err("pods \"a\" not found"));
    assert_eq!(world.run(), ["tell a FailedScheduling"]);
    assert_eq!(world.state.queue().sizes().in_flight, 0);
}

#[test]
fn new_list_drops_missing_objects() {
    let mut world = World::new();
    world.node("n", "1");
    world.see(pod("a", "1", json!({"spec": {"nodeName": "n"}})));
    world
        .state
        .observe(Input::Pod(WatchEvent::ListBegins), world.now);
    world.see(pod("b", "1", json!({})));
    world
        .state
        .observe(Input::Pod(WatchEvent::ListEnds), world.now);
    assert_eq!(world.run(), ["bind b to n"]);
    world
        .state
        .observe(Input::Node(WatchEvent::ListBegins), world.now);
    world
        .state
        .observe(Input::Node(WatchEvent::ListEnds), world.now);
    let name = NodeName::from("n");
    assert_eq!(world.state.engine().cluster().slot(&name), None);
}

#[test]
fn recreated_pod_is_a_different_pod() {
    let mut world = World::new();
    world.node("n", "1");
    world.see(pod("a", "1", json!({})));
    assert_eq!(world.run(), ["bind a to n"]);
    world.see(pod("a", "1", json!({"metadata": {"uid": "again"}})));
    assert_eq!(world.run(), ["bind a to n"]);
    world.bound("a", Err("the uid does not match"));
    assert_eq!(world.run(), ["tell a FailedScheduling"]);
    world.bound("again", Ok(()));
    assert_eq!(world.run(), ["tell a Scheduled"]);
}

#[test]
fn no_more_pods_are_tried_than_writes_may_be_under_way() {
    let mut world = World::new();
    world.state.max_writes = 2;
    world.node("n", "4");
    for name in ["a", "b", "c"] {
        world.see(pod(name, "1", json!({})));
    }
    assert_eq!(world.run().len(), 2);
    world.bound("a", Ok(()));
    assert_eq!(world.run(), ["tell a Scheduled", "bind c to n"]);
}
