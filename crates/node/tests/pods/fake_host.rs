//! A host that records calls and changes nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Container, Node, Pod, ResourceStatus};
use plimsoll_core::admission::node_admit::PressureRule;
use plimsoll_core::object::node::NodeView;
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_node::pods::Host;
use plimsoll_node::pods::admission::{Facts, Rejection};
use plimsoll_node::pods::host::{ContainerRequest, HostError, MemoryUsage, PrepareError, Resource};
use plimsoll_node::pods::note::Note;
use plimsoll_node::pods::plan::Amounts;
use plimsoll_node::pods::spec::labels;
use plimsoll_runtime::wire::*;

/// The host.
#[derive(Debug, Default)]
pub(crate) struct FakeHost {
    notes: Mutex<Vec<Note>>,
    cleaned: Mutex<Vec<String>>,
    /// Uids of pods that have files or cgroups.
    pub(crate) left: Mutex<BTreeSet<String>>,
    /// Updates of pods' cgroups.
    pub(crate) resized: Mutex<Vec<Resource>>,
    /// Resources in use.
    pub(crate) memory: Mutex<MemoryUsage>,
    /// Why pods get no devices, if they get none.
    pub(crate) no_devices: Mutex<Option<Rejection>>,
    /// The devices of every container.
    pub(crate) devices: Mutex<Vec<ResourceStatus>>,
}

impl FakeHost {
    /// Reason and message of every event, in order.
    pub(crate) fn notes(&self) -> Vec<(String, String)> {
        let notes = self.notes.lock().unwrap();
        notes
            .iter()
            .map(|note| (note.reason.to_string(), note.message.clone()))
            .collect()
    }

    /// Reasons of events, in order.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.notes().into_iter().map(|(reason, _)| reason).collect()
    }

    /// Names of pods that were cleaned up.
    pub(crate) fn cleaned(&self) -> Vec<String> {
        self.cleaned.lock().unwrap().clone()
    }
}

#[async_trait]
impl Host for FakeHost {
    fn admission_facts(&self) -> Facts {
        let node: Node = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "110"}},
        }))
        .unwrap();
        Facts {
            node: Some(Arc::new(NodeView::from_api(&node).unwrap())),
            pressure: BTreeSet::new(),
            pressure_rule: PressureRule::V1_36,
            comparison: ComparisonOperators::Disabled,
            allowed_unsafe_sysctls: Vec::new(),
            confinement: Default::default(),
            has_strict_groups: false,
            is_shutting_down: false,
            devices: Default::default(),
        }
    }

    async fn network_problem(&self) -> Option<String> {
        None
    }

    fn host_ips(&self) -> Vec<IpAddr> {
        vec!["192.168.0.1".parse().unwrap()]
    }

    async fn allocate_devices(&self, _pod: &Pod) -> Result<(), Rejection> {
        self.no_devices.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn device_health(&self, _pod: &Pod, _container: &str) -> Vec<ResourceStatus> {
        self.devices.lock().unwrap().clone()
    }

    async fn prepare(&self, _pod: &Pod) -> Result<(), PrepareError> {
        Ok(())
    }

    async fn thaw(&self, _pod: &Pod) -> Result<(), HostError> {
        Ok(())
    }

    async fn clean_up(&self, pod: &Pod) -> Result<(), HostError> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        self.cleaned.lock().unwrap().push(name);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.left.lock().unwrap().remove(&uid);
        Ok(())
    }

    async fn leftovers(&self, known: BTreeSet<String>) -> BTreeSet<String> {
        &*self.left.lock().unwrap() - &known
    }

    async fn runtime_handler(&self, pod: &Pod) -> Result<String, HostError> {
        let spec = pod.spec.as_ref().unwrap();
        match spec.runtime_class_name.as_deref() {
            None => Ok(String::new()),
            Some("missing") => Err(HostError::new(
                "runtimeclass.node.k8s.io \"missing\" not found",
            )),
            Some(name) => Ok(format!("handler-of-{name}")),
        }
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<PodSandboxConfig, HostError> {
        let host_network = pod.spec.as_ref().unwrap().host_network == Some(true);
        let network = match host_network {
            true => NamespaceMode::Node,
            false => NamespaceMode::Pod,
        };
        Ok(PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: pod.metadata.name.clone().unwrap(),
                uid: pod.metadata.uid.clone().unwrap(),
                namespace: pod.metadata.namespace.clone().unwrap(),
                attempt,
            }),
            labels: labels::sandbox_labels(pod),
            linux: Some(LinuxPodSandboxConfig {
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(NamespaceOption {
                        network: network as i32,
                        ..NamespaceOption::default()
                    }),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        })
    }

    async fn container_config(
        &self,
        request: ContainerRequest<'_>,
    ) -> Result<ContainerConfig, HostError> {
        let ContainerRequest {
            pod,
            container,
            restart_count,
            ..
        } = request;
        Ok(ContainerConfig {
            metadata: Some(ContainerMetadata {
                name: container.name.clone(),
                attempt: restart_count,
            }),
            image: Some(request.image.clone()),
            labels: labels::container_labels(pod, container),
            annotations: labels::container_annotations(pod, container, restart_count),
            linux: Some(LinuxContainerConfig {
                resources: Some(self.container_resources(pod, container)),
                ..LinuxContainerConfig::default()
            }),
            ..ContainerConfig::default()
        })
    }

    async fn credentials(&self, _pod: &Pod, _image: &str) -> Result<Vec<AuthConfig>, HostError> {
        Ok(Vec::new())
    }

    fn container_resources(&self, pod: &Pod, container: &Container) -> LinuxContainerResources {
        let amounts = Amounts::of(pod, container);
        LinuxContainerResources {
            cpu_shares: amounts.cpu_request.0 * 1024 / 1000,
            cpu_quota: amounts.cpu_limit.0 * 100,
            cpu_period: 100_000,
            memory_limit_in_bytes: amounts.memory_limit.0,
            ..LinuxContainerResources::default()
        }
    }

    async fn resize_pod(&self, _pod: &Pod, resource: Resource) -> Result<(), HostError> {
        self.resized.lock().unwrap().push(resource);
        Ok(())
    }

    async fn memory_usage(&self, _pod: &Pod) -> Result<MemoryUsage, HostError> {
        Ok(self.memory.lock().unwrap().clone())
    }

    fn pods_changed(&self) {}

    fn record(&self, _pod: &Pod, note: Note) {
        self.notes.lock().unwrap().push(note);
    }
}
