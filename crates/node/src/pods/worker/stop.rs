//! Stopping containers, one or all.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_runtime::Error;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::pod_fields;
use crate::pods::hook::Hook;
use crate::pods::note::{Note, reason};
use crate::pods::observed::{self, State};
use crate::pods::plan::{Kill, KillReason, Reset};
use crate::pods::status::Stage;

use super::grace::{self, Deadline, MIN_STOP};
use super::{RETRY, Worker};

/// A container that is being stopped.
struct Stopping<'a> {
    pod: &'a Pod,
    container: Option<&'a Container>,
    id: &'a str,
    name: &'a str,
    message: String,
}

impl Worker {
    /// Stops everything of the pod, for good. What fails is tried again until it works.
    pub(super) async fn terminate(&mut self) {
        let pod = self.record.pod();
        // However often it has to be tried, there is one grace period.
        let begun = Instant::now();
        loop {
            let seen = self.observe(&pod).await;
            self.take_over_end();
            self.record.publish();
            if let Err(error) = self.shared().host.thaw(&pod).await {
                tracing::warn!(%error, "failed to thaw pod cgroup");
            }
            let stopped = match seen {
                Ok(()) => self.stop_for_good(&pod, begun).await,
                Err(_) => Err("cannot read the state of the pod".to_owned()),
            };
            match stopped {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(error, "failed to kill pod");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        self.take_over_end();
        self.record.state().stage = Stage::Terminated;
        self.record.publish();
        self.stopped.send_replace(true);
        self.shared().host.pods_changed();
    }

    /// Takes over why and how the pod is to end. What has come to its own end, as by running out of
    /// memory, was not ended by the agent.
    fn take_over_end(&mut self) -> Option<i64> {
        let desired = self.desired.borrow_and_update().clone();
        {
            let mut state = self.record.state();
            state.pod = desired.pod;
            state.stage = state.stage.max(Stage::Terminating);
        }
        let end = self.end()?;
        if end.forced.is_some() && self.record.state().forced.is_none() {
            let is_over = pod_fields::is_terminal_phase(&self.record.publish());
            if !is_over {
                self.record.state().forced = end.forced;
            }
        }
        Some(end.grace_secs)
    }

    async fn stop_for_good(&mut self, pod: &Arc<Pod>, begun: Instant) -> Result<(), String> {
        let grace_secs = self.take_over_end();
        let (nearer, deadline) = match grace_secs {
            Some(secs) => {
                let (nearer, deadline) = Deadline::at(begun + grace::seconds(secs));
                (Some(nearer), Some(deadline))
            }
            None => (None, None),
        };
        let mut desired = self.desired.clone();
        let result = {
            let stop = self.stop_all(pod, begun, deadline);
            tokio::pin!(stop);
            loop {
                tokio::select! {
                    result = &mut stop => break result,
                    // A grace period that becomes shorter brings the deadline nearer.
                    Ok(()) = desired.changed() => {
                        let end = desired.borrow_and_update().end.clone();
                        if let (Some(end), Some(nearer)) = (end, &nearer) {
                            let until = begun + grace::seconds(end.grace_secs);
                            nearer.send_if_modified(|current| {
                                let is_nearer = until < *current;
                                *current = until.min(*current);
                                is_nearer
                            });
                        }
                    }
                }
            }
        };
        if let Err(error) = result {
            let message = format!("error killing pod: {error}");
            let note = Note::warning(reason::FAILED_KILL_POD, message);
            self.shared().host.record(pod, note);
            return Err(error);
        }
        if self.observe(pod).await.is_err() {
            return Err("cannot read the state of the pod".to_owned());
        }
        let state = self.record.state();
        let running: Vec<&str> = state.observed.running().map(|c| c.id.as_str()).collect();
        match running.as_slice() {
            [] => Ok(()),
            running => Err(format!(
                "detected running containers after a successful KillPod, CRI violation: {running:?}"
            )),
        }
    }

    /// Stops all containers at once, sidecars after the others and the last one first; then the
    /// sandboxes. Without a deadline each container has its grace period.
    pub(super) async fn stop_all(
        &self,
        pod: &Arc<Pod>,
        begun: Instant,
        deadline: Option<Deadline>,
    ) -> Result<(), String> {
        let observed = self.record.state().observed.clone();
        let running: Vec<&observed::Container> = observed.running().collect();
        let order = Order::new(pod, &running);
        let stops = running.iter().map(|seen| {
            let part = pod_fields::part(pod, &seen.name);
            let deadline = deadline.clone();
            let order = &order;
            async move {
                let container = part.as_ref().map(|part| part.container.as_ref());
                let stopping = Stopping {
                    pod,
                    container,
                    id: &seen.id,
                    name: &seen.name,
                    message: format!("Stopping container {}", seen.name),
                };
                let deadline = deadline.unwrap_or_else(|| {
                    let secs = match container {
                        Some(container) => grace::of_container(pod, container, KillReason::Other),
                        None => grace::of_pod(pod),
                    };
                    Deadline::at(begun + grace::seconds(secs)).1
                });
                let result = self.stop_container(stopping, deadline, Some(order)).await;
                order.stopped(&seen.name);
                result.map_err(|error| format!("{}: {}", seen.name, error.chain()))
            }
        });
        let mut problems: Vec<String> = join_all(stops)
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect();
        for sandbox in &observed.sandboxes {
            match self.shared().runtime.stop_pod_sandbox(&sandbox.id).await {
                Ok(()) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => problems.push(error.chain()),
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join(", ")),
        }
    }

    /// Stops one container of a pod that keeps running.
    pub(super) async fn stop_one(&self, pod: &Pod, kill: &Kill) -> Result<(), Error> {
        let part = pod_fields::part(pod, &kill.name);
        let container = part.as_ref().map(|part| part.container.as_ref());
        let secs = match container {
            Some(container) => grace::of_container(pod, container, kill.reason),
            None => grace::of_pod(pod),
        };
        let stopping = Stopping {
            pod,
            container,
            id: &kill.id,
            name: &kill.name,
            message: kill.message.clone(),
        };
        let (_, deadline) = Deadline::at(Instant::now() + grace::seconds(secs));
        self.stop_container(stopping, deadline, None).await
    }

    async fn stop_container(
        &self,
        stopping: Stopping<'_>,
        mut deadline: Deadline,
        order: Option<&Order>,
    ) -> Result<(), Error> {
        if let Some(container) = stopping.container {
            let note = Note::normal(reason::KILLING, stopping.message.clone());
            self.record_event(stopping.pod, container, note, Some(stopping.id));
        }
        self.run_pre_stop(&stopping, &mut deadline).await;
        if let Some(order) = order {
            tokio::select! {
                () = order.turn(stopping.name) => {}
                () = deadline.passed() => {}
            }
        }
        loop {
            let grace = deadline.remaining().max(MIN_STOP);
            let stop = self.shared().runtime.stop_container(stopping.id, grace);
            let result = tokio::select! {
                result = stop => result,
                // Ask again with less patience.
                () = deadline.brought_nearer() => continue,
            };
            return match result {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(()),
            };
        }
    }

    /// Runs the hook before the end, if there is one and time for it.
    async fn run_pre_stop(&self, stopping: &Stopping<'_>, deadline: &mut Deadline) {
        let Some(container) = stopping.container else {
            return;
        };
        let lifecycle = container.lifecycle.as_ref();
        let Some(handler) = lifecycle.and_then(|hooks| hooks.pre_stop.as_ref()) else {
            return;
        };
        if deadline.remaining().is_zero() {
            return;
        }
        let pod_ip = self.record.state().status.pod_ip.clone();
        let hook = Hook {
            pod: stopping.pod,
            container,
            id: stopping.id,
            pod_ip: pod_ip.as_deref(),
        };
        let shared = self.shared();
        let record = |note| shared.host.record(stopping.pod, note);
        let result = tokio::select! {
            result = hook.run(handler, &*shared.runtime, &record) => result,
            () = deadline.passed() => {
                tracing::debug!(container = stopping.name, "preStop hook did not finish within grace period");
                return;
            }
        };
        if let Err(error) = result {
            tracing::debug!(container = stopping.name, error, "preStop hook failed");
            // What the hook said may be secret, so events do not repeat it.
            let note = Note::warning(reason::FAILED_PRE_STOP_HOOK, "PreStopHook failed");
            self.record_event(stopping.pod, container, note, Some(stopping.id));
        }
    }

    /// Removes containers so that all start over.
    pub(super) async fn reset(&self, pod: &Pod, resets: &[Reset]) -> Result<(), Error> {
        for reset in resets {
            if reset.is_running {
                let part = pod_fields::part(pod, &reset.name);
                let stopping = Stopping {
                    pod,
                    container: part.as_ref().map(|part| part.container.as_ref()),
                    id: &reset.id,
                    name: &reset.name,
                    message: "killing".to_owned(),
                };
                let (_, deadline) = Deadline::at(Instant::now());
                self.stop_container(stopping, deadline, None).await?;
            }
            self.shared().runtime.remove_container(&reset.id).await?;
        }
        Ok(())
    }

    /// Removes ended init containers, all but the newest `kept` of each name, so that they do not
    /// pile up.
    pub(super) async fn remove_init_containers(&self, pod: &Pod, kept: usize) {
        let observed = self.record.state().observed.clone();
        for container in pod_fields::init_containers(pod) {
            let all = observed.containers.iter();
            let own = all.filter(|seen| {
                seen.name == container.name && matches!(seen.state, State::Exited | State::Unknown)
            });
            for seen in own.skip(kept) {
                if let Err(error) = self.shared().runtime.remove_container(&seen.id).await {
                    tracing::warn!(container = seen.name, %error, "failed to remove container");
                }
            }
        }
    }
}

/// The order in which containers stop: a sidecar waits for all regular containers and for the sidecars after it.
struct Order {
    stopped: watch::Sender<std::collections::BTreeSet<String>>,
    before: std::collections::BTreeMap<String, Vec<String>>,
}

impl Order {
    fn new(pod: &Pod, running: &[&observed::Container]) -> Order {
        let is_running = |name: &str| running.iter().any(|seen| seen.name == name);
        let apps = pod_fields::app_containers(pod).iter();
        let mut earlier: Vec<String> = apps
            .map(|container| container.name.clone())
            .filter(|name| is_running(name))
            .collect();
        let mut before = std::collections::BTreeMap::new();
        for container in pod_fields::init_containers(pod).iter().rev() {
            if pod_fields::is_sidecar(container) && is_running(&container.name) {
                before.insert(container.name.clone(), earlier.clone());
                earlier.push(container.name.clone());
            }
        }
        Order {
            stopped: watch::Sender::default(),
            before,
        }
    }

    /// Records that a container has been stopped, or could not be.
    fn stopped(&self, name: &str) {
        self.stopped.send_modify(|stopped| {
            stopped.insert(name.to_owned());
        });
    }

    /// Waits until it is this container's turn.
    async fn turn(&self, name: &str) {
        let Some(before) = self.before.get(name) else {
            return;
        };
        let mut stopped = self.stopped.subscribe();
        let are_all = stopped.wait_for(|stopped| before.iter().all(|name| stopped.contains(name)));
        // The sender lives as long as self.
        drop(are_all.await);
    }
}
