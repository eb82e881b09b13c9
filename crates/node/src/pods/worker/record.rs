//! What is known of one pod, shared by its worker, its probes and its readers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use tokio::sync::Notify;

use crate::pods::KillNotice;
use crate::pods::back_off::BackOff;
use crate::pods::observed::{self, Observed};
use crate::pods::plan::{Actuated, Results, Verdict};
use crate::pods::pod_fields;
use crate::pods::status::{self, Forced, Stage, StartFailure};

use super::{End, Shared};

/// The reason of a container that the kernel killed for want of memory.
const OOM_KILLED: &str = "OOMKilled";

/// What is known of one pod.
#[derive(Debug)]
pub(crate) struct Record {
    pub(super) shared: Arc<Shared>,
    state: Mutex<State>,
    wake: Notify,
    reported: Notify,
    kill_notice: Arc<KillNotice>,
}

/// The knowledge itself. After a change the caller calls [`Record::publish`].
#[derive(Debug)]
pub(crate) struct State {
    /// The pod, with the resources allocated to it.
    pub(crate) pod: Arc<Pod>,
    /// What the runtime had when it was last asked.
    pub(crate) observed: Observed,
    /// The status computed last.
    pub(crate) status: PodStatus,
    /// Why containers could not be started, by name.
    pub(crate) failures: BTreeMap<String, StartFailure>,
    /// What probes have found, by runtime id.
    pub(crate) health: Results,
    /// What containers were given last.
    pub(crate) actuated: Actuated,
    /// Which containers have failed, and how long they wait.
    pub(super) back_off: BackOff,
    /// Conditions about a resize.
    pub(crate) resize: Vec<PodCondition>,
    /// How far the pod is from its end.
    pub(crate) stage: Stage,
    /// That it is ended from outside.
    pub(crate) forced: Option<Forced>,
    /// Whether the kernel killed a container of a pod that was to be killed.
    was_kernel_first: bool,
    /// Whether the status is its last and stays as it is.
    is_settled: bool,
}

impl State {
    /// Takes over that containers had come up before the agent was restarted, so that they are not
    /// asked again.
    pub(super) fn adopt_started(&mut self) {
        let init = self.status.init_container_statuses.iter().flatten();
        let app = self.status.container_statuses.iter().flatten();
        for own in init.chain(app).filter(|own| own.started == Some(true)) {
            let has_probe = pod_fields::part(&self.pod, &own.name)
                .is_some_and(|part| part.container.startup_probe.is_some());
            let id = own.container_id.as_deref().unwrap_or_default();
            let seen = self.observed.latest(&own.name);
            let seen = seen.filter(|seen| seen.state == observed::State::Running);
            if let Some(seen) = seen.filter(|seen| has_probe && id.ends_with(&seen.id)) {
                let health = self.health.entry(seen.id.clone()).or_default();
                health.startup = health.startup.or(Some(Verdict::Success));
            }
        }
    }

    /// Takes over why the pod's processes are killed, in the very moment in which they are seen to
    /// be dead: until its worker stops the pod, another task may report it. `before` is what was
    /// seen last; what the kernel has killed since, for want of memory, was not killed by us.
    pub(super) fn adopt_kill(&mut self, end: &End, before: &Observed) {
        let had_ended = |id: &str| {
            let mut ended = before.containers.iter().filter(|c| has_ended(c));
            ended.any(|container| container.id == id)
        };
        let since = self.observed.containers.iter();
        let mut since = since.filter(|c| has_ended(c) && !had_ended(&c.id));
        self.was_kernel_first |= since.any(|container| container.reason == OOM_KILLED);
        if end.is_killed && self.forced.is_none() && !self.was_kernel_first {
            self.forced.clone_from(&end.forced);
        }
    }
}

fn has_ended(container: &observed::Container) -> bool {
    container.state == observed::State::Exited
}

impl Record {
    /// A record of a pod nothing is known of but what the API has.
    pub(crate) fn new(shared: Arc<Shared>, pod: Arc<Pod>, settled: Option<PodStatus>) -> Record {
        let is_settled = settled.is_some();
        let known = settled.or_else(|| pod.status.clone());
        let state = State {
            observed: Observed::default(),
            status: known.unwrap_or_default(),
            is_settled,
            failures: BTreeMap::new(),
            health: Results::new(),
            actuated: Actuated::as_allocated(&pod),
            back_off: BackOff::new(shared.settings.max_restart_back_off),
            resize: Vec::new(),
            stage: Stage::Running,
            forced: None,
            was_kernel_first: false,
            pod,
        };
        Record {
            shared,
            state: Mutex::new(state),
            wake: Notify::new(),
            reported: Notify::new(),
            kill_notice: Arc::default(),
        }
    }

    /// What is given before something else than its worker kills the pod's processes.
    pub(crate) fn kill_notice(&self) -> &Arc<KillNotice> {
        &self.kill_notice
    }

    /// The knowledge, to read or change. Not to be held while waiting for anything.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod.
    pub(crate) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.state().pod)
    }

    /// Has the worker look at its pod.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits to be woken.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// What all workers have in common.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Waits for the next report.
    pub(crate) async fn reported(&self) {
        self.reported.notified().await;
    }

    /// Computes the status anew and reports it; answers its phase.
    pub(crate) fn publish(&self) -> String {
        let mut state = self.state();
        let may_run = state.stage < Stage::Terminated;
        // A last status stays, unless something of the pod is found to run after all.
        let is_any_running = state.observed.running().next().is_some();
        state.is_settled &= !is_any_running;
        if state.is_settled {
            self.report(&state, may_run, false);
            return state.status.phase.clone().unwrap_or_default();
        }
        let host_ips = self.shared.host.host_ips();
        let mut status = status::compute(status::Input {
            pod: &state.pod,
            observed: &state.observed,
            runtime_name: &self.shared.runtime_name,
            previous: &state.status,
            failures: &state.failures,
            health: &state.health,
            actuated: &state.actuated,
            resize: &state.resize,
            host_ips: &host_ips,
            stage: state.stage,
            forced: state.forced.as_ref(),
            now: self.shared.clock.now(),
        });
        self.add_device_health(&state, &mut status);
        state.status = status;
        self.report(&state, may_run, false);
        state.status.phase.clone().unwrap_or_default()
    }

    /// Adds the health of devices to the statuses of regular containers; what was known last of those
    /// that have none any more.
    fn add_device_health(&self, state: &State, status: &mut PodStatus) {
        let before = state
            .status
            .container_statuses
            .as_deref()
            .unwrap_or_default();
        for container in status.container_statuses.iter_mut().flatten() {
            let health = self.shared.host.device_health(&state.pod, &container.name);
            let before = before.iter().find(|before| before.name == container.name);
            container.allocated_resources_status = match health.is_empty() {
                true => before.and_then(|before| before.allocated_resources_status.clone()),
                false => Some(health),
            };
        }
    }

    /// Reports the last status of the pod: nothing of it is left.
    pub(super) fn close(&self) {
        let mut state = self.state();
        let pod = Arc::clone(&state.pod);
        if !state.is_settled {
            status::close(&pod, &mut state.status);
        }
        self.report(&state, false, true);
    }

    /// Reports the last status again, because the pod's object has changed.
    pub(crate) fn repeat(&self) {
        self.report(&self.state(), false, true);
    }

    /// The reported pod carries the status that the API has, as far as is known.
    fn report(&self, state: &State, may_run: bool, is_finished: bool) {
        let reports = &self.shared.reports;
        reports.put(&state.pod, state.status.clone(), may_run, is_finished);
        self.reported.notify_one();
    }
}
