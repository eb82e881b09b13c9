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
        let (devices, stop) = (self.host.devices.clone(), self.stop.clone());
        self.supervisor
            .keep("devicePlugins", Weight::Minor, move || {
                let (devices, stop) = (devices.clone(), stop.clone());
                async move {
                    match stop.run_until_cancelled(devices.serve()).await {
                        Some(Err(error)) => Err(format!("device plugins cannot register: {error}")),
                        None => Ok(()),
                    }
                }
            });
        let directory = options.directories.root.join(pod_resources::DIRECTORY);
        let (devices, pods) = (self.host.devices.clone(), self.pods.clone());
        let stop = self.stop.clone();
        self.supervisor
            .keep("podResources", Weight::Minor, move || {
                let (directory, devices, pods) = (directory.clone(), devices.clone(), pods.clone());
                let stop = stop.clone();
                async move {
                    let active = Arc::new(move || pods.active());
                    let serving = pod_resources::serve(&directory, devices, active);
                    match stop.run_until_cancelled(serving).await {
                        Some(Err(error)) => {
                            Err(format!("cannot serve the pod resources API: {error}"))
                        }
                        None => Ok(()),
                    }
                }
            });
        let (devices, pods) = (self.host.devices.clone(), self.pods.clone());
        let stop = self.stop.clone();
        self.supervisor
            .keep("deviceHealth", Weight::Minor, move || {
                let (devices, pods, stop) = (devices.clone(), pods.clone(), stop.clone());
                async move {
                    while let Some(changed) =
                        stop.run_until_cancelled(devices.health_changes()).await
                    {
                        for pod in changed {
                            pods.wake(pod.as_str());
                        }
                    }
                    Ok(())
                }
            });
    }
}
