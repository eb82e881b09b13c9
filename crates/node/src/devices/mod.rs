//! Device plugins: processes that offer devices of the node to containers.
//!
//! Plugins register at a socket in the directory `device-plugins` of the kubelet's root directory.
//! The agent then watches their devices, and calls them when a container gets some. Which container
//! gets which device is decided by [`plimsoll_core::devices`].
//!
//! Reading order: this file (the state and its changes), `registration` (the socket), [`standard_path`]
//! (where plugins look for it), `allocate` (devices for containers), `plugin` (calls to a plugin),
//! [`wire`] (the messages), `translate` (from and to core's terms), `checkpoint` (what survives a
//! restart), [`pod_resources`] (which container has which device, for monitoring agents), `grpc`
//! (servers at sockets). Matches v1.36 pkg/kubelet/cm/devicemanager.

mod allocate;
mod checkpoint;
mod grpc;
mod plugin;
pub mod pod_resources;
mod registration;
pub mod standard_path;
#[cfg(test)]
mod tests;
mod translate;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{ResourceHealth, ResourceStatus};
use plimsoll_client::clock::Clock;
use plimsoll_core::allocatable::DevicePlugins;
use plimsoll_core::devices::Devices;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::resources::ResourceName;
use tokio::sync::Notify;
use tonic::Streaming;

use plugin::PluginClient;
use wire::ListAndWatchResponse;

/// The directory of the registration socket, below the kubelet's root directory.
pub const DIRECTORY: &str = "device-plugins";

/// The devices of the node. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct DeviceManager(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    clock: Clock,
    state: Mutex<State>,
    /// Held while a container is given its devices: a device is chosen before its plugin has prepared
    /// it, and nothing else may choose it in between.
    allocating: tokio::sync::Mutex<()>,
    /// Held while the checkpoint is written, so that the last one written is the newest.
    writing: Mutex<()>,
    /// Notified when there are pods in [`State::changed`].
    health_changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    devices: Devices,
    connections: BTreeMap<ResourceName, Connection>,
    /// How many connections there have been.
    serial: u64,
    /// Pods that have devices of which another health is known than before.
    changed: BTreeSet<PodUid>,
}

#[derive(Debug)]
struct Connection {
    client: PluginClient,
    serial: u64,
}

impl DeviceManager {
    /// The devices as an earlier agent has left them in the directory.
    pub fn open(directory: PathBuf, clock: Clock) -> io::Result<DeviceManager> {
        registration::clean_directory(&directory)?;
        let devices = checkpoint::read(&directory, clock.steady()).unwrap_or_else(|error| {
            tracing::error!(
                directory = %directory.display(), %error,
                "failed to read checkpoint of device allocations; they are forgotten"
            );
            Devices::default()
        });
        let state = State {
            devices,
            ..State::default()
        };
        Ok(DeviceManager(Arc::new(Inner {
            directory,
            clock,
            state: Mutex::new(state),
            allocating: tokio::sync::Mutex::default(),
            writing: Mutex::default(),
            health_changed: Notify::new(),
        })))
    }

    /// Lets plugins register until the future is dropped.
    pub async fn serve(&self) -> io::Result<Infallible> {
        registration::serve(self.clone()).await
    }

    /// The state at the moment.
    pub fn devices(&self) -> Devices {
        self.state().devices.clone()
    }

    /// The resources for the node's status.
    pub fn resources(&self) -> DevicePlugins {
        let now = self.0.clock.steady();
        let mut state = self.state();
        let has_expired = state.devices.expire(now);
        let resources = state.devices.resources();
        drop(state);
        if has_expired {
            tokio::spawn(self.clone().save());
        }
        resources
    }

    /// Frees the devices of a pod of which nothing runs any more.
    pub async fn release(&self, pod: &str) {
        if self.state().devices.release(&PodUid::from(pod)) {
            self.clone().save().await;
        }
    }

    /// The uids of the pods that have devices.
    pub fn pods(&self) -> BTreeSet<String> {
        let state = self.state();
        state.devices.pods().map(ToString::to_string).collect()
    }

    /// Waits until another health is known of devices that pods have; returns the uids of the pods.
    pub async fn health_changes(&self) -> BTreeSet<PodUid> {
        loop {
            let notified = self.0.health_changed.notified();
            let changed = std::mem::take(&mut self.state().changed);
            if !changed.is_empty() {
                return changed;
            }
            notified.await;
        }
    }

