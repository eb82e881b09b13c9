//! Writing changed resources into cgroups.
//!
//! What grows goes from the pod down to its containers, what shrinks from the containers up, so
//! that at no time a container may use more than its pod. Matches v1.36
//! pkg/kubelet/kuberuntime/kuberuntime_manager.go, `doPodResizeAction`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use plimsoll_core::object::pod::{Overhead, PodView};
use plimsoll_core::resources::{Bytes, Millicores, ResourceName};

use crate::pod_fields;
use crate::pods::host::Resource;
use crate::pods::note::{Note, reason};
use crate::pods::observed::State;
use crate::pods::plan::{Actuated, Amounts, Resize, Update};
use crate::pods::resize::{self, ERROR, IN_PROGRESS};

use super::Worker;

impl Worker {
    /// Notes that a resize is under way or has come to its end.
    pub(super) fn follow_resize(&self, pod: &Pod) {
        let now = self.shared().clock.now();
        let mut state = self.record.state();
        let generation = pod_fields::generation(pod);
        let is_different = {
            let mut running = state.observed.running();
            running.any(|seen| {
                let Some(part) = pod_fields::part(pod, &seen.name) else {
                    return false;
                };
                let given = state.actuated.containers.get(&seen.name);
                given.is_some_and(|given| *given != Amounts::of(pod, &part.container))
            })
        };
        if is_different {
            let conditions = &mut state.resize;
            resize::set_condition(conditions, IN_PROGRESS, "", "", generation, now);
            return;
        }
        let done = resize::clear_condition(&mut state.resize, IN_PROGRESS);
        drop(state);
        if let Some(generation) = done {
            let message = resize::message("Pod resize completed", pod, generation, "");
            let note = Note::normal(reason::RESIZE_COMPLETED, message);
            self.shared().host.record(pod, note);
        }
    }

    /// Carries out changes; answers whether all of them were made.
    pub(super) async fn resize(&self, pod: &Arc<Pod>, plan: &Resize) -> bool {
        let result = self.try_resize(pod, plan).await;
        let Err(error) = result else {
            return true;
        };
        let now = self.shared().clock.now();
        let generation = pod_fields::generation(pod);
        let is_news = {
            let conditions = &mut self.record.state().resize;
            resize::set_condition(conditions, IN_PROGRESS, ERROR, &error, generation, now)
        };
        if is_news {
            let message = resize::message("Pod resize error", pod, generation, &error);
            let note = Note::warning(reason::RESIZE_ERROR, message);
            self.shared().host.record(pod, note);
        }
        self.record.publish();
        false
    }

    async fn try_resize(&self, pod: &Arc<Pod>, plan: &Resize) -> Result<(), String> {
        let before = as_given(pod, &self.record.state().actuated);
        if !plan.memory.is_empty() || plan.changes_pod {
            self.check_memory(pod, &before, plan).await?;
            self.resize_one(pod, &before, Resource::Memory, &plan.memory)
                .await?;
        }
        if !plan.cpu.is_empty() || plan.changes_pod {
            self.resize_one(pod, &before, Resource::Cpu, &plan.cpu)
                .await?;
        }
        let pod_level = pod_fields::spec(pod).and_then(|spec| spec.resources.as_ref());
        self.record.state().actuated.pod = Amounts::of_requirements(pod_level);
        self.shared().host.pods_changed();
        Ok(())
    }

    async fn resize_one(
        &self,
        pod: &Arc<Pod>,
        before: &Pod,
        resource: Resource,
        updates: &[Update],
    ) -> Result<(), String> {
        let host = Arc::clone(&self.shared().host);
        let grows = sum(pod, resource) > sum(before, resource);
        if grows {
            let resized = host.resize_pod(pod, resource).await;
            resized.map_err(|error| error.message)?;
        }
        for update in updates {
            self.update(pod, resource, update).await?;
        }
        if !grows {
            let resized = host.resize_pod(pod, resource).await;
            resized.map_err(|error| error.message)?;
        }
        Ok(())
    }

    /// Changes one resource of a container; the other stays what it was given last.
    async fn update(&self, pod: &Pod, resource: Resource, update: &Update) -> Result<(), String> {
        let Some(part) = pod_fields::part(pod, &update.name) else {
            return Ok(());
        };
        let given = {
            let state = self.record.state();
            let given = state.actuated.containers.get(&update.name);
            given.copied().unwrap_or(update.current)
        };
        let wanted = update.desired;
        let amounts = match resource {
            Resource::Cpu => Amounts {
                cpu_request: wanted.cpu_request,
                cpu_limit: wanted.cpu_limit,
                ..given
            },
            Resource::Memory => Amounts {
                memory_request: wanted.memory_request,
                memory_limit: wanted.memory_limit,
                ..given
            },
        };
        let container = with_amounts(&part.container, amounts);
        let shared = self.shared();
        let resources = shared.host.container_resources(pod, &container);
        let updated = shared
            .runtime
            .update_container_resources(&update.id, &resources)
            .await;
        updated.map_err(|error| error.chain())?;
        let mut state = self.record.state();
        let given = &mut state.actuated.containers;
        given.insert(update.name.clone(), amounts);
        Ok(())
    }

