//! A node with fakes around it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use plimsoll_core::cgroup::Version;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_node::pods::reports::Report;
use plimsoll_node::pods::set::Source;
use plimsoll_node::pods::{Clock, Pods, Settings};
use plimsoll_node::stats::metrics::KubeletMetrics;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fake_host::FakeHost;
use crate::fake_runtime::FakeRuntime;

/// The node.
pub(crate) struct World {
    pub(crate) pods: Pods,
    pub(crate) runtime: Arc<FakeRuntime>,
    pub(crate) host: Arc<FakeHost>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<KubeletMetrics>,
    /// Stops the agent; containers keep running.
    pub(crate) stop: CancellationToken,
}

impl World {
    pub(crate) fn new() -> World {
        let clock = Clock::starting_at(Timestamp::from_secs(1_700_000_000));
        let runtime = FakeRuntime::new(clock.clone());
        World::with(runtime, clock)
    }

    /// A node with that clock.
    pub(crate) fn with_clock(clock: Clock) -> World {
        let runtime = FakeRuntime::new(clock.clone());
        World::with(runtime, clock)
    }

    /// A node whose runtime sends no events.
    pub(crate) fn with_silent_runtime() -> World {
        let clock = Clock::starting_at(Timestamp::from_secs(1_700_000_000));
        let runtime = FakeRuntime::silent(clock.clone());
        World::with(runtime, clock)
    }

    /// A new agent on a machine whose runtime keeps running.
    pub(crate) fn restarted(&self) -> World {
        World::with(Arc::clone(&self.runtime), self.clock.clone())
    }

    fn with(runtime: Arc<FakeRuntime>, clock: Clock) -> World {
        let host = Arc::new(FakeHost::default());
        let metrics = Arc::new(KubeletMetrics::new("n1", Version::V2));
        let pods = Pods::new(
            runtime.clone(),
            "fake",
            host.clone(),
            clock.clone(),
            Settings::default(),
            Arc::clone(&metrics),
        );
        let stop = CancellationToken::new();
        let (watched, token) = (pods.clone(), stop.clone());
        tokio::spawn(async move { watched.run(token).await });
        World {
            pods,
            runtime,
            host,
            clock,
            metrics,
            stop,
        }
    }

    /// Removes a pod from the API.
    pub(crate) fn apply(&self, pod: Pod) {
        self.pods.apply(Source::Api, pod);
    }

    pub(crate) fn report(&self, name: &str) -> Option<Report> {
        self.pods.reports().get(&uid(name))
    }

    pub(crate) fn status(&self, name: &str) -> PodStatus {
        let report = self.report(name);
        report
            .map(|report| (*report.status).clone())
            .unwrap_or_default()
    }

    pub(crate) fn phase(&self, name: &str) -> String {
        self.status(name).phase.unwrap_or_default()
    }

    pub(crate) fn container(&self, pod: &str, name: &str) -> ContainerStatus {
        let status = self.status(pod);
        let init = status.init_container_statuses.into_iter().flatten();
        let app = status.container_statuses.into_iter().flatten();
        let ephemeral = status.ephemeral_container_statuses.into_iter().flatten();
        let mut all = init.chain(app).chain(ephemeral);
        all.find(|own| own.name == name).unwrap_or_default()
    }

    /// Waits in virtual time until a condition holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..360_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!(
            "{what} never came to hold\nlog: {:#?}\nnotes: {:#?}\nreports: {:#?}",
            self.runtime.log(),
            self.host.notes(),
            self.pods.reports().all()
        );
    }

    pub(crate) async fn until_phase(&self, name: &str, phase: &str) {
        self.until(&format!("{name} is {phase}"), |world| {
            world.phase(name) == phase
        })
        .await;
    }

    pub(crate) async fn until_finished(&self, name: &str) {
        self.until(&format!("{name} is finished"), |world| {
            world.report(name).is_some_and(|report| report.is_finished)
        })
        .await;
    }

    pub(crate) fn delete(&self, pod: &Pod, grace_secs: i64) {
        self.apply(deleted(pod, grace_secs, self.clock.now()));
    }
}

pub(crate) fn uid(name: &str) -> String {
    format!("uid-{name}")
}

/// A pod with that spec.
pub(crate) fn pod(name: &str, spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": uid(name), "generation": 1},
        "spec": spec,
    }))
    .unwrap()
}

/// A pod of one container with that image.
pub(crate) fn simple(name: &str, image: &str, restart_policy: &str) -> Pod {
    pod(
        name,
        json!({
            "restartPolicy": restart_policy,
            "containers": [{"name": "a", "image": image}],
        }),
    )
}

pub(crate) fn deleted(pod: &Pod, grace_secs: i64, now: Timestamp) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.deletion_timestamp = Some(now.to_api());
    pod.metadata.deletion_grace_period_seconds = Some(grace_secs);
    pod
}