    /// The health of a container's devices (`allocatedResourcesStatus`).
    pub fn health(&self, pod: &str, container: &str) -> Vec<ResourceStatus> {
        let state = self.state();
        let pod = PodUid::from(pod);
        let allocations = state.devices.of_container(&pod, container);
        let statuses = allocations.map(|allocation| {
            let health = allocation.devices.keys().map(|id| {
                let is_healthy = state.devices.is_healthy(&allocation.resource, id);
                let health = if is_healthy { "Healthy" } else { "Unhealthy" };
                ResourceHealth {
                    resource_id: id.clone(),
                    health: Some(health.to_owned()),
                    ..ResourceHealth::default()
                }
            });
            ResourceStatus {
                name: allocation.resource.to_string(),
                resources: Some(health.collect()),
            }
        });
        statuses.collect()
    }

    fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Connects to the plugin of a resource, in place of the one before, and watches its devices.
    async fn connect(&self, resource: ResourceName, socket: &Path) -> Result<(), String> {
        let client = PluginClient::connect(socket).await?;
        let options = client.options().await;
        let options =
            options.map_err(|error| format!("failed to get device plugin options: {error}"))?;
        let mut state = self.state();
        state
            .devices
            .registered(&resource, translate::options(options));
        state.serial += 1;
        let serial = state.serial;
        let connection = Connection {
            client: client.clone(),
            serial,
        };
        state.connections.insert(resource.clone(), connection);
        drop(state);
        tracing::info!(resource = resource.as_str(), "registered device plugin");
        let manager = self.clone();
        tokio::spawn(async move {
            let problem = match client.devices().await {
                Ok(lists) => manager.watch(&resource, serial, lists).await,
                Err(status) => status.message().to_owned(),
            };
            manager.disconnect(&resource, serial, &problem).await;
        });
        Ok(())
    }

    /// Takes the lists of a plugin until it ends or another has taken its place; returns why.
    async fn watch(
        &self,
        resource: &ResourceName,
        serial: u64,
        mut lists: Streaming<ListAndWatchResponse>,
    ) -> String {
        loop {
            let list = match lists.message().await {
                Ok(Some(list)) => list,
                Ok(None) => return "the plugin has ended the stream".to_owned(),
                Err(status) => return status.message().to_owned(),
            };
            if !self.take_list(resource, serial, list) {
                return "the plugin has registered again".to_owned();
            }
            self.clone().save().await;
        }
    }

    /// Takes a list; returns whether it is that of the current plugin.
    fn take_list(&self, resource: &ResourceName, serial: u64, list: ListAndWatchResponse) -> bool {
        let mut state = self.state();
        if !state.is_current(resource, serial) {
            return false;
        }
        let devices = list.devices.into_iter().map(translate::device).collect();
        let changed = state.devices.listed(resource, devices);
        state.changed.extend(changed);
        self.0.health_changed.notify_one();
        true
    }

    async fn disconnect(&self, resource: &ResourceName, serial: u64, problem: &str) {
        if !self.forget_connection(resource, serial) {
            return;
        }
        tracing::warn!(
            resource = resource.as_str(),
            error = problem,
            "ListAndWatch of device plugin ended; its devices are unhealthy"
        );
        self.clone().save().await;
    }

    /// Forgets a connection that has ended; returns whether it was the current one.
    fn forget_connection(&self, resource: &ResourceName, serial: u64) -> bool {
        let now = self.0.clock.steady();
        let mut state = self.state();
        if !state.is_current(resource, serial) {
            return false;
        }
        state.connections.remove(resource);
        let changed = state.devices.disconnected(resource, now);
        state.changed.extend(changed);
        self.0.health_changed.notify_one();
        true
    }

    /// Writes the checkpoint.
    async fn save(self) {
        let saved = tokio::task::spawn_blocking(move || {
            let _writing = self
                .0
                .writing
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let devices = self.devices();
            checkpoint::write(self.directory(), &devices)
        });
        if let Ok(Err(error)) = saved.await {
            tracing::error!(%error, "failed to write checkpoint of device allocations");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_current(&self, resource: &ResourceName, serial: u64) -> bool {
        let connection = self.connections.get(resource);
        connection.is_some_and(|connection| connection.serial == serial)
    }
}
