//! What pod workers need of the node: cgroups, directories, volumes, configs, events.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Container, Node, Pod, ResourceStatus, Secret};
use plimsoll_client::events::{Recorder, reference};
use plimsoll_core::admission::node_admit::PressureRule;
use plimsoll_core::cgroup::ResourceConfig;
use plimsoll_core::cgroup::pod::pod_config;
use plimsoll_core::devices::PodDemand;
use plimsoll_core::error_chain::error_chain;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::{NodeCondition, NodeView};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::cgroup::NodeCgroups;
use plimsoll_runtime::wire::{
    AuthConfig, ContainerConfig, DnsConfig, LinuxContainerResources, PodSandboxConfig,
    UserNamespace,
};
use plimsoll_runtime::{self as runtime, Runtime};
use tokio::sync::{Notify, watch};

use super::credentials::credentials_for;
use super::user_namespaces::UserNamespaces;
use crate::devices::DeviceManager;
use crate::pod_fields;
use crate::pods::admission::{Confinement, Facts, Rejection};
use crate::pods::host::{ContainerRequest, Host, HostError, MemoryUsage, PrepareError, Resource};
use crate::pods::note::Note;
use crate::pods::spec::security::ImageUser;
use crate::pods::spec::{self, ContainerInput, NodeContext, resources};
use crate::stats::metrics::{CgroupOperation, KubeletMetrics};
use crate::volumes::{SourceError, Sources, VolumeError, Volumes};

/// The node, for its pods.
#[derive(Debug)]
pub(super) struct NodeHost {
    pub(super) facts: NodeContext,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) volumes: Arc<Volumes>,
    pub(super) cgroups: Arc<NodeCgroups>,
    pub(super) user_namespaces: Arc<UserNamespaces>,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) metrics: Arc<KubeletMetrics>,
    pub(super) recorder: Recorder,
    /// What the node's resolv.conf says.
    pub(super) resolver: Option<DnsConfig>,
    /// Why the network of pods is not ready, as the runtime last said.
    pub(super) network_problem: Mutex<Option<String>>,
    /// The node as the API has it.
    pub(super) node: watch::Receiver<Option<Arc<Node>>>,
    /// Pressure conditions that hold.
    pub(super) pressure: watch::Sender<BTreeSet<NodeCondition>>,
    pub(super) pressure_rule: PressureRule,
    /// `allowedUnsafeSysctls`.
    pub(super) allowed_unsafe_sysctls: Vec<String>,
    pub(super) confinement: Confinement,
    /// Whether the machine is about to be switched off.
    pub(super) shutting_down: watch::Sender<bool>,
    /// Requests an update of the QoS cgroups.
    pub(super) pods_changed: Arc<Notify>,
    pub(super) devices: DeviceManager,
}

impl NodeHost {
    /// Takes what the runtime says of its network.
    pub(super) fn set_network_problem(&self, problem: Option<String>) {
        *self
            .network_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Has an event about a pod written.
    pub(super) fn record_note(&self, pod: &Pod, note: &Note) {
        self.recorder.record_note(reference(pod), note.clone());
    }

    /// Runs something that changes cgroups, and counts it.
    async fn change_cgroups(
        &self,
        operation: CgroupOperation,
        work: impl FnOnce(&NodeCgroups) -> Result<(), plimsoll_runtime::cgroup::Error> + Send + 'static,
    ) -> Result<(), HostError> {
        let begun = Instant::now();
        let done = self.with_cgroups(work).await;
        self.metrics.cgroup_changed(operation, begun.elapsed());
        done
    }

    /// Runs something that blocks on the kernel with the cgroups.
    async fn with_cgroups<T: Send + 'static>(
        &self,
        work: impl FnOnce(&NodeCgroups) -> Result<T, plimsoll_runtime::cgroup::Error> + Send + 'static,
    ) -> Result<T, HostError> {
        let cgroups = Arc::clone(&self.cgroups);
        let done = tokio::task::spawn_blocking(move || work(&cgroups)).await;
        let done = done.map_err(|_| HostError::new("the agent is stopping"))?;
        done.map_err(|error| HostError::new(error_chain(&error)))
    }

