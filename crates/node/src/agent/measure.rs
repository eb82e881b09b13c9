//! Measures what the node uses, periodically, for the kubelet API and for eviction.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_client::clock::Clock;
use plimsoll_core::cgroup::{CgroupPath, Runtime as CgroupNaming, container_path};
use plimsoll_core::config::NodeConfig;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::{self, Shortages};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceName;
use plimsoll_core::threshold::{DiskLayout, Signal, StarvedResource};
use plimsoll_runtime as runtime;
use plimsoll_runtime::cgroup::parse_own_cgroup;
use plimsoll_runtime::walk::Walker;
use plimsoll_runtime::wire::{
    Container, ContainerFilter, ContainerState, FilesystemUsage, PodSandbox, PodSandboxFilter,
    PodSandboxState,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::host::NodeHost;
use super::options::{Options, RuntimeChoice};
use crate::pod_fields;
use crate::pods::reports::Report;
use crate::pods::{Pods, spec};
use crate::stats::metrics::{KubeletMetrics, PodCounts};
use crate::stats::{self, Collector, RootFs, RuntimeFs, VolumeMeasure};
use crate::volumes::MountedVolume;

/// How often everything is measured.
const EVERY: Duration = Duration::from_secs(10);
/// How often what may be full within seconds is looked at in between.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long it may take to measure all pods while a disk is beyond a threshold; a pod that is not measured
/// in this time is judged by older stats.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the runtime may take to list pods and containers; after that the last list is used.
const RUNTIME_PATIENCE: Duration = Duration::from_secs(10);
/// How long measuring rests at most after it took long.
const LONGEST_REST: Duration = Duration::from_secs(4);
/// How often the runtime is queried for writable layers in between, while a pod has a storage limit.
const ASK_EVERY: Duration = Duration::from_secs(3);

/// Measures the node.
#[derive(Debug)]
pub(super) struct Meter {
    host: Arc<NodeHost>,
    pods: Pods,
    collector: Mutex<Collector>,
    config: NodeConfig,
    /// What the node may be short of; made when it is known where the disks are.
    eviction: OnceLock<Option<(eviction::Settings, Shortages)>>,
    pub(super) metrics: Arc<KubeletMetrics>,
    /// Goes up with every measurement.
    pub(super) measured: watch::Sender<u64>,
    naming: CgroupNaming,
    clock: Clock,
    started: Timestamp,
    proc_self: PathBuf,
}

/// Whether a signal is about a disk.
fn is_of_disk(signal: Signal) -> bool {
    matches!(
        signal.resource(),
        StarvedResource::EphemeralStorage | StarvedResource::Inodes
    )
}

/// Whether a signal is about what is looked at between measurements. Memory has a watch of its own.
fn is_looked_at(signal: Signal) -> bool {
    is_of_disk(signal) || signal.resource() == StarvedResource::Pids
}

impl Meter {
    pub(super) fn new(
        host: Arc<NodeHost>,
        pods: Pods,
        options: &Options,
        runtime_name: &str,
        walker: Walker,
    ) -> Meter {
        let clock = Clock::advancing();
        let started = clock.now();
        let cgroups = host.cgroups.cgroups();
        let configured = |text: &str| {
            (!text.is_empty())
                .then(|| CgroupPath::parse(text).ok())
                .flatten()
        };
        let of_process = |process: &str| {
            let file = options.system_root.join("proc").join(process);
            let text = std::fs::read_to_string(file.join("cgroup")).ok()?;
            // The use of the root cgroup is that of the machine.
            parse_own_cgroup(&text, cgroups.version()).filter(|path| path.as_str() != "/")
        };
        let kubelet = configured(&options.config.kubelet_cgroups).or_else(|| of_process("self"));
        let found_runtime = match &options.runtime {
            // It is a part of the agent.
            RuntimeChoice::Embedded(_) => kubelet.clone(),
            RuntimeChoice::Cri { endpoint } => {
                let process = listener_of(endpoint);
                process.and_then(|id| of_process(&id.to_string()))
            }
        };
        let played = options.played_machine(&cgroups.path(cgroups.root()));
        let settings = stats::Settings {
            node_name: options.node_name.clone(),
            mount_root: options.system_root.clone(),
            root_dir: options.directories.root.clone(),
            kubepods: host.cgroups.all_pods_path(),
            qos_tiers: host.cgroups.tier_paths(),
            runtime: configured(&options.config.runtime_cgroups).or(found_runtime),
            misc: configured(&options.config.system_cgroups),
            kubelet,
            started,
            kept_files: stats::Settings::affordable_files(),
            played: played.map(|(cgroup, machine)| stats::PlayedMachine {
                cgroup,
                memory: u64::try_from(machine.memory.0).unwrap_or_default(),
                max_processes: machine.max_pid.map(|most| most.0),
            }),
            quotas: host.volumes.quotas().clone(),
            walker,
        };
        let metrics = Arc::clone(pods.metrics());
        let collector = Collector::new(settings, cgroups.layout().clone());
        Meter {
            collector: Mutex::new(collector),
            config: options.config.clone(),
            eviction: OnceLock::new(),
            metrics,
            measured: watch::channel(0).0,
            naming: match runtime_name {
                "cri-o" => CgroupNaming::CriO,
                _ => CgroupNaming::Containerd,
            },
            clock,
            started,
            proc_self: options.system_root.join("proc/self"),
            host,
            pods,
        }
    }

    /// Measures until `stop` is cancelled: everything from time to time and when other containers run,
    /// what fills quickly in between.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut measured: Option<(Instant, BTreeMap<String, usize>)> = None;
        let mut asked = Instant::now();
        loop {
            let begun = Instant::now();
            let reports = self.pods.reports().all();
            let running = running_containers(&reports);
            let is_current = measured.as_ref().is_some_and(|(since, known)| {
                let is_recent = since.elapsed() < EVERY;
                is_recent && *known == running
            });
            if is_current {
                let is_due = asked.elapsed() >= ASK_EVERY;
                let asks = is_due && reports.iter().any(|report| is_limited(&report.pod));
                if asks {
                    asked = Instant::now();
                }
                self.look(asks).await;
            } else {
                self.measure().await;
                (measured, asked) = (Some((Instant::now(), running)), Instant::now());
            }
            // A node that is short of disk for long is not measured all the time.
            let rest = (begun.elapsed() * 2).clamp(LOOK_EVERY, LONGEST_REST);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Measures what may be full within seconds, and asks the runtime for writable layers or not.
    /// If a disk fills fast, or is beyond a threshold, everything is measured, so that the pods that fill
    /// it are known.
    async fn look(self: &Arc<Self>, asks: bool) {
        let layers = match asks {
            true => self.writable_layers().await.unwrap_or_default(),
            false => BTreeMap::new(),
        };
        let reported = |(id, usage): (String, FilesystemUsage)| (id, reported(&usage));
        let layers = layers.into_iter().map(reported).collect();
        let is_filling = self.sample(move |collector, now| {
            collector.set_layers(layers);
            collector.sample_filling(now)
        });
        match is_filling.await {
            Some(is_filling) if is_filling || self.is_short_of(is_looked_at) => {
                self.measure_anew(Collector::hurry).await;
            }
            Some(_) => self.notify(),
            None => {}
        }
    }

    /// Measures everything once.
    pub(super) async fn measure(self: &Arc<Self>) {
        self.measure_anew(|_| {}).await;
    }

    async fn measure_anew(self: &Arc<Self>, prepare: impl FnOnce(&mut Collector) + Send + 'static) {
        let inventory = tokio::time::timeout(RUNTIME_PATIENCE, self.inventory()).await;
        let problem = match &inventory {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.chain()),
            Err(_) => Some("the container runtime did not answer".to_owned()),
        };
        if let Some(error) = problem {
            tracing::warn!(error, "failed to list containers for stats");
        }
        let inventory = inventory.ok().and_then(Result::ok);
        if inventory.is_none() && self.disk_layout().is_none() {
            return;
        }
        let sampled = self.sample(move |collector, now| {
            if let Some(inventory) = inventory {
                collector.set_inventory(inventory);
            }
            prepare(collector);
            collector.sample(now);
        });
        if sampled.await.is_none() {
            return;
        }
        if self.is_short_of(is_of_disk) {
            self.measure_all_directories().await;
        }
        self.notify();
    }

    /// Whether a pod may have to go for one of these.
    fn is_short_of(&self, which: fn(Signal) -> bool) -> bool {
        let Some((_, shortages)) = self.eviction() else {
            return false;
        };
        let observation = self.collector().observation();
        shortages.is_short(&observation, which)
    }

    /// The settings of eviction; `None` before it is known where the node's disks are, and without
    /// thresholds that can be used.
    pub(super) fn eviction_settings(&self) -> Option<&eviction::Settings> {
        self.eviction().map(|(settings, _)| settings)
    }

    fn eviction(&self) -> Option<&(eviction::Settings, Shortages)> {
        let layout = self.disk_layout()?;
        let eviction = self.eviction.get_or_init(|| {
            let settings = eviction::Settings::new(&self.config, layout).ok()?;
            let shortages = Shortages::new(&settings);
            Some((settings, shortages))
        });
        eviction.as_ref()
    }

    /// Measures what all pods hold at this moment, so that a pod that has just written is found. Other
    /// readers of the collector get a turn in between.
    async fn measure_all_directories(self: &Arc<Self>) {
        let begun = Instant::now();
        let mut is_done = self
            .sample(|collector, now| {
                collector.want_all(now);
                collector.catch_up(now)
            })
            .await;
        while is_done == Some(false) && begun.elapsed() < PATIENCE {
            is_done = self.sample(Collector::catch_up).await;
        }
    }

    /// Has something measured, on a thread that may wait.
    async fn sample<T: Send + 'static>(
        self: &Arc<Self>,
        sample: impl FnOnce(&mut Collector, Timestamp) -> T + Send + 'static,
    ) -> Option<T> {
        let meter = Arc::clone(self);
        let sampled =
            tokio::task::spawn_blocking(move || sample(&mut meter.collector(), meter.clock.now()));
        let sampled = sampled.await;
        sampled
            .inspect_err(|error| tracing::error!(%error, "failed to collect stats"))
            .ok()
    }

    fn notify(&self) {
        self.measured.send_modify(|count| *count += 1);
    }

    /// Which of the node's file systems are one, once that was measured.
    pub(super) fn disk_layout(&self) -> Option<DiskLayout> {
        self.collector().disk_layout()
    }

    /// What was measured last.
    pub(super) fn summary(&self) -> Summary {
        self.collector().summary()
    }

    /// Of that, cpu and memory.
    pub(super) fn cpu_and_memory(&self) -> Summary {
        self.collector().cpu_and_memory()
    }

    /// `/metrics/resource`.
    pub(super) fn resource_metrics(&self) -> String {
        self.collector().resource_metrics()
    }

    /// `/metrics/cadvisor`.
    pub(super) fn cadvisor_metrics(&self) -> String {
        self.collector().cadvisor_metrics(self.clock.now())
    }

    /// `/metrics`.
    pub(super) fn agent_metrics(&self) -> String {
        let reports = self.pods.reports().all();
        let of = |is_static: bool, counted: &dyn Fn(&Report) -> bool| {
            let fits = |report: &&Report| {
                pod_fields::is_static(&report.pod) == is_static && counted(report)
            };
            reports.iter().filter(fits).count()
        };
        let counts = |counted: &dyn Fn(&Report) -> bool| PodCounts {
            from_api: of(false, counted),
            from_files: of(true, counted),
        };
        self.metrics.set_desired_pods(counts(&|_| true));
        self.metrics
            .set_active_pods(counts(&|report| report.may_run));
        self.metrics.set_mirror_pods(of(true, &|_| true));
        let summary = self.summary();
        self.metrics.set_running_pods(summary.pods.len());
        let running = summary.pods.iter().map(|pod| pod.containers.len()).sum();
        self.metrics.set_containers("running", running);
        self.metrics.text(&summary, &self.proc_self, self.started)
    }

    fn collector(&self) -> MutexGuard<'_, Collector> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn inventory(&self) -> Result<stats::Inventory, runtime::Error> {
        let runtime = &self.host.runtime;
        let sandboxes = runtime
            .list_pod_sandboxes(&PodSandboxFilter::default())
            .await?;
        let containers = runtime.list_containers(&ContainerFilter::default()).await?;
        let layers = self.writable_layers().await?;
        let file_systems = runtime.image_fs_info().await?;
        let mut pods = Vec::new();
        for report in self.pods.reports().all() {
            let uid = pod_fields::uid(&report.pod);
            let newest = sandboxes.iter().filter(|sandbox| is_ready_of(sandbox, uid));
            let Some(sandbox) = newest.max_by_key(|sandbox| sandbox.created_at) else {
                continue;
            };
            let running: Vec<&Container> = containers
                .iter()
                .filter(|container| is_running_in(container, &sandbox.id))
                .collect();
            pods.extend(self.pod(&report.pod, sandbox, &running, &layers));
        }
        let first = |list: Vec<FilesystemUsage>| list.into_iter().next().map(runtime_fs);
        Ok(stats::Inventory {
            pods,
            image_fs: first(file_systems.image_filesystems),
            container_fs: first(file_systems.container_filesystems),
        })
    }

    async fn writable_layers(&self) -> Result<BTreeMap<String, FilesystemUsage>, runtime::Error> {
        let stats = self.host.runtime.list_container_stats().await?.into_iter();
        let layer = |stats: plimsoll_runtime::wire::ContainerStats| {
            Some((stats.attributes?.id, stats.writable_layer?))
        };
        Ok(stats.filter_map(layer).collect())
    }

    fn pod(
        &self,
        pod: &Pod,
        sandbox: &PodSandbox,
        containers: &[&Container],
        layers: &BTreeMap<String, FilesystemUsage>,
    ) -> Option<stats::Pod> {
        let view = PodView::from_api(pod).ok()?;
        let cgroups = self.host.cgroups.cgroups();
        let cgroup = cgroups.path(&cgroups.pod_name(&view).ok()?);
        let facts = &self.host.facts;
        let logs = spec::pod_log_directory(&facts.pod_logs_dir, pod);
        let uid = pod_fields::uid(pod);
        let container = |container: &&Container| {
            let name = container
                .metadata
                .as_ref()
                .map(|metadata| metadata.name.clone());
            let name = name.unwrap_or_default();
            stats::Container {
                id: container.id.clone(),
                image: container
                    .image
                    .as_ref()
                    .map(|i| i.image.clone())
                    .unwrap_or_default(),
                cgroup: container_path(&cgroup, cgroups.driver(), self.naming, &container.id),
                started: Some(Timestamp::from_nanos(container.created_at)),
                log_directory: Some(logs.join(&name)),
                root_fs: layers.get(&container.id).map_or(RootFs::Unknown, reported),
                name,
            }
        };
        let volumes = self.host.volumes.mounted(uid);
        Some(stats::Pod {
            uid: view.uid.clone(),
            name: pod_fields::name(pod).to_owned(),
            namespace: pod_fields::namespace(pod).to_owned(),
            started: Some(Timestamp::from_nanos(sandbox.created_at)),
            sandbox: Some(stats::Sandbox {
                id: sandbox.id.clone(),
                cgroup: Some(container_path(
                    &cgroup,
                    cgroups.driver(),
                    self.naming,
                    &sandbox.id,
                )),
                ..stats::Sandbox::default()
            }),
            containers: containers.iter().map(container).collect(),
            volumes: volumes
                .iter()
                .filter_map(|(name, volume)| measured(pod, name, volume))
                .collect(),
            log_directory: Some(logs),
            etc_hosts: Some(facts.pod_dir(uid).join("etc-hosts")),
            is_limited: is_limited(pod),
            cgroup,
        })
    }
}