    /// A limit below what is in use would kill processes, so it is not set.
    async fn check_memory(&self, pod: &Pod, before: &Pod, plan: &Resize) -> Result<(), String> {
        let (old, new) = (sum(before, Resource::Memory), sum(pod, Resource::Memory));
        let shrinks_pod = new < old;
        let shrinking: Vec<&Update> = plan
            .memory
            .iter()
            .filter(|update| {
                let (old, new) = (update.current.memory_limit, update.desired.memory_limit);
                new != Bytes::ZERO && (old == Bytes::ZERO || new < old)
            })
            .collect();
        if !shrinks_pod && shrinking.is_empty() {
            return Ok(());
        }
        let usage = self.shared().host.memory_usage(pod).await;
        let usage = usage.map_err(|_| {
            let pod = pod_fields::display_pod(pod);
            format!("unable to read memory usage for pod {pod:?}")
        })?;
        let mut problems = Vec::new();
        if let (true, Limit::Most(limit)) = (shrinks_pod, new) {
            match usage.pod {
                None => problems.push("missing pod memory usage".to_owned()),
                Some(used) if used.0 >= limit => problems.push(format!(
                    "attempting to set pod memory limit ({limit}) below current usage ({})",
                    used.0
                )),
                Some(_) => {}
            }
        }
        for update in shrinking {
            let (name, limit) = (&update.name, update.desired.memory_limit);
            match usage.containers.get(name) {
                None => problems.push(format!("missing container {name:?} memory usage")),
                Some(used) if *used >= limit => problems.push(format!(
                    "attempting to set container {name:?} memory limit ({}) below current usage ({})",
                    limit.0, used.0
                )),
                Some(_) => {}
            }
        }
        match problems.as_slice() {
            [] => Ok(()),
            [only] => Err(format!("cannot decrease memory limits: {only}")),
            all => Err(format!(
                "cannot decrease memory limits: [{}]",
                all.join(", ")
            )),
        }
    }

    /// Finds out what running containers were given before the agent was restarted. Shares are too
    /// coarse to be compared, so limits are compared.
    pub(super) fn adopt_resources(&self, pod: &Pod) {
        let host = &self.shared().host;
        let mut state = self.record.state();
        let state = &mut *state;
        for seen in &state.observed.containers {
            let reported = seen.resources.as_ref();
            let is_running = seen.state == State::Running;
            let (Some(reported), Some(part), true) =
                (reported, pod_fields::part(pod, &seen.name), is_running)
            else {
                continue;
            };
            let expected = host.container_resources(pod, &part.container);
            let Some(given) = state.actuated.containers.get_mut(&seen.name) else {
                continue;
            };
            let memory = reported.memory_limit_in_bytes;
            if memory > 0 && expected.memory_limit_in_bytes != memory {
                given.memory_limit = Bytes(memory);
            }
            let (quota, period) = (reported.cpu_quota, reported.cpu_period);
            if quota > 0 && period > 0 && expected.cpu_quota != quota {
                given.cpu_limit = Millicores(quota.saturating_mul(1000) / period);
            }
        }
    }
}

/// The most of something; no limit is more than any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Most(i64),
    None,
}

/// The limit of the whole pod.
fn sum(pod: &Pod, resource: Resource) -> Limit {
    let view = PodView::from_api(pod).unwrap_or_default();
    let limits = view.limits(Overhead::Included);
    let is_limited_everywhere = |name: &ResourceName| {
        let mut containers = view.containers.iter();
        view.has_pod_level_limits()
            || containers.all(|container| container.resources.limits.get(name).is_some())
    };
    let (name, amount) = match resource {
        Resource::Cpu => (
            ResourceName::CPU,
            Millicores::from_quantity(&limits.get_or_zero(&ResourceName::CPU)).0,
        ),
        Resource::Memory => (
            ResourceName::MEMORY,
            Bytes::from_quantity(&limits.get_or_zero(&ResourceName::MEMORY)).0,
        ),
    };
    match amount > 0 && is_limited_everywhere(&name) {
        true => Limit::Most(amount),
        false => Limit::None,
    }
}

/// The pod with what its containers were given last.
fn as_given(pod: &Pod, given: &Actuated) -> Pod {
    let mut pod = pod.clone();
    let spec = pod.spec.get_or_insert_default();
    let init = spec.init_containers.iter_mut().flatten();
    for container in init.chain(&mut spec.containers) {
        if let Some(amounts) = given.containers.get(&container.name) {
            *container = with_amounts(container, *amounts);
        }
    }
    if let Some(resources) = &mut spec.resources {
        put_amounts(resources, given.pod);
    }
    pod
}

fn with_amounts(container: &Container, amounts: Amounts) -> Container {
    let mut container = container.clone();
    put_amounts(container.resources.get_or_insert_default(), amounts);
    container
}

/// Zero stands for what is not stated.
fn put_amounts(resources: &mut ResourceRequirements, amounts: Amounts) {
    let cpu = |amount: Millicores| Quantity(amount.to_quantity().to_string());
    let memory = |amount: Bytes| Quantity(amount.to_quantity().to_string());
    for (list, cpu, memory) in [
        (
            &mut resources.requests,
            (amounts.cpu_request.0 > 0).then(|| cpu(amounts.cpu_request)),
            (amounts.memory_request.0 > 0).then(|| memory(amounts.memory_request)),
        ),
        (
            &mut resources.limits,
            (amounts.cpu_limit.0 > 0).then(|| cpu(amounts.cpu_limit)),
            (amounts.memory_limit.0 > 0).then(|| memory(amounts.memory_limit)),
        ),
    ] {
        for (name, amount) in [("cpu", cpu), ("memory", memory)] {
            match amount {
                Some(amount) => {
                    let list = list.get_or_insert_default();
                    list.insert(name.to_owned(), amount);
                }
                None => {
                    if let Some(list) = list.as_mut() {
                        list.remove(name);
                    }
                }
            }
        }
    }
}
