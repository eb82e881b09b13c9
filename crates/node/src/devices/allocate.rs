//! Devices for containers.

use plimsoll_core::devices::{
    Allocation, Candidates, ContainerDemand, ContainerSettings, PluginOptions, PodDemand, Request,
};
use plimsoll_core::resources::ResourceName;

use super::plugin::PluginClient;
use super::wire::ContainerPreferredAllocationRequest;
use super::{DeviceManager, translate};

/// What becomes of devices that a container has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Their plugin has to be there, and they have to be healthy.
    Checked,
    /// They are kept as they are: the container was started with them before.
    Kept,
}

impl DeviceManager {
    /// Gives all containers of a pod of which nothing runs their devices.
    pub async fn allocate_pod(&self, pod: &PodDemand) -> Result<(), String> {
        let mut has_allocated = false;
        for container in &pod.containers {
            if !container.limits.is_empty() {
                has_allocated |= self.allocate(pod, container, Known::Checked).await?;
            }
        }
        if has_allocated {
            self.clone().save().await;
        }
        Ok(())
    }

    /// Gives a container its devices; returns whether it did not have them all already.
    async fn allocate(
        &self,
        pod: &PodDemand,
        container: &ContainerDemand,
        known: Known,
    ) -> Result<bool, String> {
        let requests = self.state().devices.requests(pod, container);
        let mut has_allocated = false;
        for request in requests {
            let _allocating = self.0.allocating.lock().await;
            let (candidates, plugin, options) = {
                let state = self.state();
                if known == Known::Kept && state.devices.allocated(request).is_some() {
                    continue;
                }
                let candidates = state.devices.candidates(request);
                let connection = state.connections.get(request.resource);
                let plugin = connection.map(|connection| connection.client.clone());
                let options = state.devices.options(request.resource);
                (candidates, plugin, options.unwrap_or_default())
            };
            let Some(candidates) = candidates.map_err(|error| error.to_string())? else {
                continue;
            };
            let plugin = plugin.ok_or_else(|| stopped(request.resource))?;
            let mut allocation = prepare(request, &candidates, &plugin, options).await?;
            let mut state = self.state();
            for (id, nodes) in &mut allocation.devices {
                *nodes = state.devices.numa_nodes(request.resource, id).to_vec();
            }
            state.devices.allocate(allocation);
            has_allocated = true;
        }
        Ok(has_allocated)
    }

    /// What a container that is about to be made gets for its devices, once their plugins have
    /// prepared them for the start.
    pub async fn container_settings(
        &self,
        pod: &PodDemand,
        name: &str,
    ) -> Result<ContainerSettings, String> {
        let container = pod
            .containers
            .iter()
            .find(|container| container.name == name);
        let Some(container) = container.filter(|container| !container.limits.is_empty()) else {
            return Ok(ContainerSettings::default());
        };
        if self.allocate(pod, container, Known::Kept).await? {
            self.clone().save().await;
        }
        let requests = self.state().devices.requests(pod, container);
        for request in requests {
            self.pre_start(request).await?;
        }
        let state = self.state();
        Ok(state.devices.settings(&pod.pod, name))
    }

    async fn pre_start(&self, request: Request<'_>) -> Result<(), String> {
        let (plugin, devices) = {
            let state = self.state();
            let options = state.devices.options(request.resource).unwrap_or_default();
            if !options.pre_start_required {
                return Ok(());
            }
            let allocation = state.devices.allocated(request);
            let devices = allocation.map(|allocation| allocation.devices.keys().cloned().collect());
            let devices = devices.ok_or_else(|| without_devices(request))?;
            let connection = state.connections.get(request.resource);
            let plugin = connection.map(|connection| connection.client.clone());
            (plugin.ok_or_else(|| stopped(request.resource))?, devices)
        };
        let started = plugin.pre_start(devices).await;
        started.map_err(|error| {
            format!("device plugin PreStartContainer rpc failed with err: {error}")
        })
    }
}

/// Chooses devices and has their plugin prepare them.
async fn prepare(
    request: Request<'_>,
    candidates: &Candidates,
    plugin: &PluginClient,
    options: PluginOptions,
) -> Result<Allocation, String> {
    let mut preferred = Vec::new();
    if options.prefers_devices && !candidates.available.is_empty() {
        let asked = plugin.preferred(ContainerPreferredAllocationRequest {
            available_device_ids: (candidates.available.union(&candidates.reused))
                .cloned()
                .collect(),
            must_include_device_ids: candidates.reused.iter().cloned().collect(),
            allocation_size: i32::try_from(candidates.count).unwrap_or(i32::MAX),
        });
        preferred = asked.await.map_err(|error| {
            format!("device plugin GetPreferredAllocation rpc failed with err: {error}")
        })?;
    }
    let chosen = candidates.choose(&preferred);
    let answer = plugin.allocate(chosen.iter().cloned().collect()).await?;
    let mut allocation = request.allocation();
    allocation.devices = chosen.into_iter().map(|id| (id, Vec::new())).collect();
    allocation.settings = translate::settings(answer);
    Ok(allocation)
}

fn stopped(resource: &ResourceName) -> String {
    format!("endpoint {resource} has been stopped")
}

fn without_devices(request: Request<'_>) -> String {
    format!(
        "no devices found allocated in local cache for pod {}, container {}, resource {}",
        request.pod.pod, request.container.name, request.resource
    )
}
