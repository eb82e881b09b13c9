//! Random events in random order: no container starts twice, terminated pods stay terminated, and
//! no grace period is extended.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_node::pods::status::Forced;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, pod, uid};

/// A random event.
#[derive(Clone, Debug)]
enum Happening {
    Time(u64),
    ContainerEnds(&'static str, i32),
    SandboxDies,
    VerbFails(&'static str, u32),
    ProbesSay(i32),
    DeadAreRemoved,
    AgentRestarts,
    Deleted(i64),
    Evicted(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let names = prop::sample::select(vec!["one", "car", "a", "b"]);
    let verbs = prop::sample::select(vec![
        "run_pod_sandbox",
        "create_container",
        "start_container",
        "stop_container",
        "stop_pod_sandbox",
        "list_pod_sandboxes",
        "pull_image",
    ]);
    prop_oneof![
        4 => (0_u64..120).prop_map(Happening::Time),
        3 => (names, 0..3).prop_map(|(name, code)| Happening::ContainerEnds(name, code)),
        1 => Just(Happening::SandboxDies),
        2 => (verbs, 1_u32..4).prop_map(|(verb, times)| Happening::VerbFails(verb, times)),
        1 => (0..2).prop_map(Happening::ProbesSay),
        1 => Just(Happening::DeadAreRemoved),
        1 => Just(Happening::AgentRestarts),
        1 => (0_i64..60).prop_map(Happening::Deleted),
        1 => (0_i64..60).prop_map(Happening::Evicted),
    ]
}

fn any_pod() -> impl Strategy<Value = Pod> {
    let image = prop::sample::select(vec!["sleep:1", "stubborn:1", "exit-0:1", "run-7-exit-1:1"]);
    let policy = prop::sample::select(vec!["Always", "OnFailure", "Never"]);
    let init = prop::sample::select(vec!["exit-0:1", "run-3-exit-0:1", "exit-1:1"]);
    (policy, image.clone(), image, init, any::<[bool; 4]>()).prop_map(
        |(policy, a, b, one, [has_init, has_sidecar, has_b, has_probe])| {
            let mut first = json!({"name": "a", "image": a});
            if has_probe {
                first["livenessProbe"] =
                    json!({"exec": {"command": ["alive"]}, "periodSeconds": 3});
            }
            let init: Vec<Value> = [
                has_init.then(|| json!({"name": "one", "image": one})),
                has_sidecar
                    .then(|| json!({"name": "car", "image": "sleep:1", "restartPolicy": "Always"})),
            ]
            .into_iter()
            .flatten()
            .collect();
            let mut containers = vec![first];
            containers.extend(has_b.then(|| json!({"name": "b", "image": b})));
            pod(
                "web",
                json!({
                    "restartPolicy": policy, "terminationGracePeriodSeconds": 20,
                    "initContainers": init, "containers": containers,
                }),
            )
        },
    )
}

/// The state that the invariants are checked against.
struct Watch {
    world: World,
    pod: Pod,
    last_phase: String,
    /// The length of the runtime's log when the pod terminated.
    over_since: Option<usize>,
}

impl Watch {
    fn starts(&self, from: usize) -> usize {
        let log = self.world.runtime.log();
        log[from..]
            .iter()
            .filter(|l| l.starts_with("start "))
            .count()
    }

    fn check(&mut self) {
        let Some(report) = self.world.report("web") else {
            return;
        };
        let phase = report.status.phase.clone().unwrap_or_default();
        if ["Succeeded", "Failed"].contains(&self.last_phase.as_str()) {
            assert_eq!(phase, self.last_phase, "a terminal phase is final");
        }
        self.last_phase = phase;
        if !report.may_run {
            let since = *self
                .over_since
                .get_or_insert_with(|| self.world.runtime.log().len());
            assert_eq!(self.starts(since), 0, "what is over starts nothing");
        }
        for own in report.status.container_statuses.iter().flatten() {
            let made = self.world.runtime.made(&own.name);
            let counted = usize::try_from(own.restart_count).unwrap();
            assert!(counted <= made, "{counted} restarts, {made} containers");
        }
        self.world.runtime.check_stops();
    }

    async fn apply(&mut self, happening: &Happening) {
        let runtime = &self.world.runtime;
        match happening {
            Happening::Time(secs) => {
                for _ in 0..*secs {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.check();
                }
            }
            Happening::ContainerEnds(name, code) => runtime.end(name, *code),
            Happening::SandboxDies => runtime.lose_sandboxes(),
            Happening::VerbFails(verb, times) => runtime.fail(verb, *times),
            Happening::ProbesSay(code) => runtime.set_exec_exit_code(*code),
            Happening::DeadAreRemoved => runtime.collect_garbage(),
            Happening::AgentRestarts => {
                let status = self.world.status("web");
                self.world.stop.cancel();
                tokio::time::sleep(Duration::from_millis(10)).await;
                let report = self.world.report("web");
                self.world = self.world.restarted();
                // A new agent does not know how much of the grace period has passed.
                self.world.runtime.forget_stops();
                // The API knows what was reported, but not what was kept back.
                let may_run = report.is_none_or(|report| report.may_run);
                let is_over = ["Succeeded", "Failed"].contains(&self.last_phase.as_str());
                if is_over && may_run {
                    self.last_phase = String::new();
                } else {
                    self.pod.status = Some(status);
                }
                self.world.apply(self.pod.clone());
            }
            Happening::Deleted(grace_secs) => {
                self.world.delete(&self.pod, *grace_secs);
                self.pod.metadata.deletion_timestamp = Some(self.world.clock.now().to_api());
                let known = self.pod.metadata.deletion_grace_period_seconds;
                let secs = known.map_or(*grace_secs, |known| known.min(*grace_secs));
                self.pod.metadata.deletion_grace_period_seconds = Some(secs);
            }
            Happening::Evicted(grace_secs) => {
                let forced = Forced {
                    reason: "Evicted".to_owned(),
                    message: String::new(),
                    is_disruption: true,
                    ..Forced::default()
                };
                let (pods, grace_secs) = (self.world.pods.clone(), *grace_secs);
                tokio::spawn(async move {
                    let uid = uid("web");
                    let killed = pods.kill(&uid, Some(grace_secs), Some(forced)).await;
                    drop(killed);
                });
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.check();
    }
}

async fn run(pod: Pod, happenings: Vec<Happening>) {
    let world = World::new();
    world.apply(pod.clone());
    let mut watch = Watch {
        world,
        pod,
        last_phase: String::new(),
        over_since: None,
    };
    for happening in &happenings {
        watch.apply(happening).await;
    }
    // At the end all pods can be deleted.
    watch.apply(&Happening::Deleted(5)).await;
    watch.apply(&Happening::Time(120)).await;
    let report = watch.world.report("web").unwrap();
    assert!(report.is_finished, "{report:#?}");
    assert!(!watch.world.runtime.is_anything_running());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_pod_invariants(
        pod in any_pod(),
        happenings in vec(happening(), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(pod, happenings));
    }
}