    async fn user_namespace(&self, pod: &Pod) -> Result<UserNamespace, HostError> {
        let found = self.user_namespaces.of(pod, &*self.runtime).await;
        found.map_err(|error| HostError::new(error_chain(&error)))
    }

    fn make_directories(&self, pod: &Pod) -> std::io::Result<()> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let directory = self.facts.pod_dir(uid);
        for part in ["volumes", "plugins"] {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o750)
                .create(directory.join(part))?;
        }
        Ok(())
    }
}

fn view(pod: &Pod) -> Result<PodView, HostError> {
    PodView::from_api(pod).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        HostError::new(problems.join("; "))
    })
}

/// The pod with this container in place of its own of that name. While a pod is resized step by
/// step, a container has not yet all that the pod requests.
fn with_container(pod: &Pod, container: &Container) -> Pod {
    let mut pod = pod.clone();
    let spec = pod.spec.get_or_insert_default();
    let all = spec.init_containers.iter_mut().flatten();
    for own in all.chain(&mut spec.containers) {
        if own.name == container.name {
            *own = container.clone();
        }
    }
    pod
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

#[async_trait]
impl Host for NodeHost {
    fn admission_facts(&self) -> Facts {
        let node = self.node.borrow().clone();
        let node = node.and_then(|node| NodeView::from_api(&node).ok());
        Facts {
            node: node.map(Arc::new),
            pressure: self.pressure.borrow().clone(),
            pressure_rule: self.pressure_rule,
            comparison: ComparisonOperators::Disabled,
            allowed_unsafe_sysctls: self.allowed_unsafe_sysctls.clone(),
            confinement: self.confinement,
            has_strict_groups: false,
            is_shutting_down: *self.shutting_down.borrow(),
            devices: self.devices.devices(),
        }
    }

    async fn network_problem(&self) -> Option<String> {
        self.network_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn host_ips(&self) -> Vec<IpAddr> {
        self.facts.ips.clone()
    }

    async fn allocate_devices(&self, pod: &Pod) -> Result<(), Rejection> {
        let demand = PodDemand::from_api(pod);
        let allocated = self.devices.allocate_pod(&demand).await;
        allocated.map_err(|problem| Rejection::of_devices(&problem))
    }

    fn device_health(&self, pod: &Pod, container: &str) -> Vec<ResourceStatus> {
        self.devices.health(uid(pod), container)
    }

    async fn prepare(&self, pod: &Pod) -> Result<(), PrepareError> {
        let cgroup = |source| PrepareError::Cgroup {
            uid: uid(pod).to_owned(),
            source,
        };
        let planned = view(pod).map_err(cgroup)?;
        let made = self
            .change_cgroups(CgroupOperation::Create, move |cgroups| {
                cgroups.ensure_pod(&planned).map(drop)
            })
            .await;
        made.map_err(cgroup)?;
        // The tier above it has a share to give for it.
        self.pods_changed.notify_one();
        let directories = self.make_directories(pod);
        directories
            .map_err(|error| PrepareError::Directories(HostError::new(error.to_string())))?;
        match self.volumes.mount(pod).await {
            Ok(mounted) => {
                for warning in mounted.warnings {
                    self.record_note(pod, &Note::warning("FailedMount", warning));
                }
                Ok(())
            }
            Err(error) => {
                for event in error.events() {
                    self.record_note(pod, &Note::warning("FailedMount", event));
                }
                Err(PrepareError::Volumes(HostError::new(error_chain(&error))))
            }
        }
    }

    async fn thaw(&self, pod: &Pod) -> Result<(), HostError> {
        let uid = PodUid::from(uid(pod));
        self.with_cgroups(move |cgroups| cgroups.cgroups().thaw_pod(&uid))
            .await
    }

    async fn clean_up(&self, pod: &Pod) -> Result<(), HostError> {
        let failed = |error: VolumeError| HostError::new(error_chain(&error));
        self.volumes
            .remove_pod_dir(uid(pod))
            .await
            .map_err(failed)?;
        let cgroup = PodUid::from(uid(pod));
        let removed = self.change_cgroups(CgroupOperation::Destroy, move |cgroups| {
            cgroups.cgroups().remove_pod(&cgroup)
        });
        removed.await?;
        self.devices.release(uid(pod)).await;
        self.user_namespaces.release(uid(pod));
        self.pods_changed.notify_one();
        Ok(())
    }

    async fn leftovers(&self, known: BTreeSet<String>) -> BTreeSet<String> {
        let on_disk = self.volumes.pods_on_disk().into_iter();
        let mut left: BTreeSet<String> = on_disk.filter(|uid| !known.contains(uid)).collect();
        left.extend(self.devices.pods().difference(&known).cloned());
        let is_known = move |uid: &PodUid| known.contains(uid.as_str());
        let cgroups = self.with_cgroups(move |cgroups| cgroups.cgroups().empty_pods(is_known));
        match cgroups.await {
            Ok(found) => left.extend(found.iter().map(|uid| uid.as_str().to_owned())),
            Err(error) => tracing::warn!(%error, "failed to list cgroups of pods"),
        }
        left
    }

    /// Matches v1.36 pkg/kubelet/runtimeclass/runtimeclass_manager.go, `LookupRuntimeHandler`.
    async fn runtime_handler(&self, pod: &Pod) -> Result<String, HostError> {
        let spec = pod.spec.as_ref();
        let name = spec.and_then(|spec| spec.runtime_class_name.as_deref());
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(String::new());
        };
        match self.sources.runtime_class(name).await {
            Ok(class) => Ok(class.map(|class| class.handler).unwrap_or_default()),
            Err(SourceError::NotFound { .. }) => Err(HostError::new(format!(
                "runtimeclass.node.k8s.io \"{name}\" not found"
            ))),
            Err(error) => Err(HostError::new(format!(
                "failed to lookup RuntimeClass {name}: {error}"
            ))),
        }
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<PodSandboxConfig, HostError> {
        let resolver = self.resolver.as_ref();
        let users = self.user_namespace(pod).await?;
        let sandbox = spec::sandbox_config(&self.facts, pod, attempt, resolver, &users);
        let sandbox = sandbox.map_err(|error| HostError::new(error_chain(&error)))?;
        for warning in sandbox.warnings {
            self.record_note(pod, &Note::warning(warning.reason, warning.message));
        }
        Ok(sandbox.config)
    }

    async fn container_config(
        &self,
        request: ContainerRequest<'_>,
    ) -> Result<ContainerConfig, HostError> {
        let image = self.runtime.image_status(request.image).await;
        let image = image.map_err(|error: runtime::Error| HostError::new(error.chain()))?;
        let volumes = self.volumes.mounted(uid(request.pod));
        let users = self.user_namespace(request.pod).await?;
        let demand = PodDemand::from_api(request.pod);
        let devices = self
            .devices
            .container_settings(&demand, &request.container.name);
        let devices = devices.await.map_err(HostError::new)?;
        let input = ContainerInput {
            devices: &devices,
            pod: request.pod,
            container: request.container,
            attempt: request.restart_count,
            pod_ips: request.pod_ips,
            image_ref: &request.image.image,
            image_user: ImageUser::from_image(image.as_ref()),
            volumes: &volumes,
            target_id: request.target,
            user_namespace: &users,
        };
        let config = spec::container_config(&self.facts, &*self.sources, &input).await;
        config.map_err(|error| HostError::new(error_chain(&error)))
    }

    async fn credentials(&self, pod: &Pod, image: &str) -> Result<Vec<AuthConfig>, HostError> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let spec = pod.spec.as_ref();
        let names = spec.and_then(|spec| spec.image_pull_secrets.as_ref());
        let mut secrets: Vec<Arc<Secret>> = Vec::new();
        for name in names.into_iter().flatten() {
            match self.sources.secret(namespace, &name.name).await {
                Ok(secret) => secrets.push(secret),
                // A pull without it may still work; upstream records an event and continues.
                Err(error) => {
                    let message = format!(
                        "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                        name.name
                    );
                    tracing::debug!(pod = %pod_fields::display_pod(pod), %error, "image pull secret not found");
                    self.record_note(
                        pod,
                        &Note::warning("FailedToRetrieveImagePullSecret", message),
                    );
                }
            }
        }
        Ok(credentials_for(image, &secrets))
    }

    fn container_resources(&self, pod: &Pod, container: &Container) -> LinuxContainerResources {
        let planned = PodView::from_api(&with_container(pod, container)).unwrap_or_default();
        resources::linux_resources(&planned, &container.name, &self.facts.container_settings)
    }

    async fn resize_pod(&self, pod: &Pod, resource: Resource) -> Result<(), HostError> {
        let planned = view(pod)?;
        let written = self.change_cgroups(CgroupOperation::Update, move |cgroups| {
            let name = cgroups.cgroups().pod_name(&planned)?;
            let path = cgroups.cgroups().path(&name);
            let whole = pod_config(&planned, cgroups.pod_settings());
            let config = match resource {
                Resource::Cpu => ResourceConfig {
                    cpu_shares: whole.cpu_shares,
                    cpu_quota: whole.cpu_quota,
                    cpu_period: whole.cpu_period,
                    ..ResourceConfig::default()
                },
                Resource::Memory => ResourceConfig {
                    memory: whole.memory,
                    ..ResourceConfig::default()
                },
            };
            cgroups.cgroups().write(&path, &config).map(drop)
        });
        written.await?;
        self.pods_changed.notify_one();
        Ok(())
    }

    async fn memory_usage(&self, pod: &Pod) -> Result<MemoryUsage, HostError> {
        let planned = view(pod)?;
        let used = self.with_cgroups(move |cgroups| {
            let name = cgroups.cgroups().pod_name(&planned)?;
            cgroups
                .cgroups()
                .memory_usage(&cgroups.cgroups().path(&name))
        });
        let stats = self.runtime.list_container_stats().await;
        let stats = stats.map_err(|error| HostError::new(error.chain()))?;
        let label = |labels: &std::collections::BTreeMap<String, String>, name: &str| {
            labels.get(name).cloned().unwrap_or_default()
        };
        let containers = stats.into_iter().filter_map(|stats| {
            let attributes = stats.attributes?;
            let is_ours = label(&attributes.labels, "io.kubernetes.pod.uid") == uid(pod);
            let used = stats.memory?.usage_bytes.map(|bytes| bytes.value);
            let used = used.and_then(|bytes| i64::try_from(bytes).ok())?;
            let name = label(&attributes.labels, "io.kubernetes.container.name");
            is_ours.then_some((name, Bytes(used)))
        });
        Ok(MemoryUsage {
            containers: containers.collect(),
            pod: Some(used.await?),
        })
    }

    fn pods_changed(&self) {
        self.pods_changed.notify_one();
    }

    fn record(&self, pod: &Pod, note: Note) {
        self.record_note(pod, &note);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    #[test]
    fn a_container_that_is_resized_halfway_counts_as_it_is() {
        let named = |name: &str, image: &str| Container {
            name: name.to_owned(),
            image: Some(image.to_owned()),
            ..Container::default()
        };
        let pod = Pod {
            spec: Some(PodSpec {
                containers: vec![named("a", "old"), named("b", "old")],
                init_containers: Some(vec![named("c", "old")]),
                ..PodSpec::default()
            }),
            ..Pod::default()
        };
        let images = |pod: &Pod| -> Vec<String> {
            let spec = pod.spec.clone().unwrap_or_default();
            let all = spec.containers.into_iter();
            let all = all.chain(spec.init_containers.into_iter().flatten());
            all.filter_map(|container| container.image).collect()
        };
        let changed = with_container(&pod, &named("b", "new"));
        assert_eq!(images(&changed), ["old", "new", "old"]);
        let changed = with_container(&pod, &named("c", "new"));
        assert_eq!(images(&changed), ["old", "old", "new"]);
    }
}
