//! Asking the runtime what it has of a pod.

use std::collections::BTreeMap;

use plimsoll_runtime::wire::{ContainerFilter, ContainerState, PodSandboxFilter};
use plimsoll_runtime::{Error, Runtime};

use super::ending;
use super::observed::{Container, Observed, Sandbox, State};
use super::spec::labels;

/// Reads the sandboxes and containers of a pod. What has ended does not change, so that it is
/// taken from what was `known` before.
pub(super) async fn look(
    runtime: &dyn Runtime,
    uid: &str,
    known: &Observed,
) -> Result<Observed, Error> {
    let selector = BTreeMap::from([(labels::POD_UID.to_owned(), uid.to_owned())]);
    let filter = PodSandboxFilter {
        label_selector: selector.clone(),
        ..PodSandboxFilter::default()
    };
    let mut sandboxes = Vec::new();
    for listed in runtime.list_pod_sandboxes(&filter).await? {
        // What is removed between list and status is simply not there.
        match runtime.pod_sandbox_status(&listed.id).await {
            Ok(status) => sandboxes.push(Sandbox::from_wire(&status)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let filter = ContainerFilter {
        label_selector: selector,
        ..ContainerFilter::default()
    };
    let mut containers = Vec::new();
    for listed in runtime.list_containers(&filter).await? {
        let mut ended = known.containers.iter().filter(|c| c.state == State::Exited);
        if listed.state == ContainerState::ContainerExited as i32
            && let Some(known) = ended.find(|known| known.id == listed.id)
        {
            containers.push(known.clone());
            continue;
        }
        match runtime.container_status(&listed.id).await {
            Ok(status) => {
                let mut container = Container::from_wire(&status, &listed.pod_sandbox_id);
                ending::add_message(&mut container).await;
                containers.push(container);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Observed::new(sandboxes, containers))
}