/// How many containers run of each pod.
fn running_containers(reports: &[Report]) -> BTreeMap<String, usize> {
    let running = reports
        .iter()
        .filter(|report| report.may_run)
        .map(|report| {
            let statuses = report.status.container_statuses.iter().flatten();
            let running = statuses.filter(|status| {
                let state = status.state.as_ref();
                state.is_some_and(|state| state.running.is_some())
            });
            (pod_fields::uid(&report.pod).to_owned(), running.count())
        });
    running.filter(|(_, count)| *count > 0).collect()
}

/// Whether the pod goes when it holds too much on disk.
fn is_limited(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else {
        return false;
    };
    let volumes = spec.volumes.iter().flatten();
    let mut empty_dirs = volumes.filter_map(|volume| volume.empty_dir.as_ref());
    let containers = spec.containers.iter();
    let mut limits =
        containers.filter_map(|container| container.resources.as_ref()?.limits.as_ref());
    empty_dirs.any(|empty_dir| empty_dir.size_limit.is_some())
        || limits.any(|limits| limits.contains_key(ResourceName::EPHEMERAL_STORAGE.as_str()))
}

/// The process that listens on a socket.
fn listener_of(endpoint: &str) -> Option<i32> {
    let path = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
    let socket = UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

fn is_ready_of(sandbox: &PodSandbox, uid: &str) -> bool {
    let metadata = sandbox.metadata.as_ref();
    sandbox.state() == PodSandboxState::SandboxReady && metadata.is_some_and(|m| m.uid == uid)
}

fn is_running_in(container: &Container, sandbox: &str) -> bool {
    container.pod_sandbox_id == sandbox && container.state() == ContainerState::ContainerRunning
}

fn reported(usage: &FilesystemUsage) -> RootFs {
    RootFs::Reported {
        used_bytes: usage.used_bytes.as_ref().map(|bytes| bytes.value),
        inodes_used: usage.inodes_used.as_ref().map(|inodes| inodes.value),
        time: Some(Timestamp::from_nanos(usage.timestamp)),
    }
}

fn runtime_fs(usage: FilesystemUsage) -> RuntimeFs {
    RuntimeFs {
        mount_point: usage
            .fs_id
            .map(|id| id.mountpoint.into())
            .unwrap_or_default(),
        used_bytes: usage.used_bytes.map(|bytes| bytes.value),
        inodes_used: usage.inodes_used.map(|inodes| inodes.value),
        time: Some(Timestamp::from_nanos(usage.timestamp)),
    }
}

/// How a volume is measured; `None` if it is not.
///
/// Volumes with a file system of their own are measured as such; disk volumes that are the pod's
/// own count for its ephemeral storage. Directories of the node itself, which hold far more than
/// what the pod has put there, are not measured: v1.36 pkg/volume/hostpath has `MetricsNil`.
fn measured(pod: &Pod, name: &str, volume: &MountedVolume) -> Option<stats::Volume> {
    let plugin = volume
        .plugin
        .strip_prefix("kubernetes.io~")
        .unwrap_or(volume.plugin);
    if plugin == "host-path" {
        return None;
    }
    let has_own_file_system = volume.is_in_memory || plugin == "local-volume";
    let counted = ["empty-dir", "configmap", "downward-api"];
    let claim = volume.claim.clone();
    Some(stats::Volume {
        name: name.to_owned(),
        path: volume.path.clone(),
        measure: match has_own_file_system {
            true => VolumeMeasure::FileSystem,
            false => VolumeMeasure::Directory,
        },
        is_ephemeral: counted.contains(&plugin) && !volume.is_in_memory,
        claim: claim.map(|claim| (claim, pod_fields::namespace(pod).to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_path_volumes_are_not_measured() {
        let volume = |plugin| MountedVolume {
            path: "/".into(),
            plugin,
            inner_name: "v".to_owned(),
            is_read_only: false,
            is_managed: true,
            is_in_memory: false,
            claim: None,
        };
        let measured = |plugin| measured(&Pod::default(), "v", &volume(plugin));
        assert_eq!(measured("kubernetes.io~host-path"), None);
        let empty_dir = measured("kubernetes.io~empty-dir").unwrap();
        assert_eq!(empty_dir.measure, VolumeMeasure::Directory);
        let local = measured("kubernetes.io~local-volume").unwrap();
        assert_eq!(local.measure, VolumeMeasure::FileSystem);
    }
}
