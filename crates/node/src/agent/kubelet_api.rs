//! The agent as the kubelet API shows it to clients that read logs, metrics and pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::lines::LinesRecord;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::resources::ResourceList;
use plimsoll_core::threshold::Signal;
use plimsoll_runtime::wire::{ContainerFilter, ContainerState, PodSandboxFilter, PodSandboxState};
use plimsoll_runtime::{self as runtime, Runtime};
use serde_json::Value;

use super::measure::Meter;
use super::options::Options;
use super::ranking::ranking;
use super::vitals::Vitals;
use crate::eviction::Journal;
use crate::pods::Pods;
use crate::server::{Metrics, Node, Trouble};

/// The agent behind the kubelet API.
#[derive(Debug)]
pub(super) struct KubeletApi {
    pods: Pods,
    runtime: Arc<dyn Runtime>,
    meter: Arc<Meter>,
    vitals: Vitals,
    configuration: Value,
}

impl KubeletApi {
    pub(super) fn new(
        pods: Pods,
        runtime: Arc<dyn Runtime>,
        meter: Arc<Meter>,
        vitals: Vitals,
        options: &Options,
    ) -> KubeletApi {
        KubeletApi {
            pods,
            runtime,
            meter,
            vitals,
            configuration: configuration(options),
        }
    }
}

/// The configuration in effect, as `/configz` shows it.
fn configuration(options: &Options) -> Value {
    let config = &options.config;
    let amounts = |list: &ResourceList| -> BTreeMap<String, String> {
        let amounts = list.iter();
        amounts
            .map(|(name, amount)| (name.to_string(), amount.to_string()))
            .collect()
    };
    let enforced = config.enforce_node_allocatable.iter().map(|by| by.as_str());
    serde_json::json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "kubeReserved": amounts(&config.kube_reserved),
            "systemReserved": amounts(&config.system_reserved),
            "enforceNodeAllocatable": enforced.collect::<Vec<_>>(),
            "evictionPressureTransitionPeriod":
                config.eviction_pressure_transition_period.to_string(),
            "evictionHard": config.eviction_hard.value,
            "evictionSoft": config.eviction_soft.value,
            "evictionSoftGracePeriod": config.eviction_soft_grace_period.value,
            "evictionMinimumReclaim": config.eviction_minimum_reclaim.value,
            "evictionMaxPodGracePeriod": config.eviction_max_pod_grace_period.value,
            "maxPods": config.max_pods.value,
            "podsPerCore": config.pods_per_core.value,
            "cgroupRoot": config.cgroup_root.value,
            "cgroupsPerQOS": config.cgroups_per_qos.value,
            "cgroupDriver": config.cgroup_driver.to_string(),
            "failSwapOn": config.fail_swap_on.value,
            "staticPodPath": config.static_pod_path.value,
            "nodeLeaseDurationSeconds": config.node_lease_duration_seconds.value,
    })
}

#[async_trait]
impl Node for KubeletApi {
    fn pods(&self) -> Vec<Arc<Pod>> {
        let reports = self.pods.reports().all().into_iter();
        let shown = reports.map(|report| {
            let mut pod = Pod::clone(&report.pod);
            pod.status = Some((*report.status).clone());
            Arc::new(pod)
        });
        shown.collect()
    }

    async fn running_pods(&self) -> Result<Vec<Pod>, runtime::Error> {
        let sandboxes = self
            .runtime
            .list_pod_sandboxes(&PodSandboxFilter::default())
            .await?;
        let containers = self
            .runtime
            .list_containers(&ContainerFilter::default())
            .await?;
        let mut by_sandbox: BTreeMap<String, Vec<Container>> = BTreeMap::new();
        for container in containers {
            if container.state() != ContainerState::ContainerRunning {
                continue;
            }
            let name = container.metadata.map(|metadata| metadata.name);
            by_sandbox
                .entry(container.pod_sandbox_id)
                .or_default()
                .push(Container {
                    name: name.unwrap_or_default(),
                    image: container.image.map(|image| image.image),
                    ..Container::default()
                });
        }
        let ready = |sandbox: &plimsoll_runtime::wire::PodSandbox| {
            sandbox.state() == PodSandboxState::SandboxReady
        };
        let pods = sandboxes.into_iter().filter(ready).map(|sandbox| {
            let metadata = sandbox.metadata.unwrap_or_default();
            Pod {
                metadata: ObjectMeta {
                    name: Some(metadata.name),
                    namespace: Some(metadata.namespace),
                    uid: Some(metadata.uid),
                    ..ObjectMeta::default()
                },
                spec: Some(PodSpec {
                    containers: by_sandbox.remove(&sandbox.id).unwrap_or_default(),
                    ..PodSpec::default()
                }),
                status: None,
            }
        });
        Ok(pods.collect())
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn summary(&self, only_cpu_and_memory: bool) -> Result<Vec<u8>, Trouble> {
        let summary = match only_cpu_and_memory {
            true => self.meter.cpu_and_memory(),
            false => self.meter.summary(),
        };
        Ok(serde_json::to_vec_pretty(&summary.for_clients())?)
    }

    async fn metrics(&self, page: Metrics) -> Result<String, Trouble> {
        Ok(match page {
            Metrics::Agent => self.meter.agent_metrics(),
            Metrics::Resource => self.meter.resource_metrics(),
            Metrics::Cadvisor => self.meter.cadvisor_metrics(),
            Metrics::Probes => String::new(),
        })
    }

    fn configuration(&self) -> Value {
        self.configuration.clone()
    }

    fn decisions(&self) -> Vec<Arc<Record>> {
        let journal = self.vitals.journal.borrow();
        let decisions = journal.as_ref().map(Journal::decisions);
        decisions.unwrap_or_default()
    }

    fn lines(&self) -> LinesRecord {
        let journal = self.vitals.journal.borrow();
        journal.as_ref().map(Journal::lines).unwrap_or_default()
    }

    fn ranking(&self, signal: Signal) -> Option<RankingRecord> {
        ranking(&self.meter, &self.pods, signal)
    }

    fn sync_loop(&self) -> Result<(), String> {
        let problems = self.vitals.problems();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join(", ")),
        }
    }
}
