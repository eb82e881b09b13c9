//! The tasks for device plugins.

use std::sync::Arc;

use plimsoll_client::supervision::Weight;

use super::options::Options;
use super::run::Agent;
use crate::devices::pod_resources;

impl Agent {
    /// Serves the sockets for device plugins and for monitoring agents, and wakes the workers of pods
    /// when the health of their devices changes.
    pub(super) fn serve_device_plugins(&self, options: &Options) {
        let devices = self.host.devices.clone();
        self.supervisor
            .keep("devicePlugins", Weight::Minor, move || {
                let devices = devices.clone();
                async move {
                    match devices.serve().await {
                        Err(error) => Err(format!("device plugins cannot register: {error}")),
                    }
                }
            });
        let directory = options.directories.root.join(pod_resources::DIRECTORY);
        let (devices, pods) = (self.host.devices.clone(), self.pods.clone());
        self.supervisor
            .keep("podResources", Weight::Minor, move || {
                let (directory, devices, pods) = (directory.clone(), devices.clone(), pods.clone());
                async move {
                    let active = Arc::new(move || pods.active());
                    match pod_resources::serve(&directory, devices, active).await {
                        Err(error) => Err(format!("cannot serve the pod resources API: {error}")),
                    }
                }
            });
        let (devices, pods) = (self.host.devices.clone(), self.pods.clone());
        self.supervisor
            .keep("deviceHealth", Weight::Minor, move || {
                let (devices, pods) = (devices.clone(), pods.clone());
                async move {
                    loop {
                        for pod in devices.health_changes().await {
                            pods.wake(pod.as_str());
                        }
                    }
                }
            });
    }
}
