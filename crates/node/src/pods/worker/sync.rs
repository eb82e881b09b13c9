//! Bringing a pod towards running.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::wire::PodSandboxConfig;
use tokio::time::Instant;

use crate::pod_fields::{self, Kind};
use crate::pods::host::PrepareError;
use crate::pods::look::look;
use crate::pods::note::{Note, reason};
use crate::pods::observed::{Observed, Sandbox};
use crate::pods::plan::{self, Plan};
use crate::pods::restart;
use crate::pods::status::Forced;

use super::start::Outcome;
use super::{Next, RETRY, RETRY_SOON, Worker, ended};

impl Worker {
    /// Looks at the pod once and does what is to be done.
    pub(super) async fn sync(&mut self) -> Next {
        let pod = self.record.pod();
        if let Err(next) = self.observe(&pod).await {
            return next;
        }
        if self.ends() {
            return Next::Again;
        }
        if !std::mem::replace(&mut self.has_adopted, true) {
            self.adopt_resources(&pod);
        }
        self.allocate_devices(&pod).await;
        if self.ends() {
            return Next::Again;
        }
        self.follow_resize(&pod);
        if let Some(forced) = self.exceeded_deadline(&pod) {
            let note = Note::warning(reason::DEADLINE_EXCEEDED, forced.message.clone());
            self.shared().host.record(&pod, note);
            self.record.state().forced = Some(forced);
        }
        if pod_fields::is_terminal_phase(&self.record.publish()) {
            return Next::End;
        }
        match self.prepare(&pod).await {
            Ok(()) => {}
            Err(next) => return next,
        }
        if self.ends() {
            return Next::Again;
        }
        let plan = self.plan(&pod);
        let next = self.carry_out(&pod, plan).await;
        self.no_later_than_deadline(&pod, next)
    }

    /// Asks the runtime what it has.
    pub(super) async fn observe(&mut self, pod: &Pod) -> Result<(), Next> {
        let known = self.record.state().observed.clone();
        let runtime = Arc::clone(&self.shared().runtime);
        match look(&*runtime, pod_fields::uid(pod), &known).await {
            Ok(observed) => {
                let end = self.end();
                let mut state = self.record.state();
                let is_there = |id: &String| observed.containers.iter().any(|c| c.id == *id);
                state.health.retain(|id, _| is_there(id));
                state.observed = observed;
                state.adopt_started();
                if let Some(end) = &end {
                    state.adopt_kill(end, &known);
                }
                drop(state);
                // What had ended before the agent was started was counted by an earlier one.
                if self.has_adopted {
                    self.count_ends(&known);
                }
                Ok(())
            }
            Err(error) => {
                let message = format!("error determining status: {}", error.chain());
                let note = Note::warning(reason::FAILED_SYNC, message);
                self.shared().host.record(pod, note);
                Err(self.in_a(RETRY))
            }
        }
    }

    /// Gives the containers their devices. A pod that cannot have them has failed; one that runs has
    /// them already.
    async fn allocate_devices(&mut self, pod: &Pod) {
        let is_running = self.record.state().observed.running().next().is_some();
        if self.has_devices || is_running {
            return;
        }
        let host = Arc::clone(&self.shared().host);
        let allocated = tokio::select! {
            allocated = host.allocate_devices(pod) => allocated,
            () = ended(self.desired.clone()) => return,
        };
        self.has_devices = true;
        if let Err(rejection) = allocated {
            let message = format!("Pod was rejected: {}", rejection.message);
            let note = Note::warning(rejection.reason.clone(), rejection.message);
            host.record(pod, note);
            self.record.state().forced = Some(Forced {
                reason: rejection.reason,
                message,
                ..Forced::default()
            });
        }
    }

    /// Network, cgroup, directories and volumes, which containers need. What was made ready for the
    /// same pod a moment ago still is.
    async fn prepare(&mut self, pod: &Arc<Pod>) -> Result<(), Next> {
        let fresh = self.shared().settings.resync / 2;
        let is_ready = self
            .prepared
            .as_ref()
            .is_some_and(|(known, at)| Arc::ptr_eq(known, pod) && at.elapsed() < fresh);
        if is_ready {
            return Ok(());
        }
        let host = Arc::clone(&self.shared().host);
        if !pod_fields::uses_host_network(pod)
            && let Some(problem) = host.network_problem().await
        {
            let message = format!("network is not ready: {problem}");
            host.record(pod, Note::warning(reason::NETWORK_NOT_READY, message));
            return Err(self.in_a(RETRY_SOON));
        }
        let prepared = tokio::select! {
            prepared = host.prepare(pod) => prepared,
            () = ended(self.desired.clone()) => return Err(Next::Again),
        };
        if prepared.is_ok() {
            self.prepared = Some((Arc::clone(pod), Instant::now()));
        }
        prepared.map_err(|error| {
            let note = match &error {
                PrepareError::Cgroup { source, .. } => Note::warning(
                    reason::FAILED_CREATE_POD_CONTAINER,
                    format!("unable to ensure pod container exists: {source}"),
                ),
                PrepareError::Directories(_) => Note::warning(reason::FAILED, error.to_string()),
                PrepareError::Volumes(_) => Note::warning(reason::FAILED_MOUNT, error.to_string()),
            };
            host.record(pod, note);
            self.in_a(RETRY)
        })
    }

    fn plan(&self, pod: &Pod) -> Plan {
        let state = self.record.state();
        plan::compute(plan::Input {
            pod,
            observed: &state.observed,
            health: &state.health,
            actuated: (!pod_fields::is_static(pod)).then_some(&state.actuated),
            restarts_all: restart::is_restarting_all(pod, &state.observed, &state.status),
        })
    }

    async fn carry_out(&mut self, pod: &Arc<Pod>, plan: Plan) -> Next {
        let host = Arc::clone(&self.shared().host);
        if plan.sandbox.is_new && plan.sandbox.id.is_some() {
            let message = "Pod sandbox changed, it will be killed and re-created.";
            host.record(pod, Note::normal(reason::SANDBOX_CHANGED, message));
        }
        let has_to_stop = plan.kills_pod && !self.record.state().observed.is_idle();
        if has_to_stop {
            if let Err(error) = self.stop_all(pod, Instant::now(), None).await {
                tracing::warn!(%error, "failed to kill pod");
                return self.in_a(RETRY);
            }
            if !plan.sandbox.is_new {
                return Next::Again;
            }
        }
        if plan.kills_pod && plan.sandbox.is_new {
            self.remove_init_containers(pod, 0).await;
        }
        if !plan.kills_pod {
            for kill in &plan.kill {
                if let Err(error) = self.stop_one(pod, kill).await {
                    tracing::warn!(container = kill.name, %error, "failed to kill container");
                    return self.in_a(RETRY);
                }
            }
        }
        if !plan.reset.is_empty() {
            return match self.reset(pod, &plan.reset).await {
                Ok(()) => Next::Again,
                Err(error) => {
                    tracing::warn!(%error, "failed to remove containers of pod");
                    self.in_a(RETRY)
                }
            };
        }
        self.remove_init_containers(pod, 1).await;
        let has_resized = !plan.resize.is_empty() && !plan.sandbox.is_new;
        let has_failed = has_resized && !self.resize(pod, &plan.resize).await;
        if plan.start.is_empty() && !plan.sandbox.is_new {
            let is_at_rest = plan.kill.is_empty() && !has_to_stop && !has_resized;
            return match (has_failed, is_at_rest) {
                (true, _) => self.in_a(RETRY),
                (false, true) => self.in_a(self.resync()),
                (false, false) => Next::Again,
            };
        }
        let config = match host.sandbox_config(pod, plan.sandbox.attempt).await {
            Ok(config) => config,
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {error}");
                let note = Note::warning(reason::FAILED_CREATE_POD_SAND_BOX, message);
                host.record(pod, note);
                return self.in_a(RETRY);
            }
        };
        let sandbox = match (plan.sandbox.is_new, &plan.sandbox.id) {
            (false, Some(id)) => {
                let ips = self.record.state().observed.ips().to_vec();
                (id.clone(), ips)
            }
            _ => match self.make_sandbox(pod, &config).await {
                Ok(made) => made,
                Err(next) => return next,
            },
        };
        self.start_all(pod, &plan, &config, &sandbox.0, &sandbox.1)
            .await
    }

    /// Makes a sandbox; answers its id and addresses.
    async fn make_sandbox(
        &mut self,
        pod: &Pod,
        config: &PodSandboxConfig,
    ) -> Result<(String, Vec<String>), Next> {
        let (runtime, host) = (
            Arc::clone(&self.shared().runtime),
            Arc::clone(&self.shared().host),
        );
        let handler = match host.runtime_handler(pod).await {
            Ok(handler) => handler,
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {error}");
                let note = Note::warning(reason::FAILED_CREATE_POD_SAND_BOX, message);
                host.record(pod, note);
                return Err(self.in_a(RETRY));
            }
        };
        let id = match runtime.run_pod_sandbox(config, &handler).await {
            Ok(id) => id,
            // The sandbox is no longer wanted, so the failure needs no event.
            Err(_) if self.ends() => return Err(Next::Again),
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {}", error.chain());
                let note = Note::warning(reason::FAILED_CREATE_POD_SAND_BOX, message);
                host.record(pod, note);
                return Err(self.in_a(RETRY));
            }
        };
        let sandbox = match runtime.pod_sandbox_status(&id).await {
            Ok(status) => Sandbox::from_wire(&status),
            Err(error) => {
                let message = format!("Unable to get pod sandbox status: {}", error.chain());
                let note = Note::warning(reason::FAILED_POD_SAND_BOX_STATUS, message);
                host.record(pod, note);
                return Err(self.in_a(RETRY));
            }
        };
        let ips = sandbox.ips.clone();
        {
            let mut state = self.record.state();
            let known = std::mem::take(&mut state.observed);
            let mut sandboxes = known.sandboxes;
            for old in &mut sandboxes {
                old.is_ready = false;
            }
            sandboxes.push(sandbox);
            state.observed = Observed::new(sandboxes, known.containers);
        }
        // The status is published before images are pulled, which may take long.
        self.record.publish();
        Ok((id, ips))
    }

    /// Starts what is to be started, in order.
    async fn start_all(
        &mut self,
        pod: &Arc<Pod>,
        plan: &Plan,
        config: &PodSandboxConfig,
        sandbox: &str,
        ips: &[String],
    ) -> Next {
        let host_ips = self.shared().host.host_ips();
        let mut ips = crate::pods::status::sorted_ips(ips, &host_ips);
        if ips.is_empty() && pod_fields::uses_host_network(pod) {
            ips.extend(host_ips.iter().map(ToString::to_string));
        }
        let mut is_any_started = false;
        let mut look_again: Option<Timestamp> = None;
        let mut has_failed = false;
        for start in &plan.start {
            if self.ends() {
                return Next::Again;
            }
            let mut parts = pod_fields::parts(pod);
            let part = parts.find(|part| part.kind == start.kind && part.index == start.index);
            let Some(part) = part else {
                continue;
            };
            let outcome = self.start(pod, &part, config, sandbox, &ips).await;
            match outcome {
                Outcome::Started => is_any_started = true,
                Outcome::Waits(until) => {
                    look_again = look_again.into_iter().chain([until]).min();
                }
                Outcome::Failed => has_failed = true,
                Outcome::Interrupted => return Next::Again,
            }
            if part.kind == Kind::Init && !matches!(outcome, Outcome::Started) {
                break;
            }
        }
        if is_any_started {
            return Next::Again;
        }
        // The reason why nothing was started is published at once.
        self.record.publish();
        let retry = has_failed.then(|| self.shared().clock.now().saturating_add(RETRY));
        match look_again.into_iter().chain(retry).min() {
            Some(time) => self.at(time),
            None => self.in_a(self.resync()),
        }
    }

    /// How long a pod at rest is left alone; not the same for all pods, so that they take turns.
    fn resync(&self) -> Duration {
        let base = self.shared().settings.resync;
        base + base.mul_f64(0.5 * fastrand::f64())
    }

    /// That the pod has run longer than it may.
    fn exceeded_deadline(&mut self, pod: &Pod) -> Option<Forced> {
        let deadline = self.deadline(pod)?;
        (Instant::now() >= deadline).then(|| Forced {
            reason: "DeadlineExceeded".to_owned(),
            message: "Pod was active on the node longer than the specified deadline".to_owned(),
            ..Forced::default()
        })
    }

    /// When the pod will have run longer than it may. What is left of its time is looked up once: it
    /// passes at the same rate when the clock is set.
    fn deadline(&mut self, pod: &Pod) -> Option<Instant> {
        let secs = pod_fields::spec(pod)?.active_deadline_seconds?;
        let limit = super::grace::seconds(secs);
        let ends = {
            let state = self.record.state();
            Timestamp::from_api(state.status.start_time.as_ref()?).saturating_add(limit)
        };
        let known = self.deadline.filter(|(known, _)| *known == ends);
        let (_, instant) = known.unwrap_or_else(|| (ends, self.shared().clock.instant_of(ends)));
        self.deadline = Some((ends, instant));
        Some(instant)
    }

    fn no_later_than_deadline(&mut self, pod: &Pod, next: Next) -> Next {
        let Next::At(at) = next else {
            return next;
        };
        let deadline = self.deadline(pod);
        Next::At(deadline.map_or(at, |deadline: Instant| deadline.min(at)))
    }
}
