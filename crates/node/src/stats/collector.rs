//! One measurement after the other, of all there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver};
use plimsoll_core::eviction::summary::RlimitStats;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold::DiskLayout;
use plimsoll_runtime::cgroup::Layout;
use plimsoll_runtime::walk::{Scope, Walker};
use rustix::process::{Resource, getrlimit};

use crate::project_quota::ProjectQuotas;

use super::cgroup_reader::{CgroupReader, CgroupSample};
use super::disk::{DiskUsage, Wanted};
use super::file_system::FileSystem;
use super::inventory::{Inventory, Pod, RootFs, RuntimeFs, Volume, VolumeMeasure};
use super::kept_file::{Budget, Buffer};
use super::machine::{MachineReader, MemInfo, Pressure, net_dev_path};
use super::network::{Interface, parse_net_dev};
use super::volume_fs::VolumeFileSystems;

/// What stays the same while the agent runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the node.
    pub node_name: String,
    /// What `/proc` and `/sys` are below; `/` but in tests.
    pub mount_root: PathBuf,
    /// The kubelet's directory, which is on the nodefs.
    pub root_dir: PathBuf,
    /// The cgroup of all pods.
    pub kubepods: CgroupPath,
    /// The tiers inside it.
    pub qos_tiers: Vec<CgroupPath>,
    /// The cgroup of the agent, if it is known.
    pub kubelet: Option<CgroupPath>,
    /// `--runtime-cgroups`.
    pub runtime: Option<CgroupPath>,
    /// `systemCgroups`.
    pub misc: Option<CgroupPath>,
    /// When the agent was started.
    pub started: Timestamp,
    /// How many files may be kept open; see [`Settings::affordable_files`].
    pub kept_files: usize,
    /// The cgroup that plays the machine, if one does.
    pub played: Option<PlayedMachine>,
    /// Where the kernel keeps count of what directories hold.
    pub quotas: ProjectQuotas,
    /// What walks over other directories.
    pub walker: Walker,
}

/// A cgroup that plays the machine: its cpu, memory and processes are the node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedMachine {
    /// The cgroup.
    pub cgroup: CgroupPath,
    /// How much memory the machine has, in bytes.
    pub memory: u64,
    /// How many processes it may have; as many as the whole machine if that is not said.
    pub max_processes: Option<i64>,
}

impl Settings {
    /// How many files an agent can keep open with the descriptors it may have: half of them, and
    /// no more than serve 110 pods.
    pub fn affordable_files() -> usize {
        const ENOUGH: usize = 4096;
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        limit.map_or(ENOUGH, |limit| (limit / 2).min(ENOUGH))
    }
}

/// Measures a node and keeps the latest stats.
#[derive(Debug)]
pub struct Collector {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) root: CgroupPath,
    /// The cgroup whose stats are the node's: the root, unless another plays the machine.
    pub(super) node_cgroup: CgroupPath,
    budget: Budget,
    pub(super) buffer: Buffer,
    pub(super) machine: MachineReader,
    readers: BTreeMap<CgroupPath, CgroupReader>,
    pub(super) inventory: Inventory,
    pub(super) disk: DiskUsage,
    pub(super) node: NodeSample,
    pub(super) networks: BTreeMap<PodUid, Vec<Interface>>,
    volumes: VolumeFileSystems,
}

/// What was measured of the node besides its cgroups.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeSample {
    pub(super) time: Option<Timestamp>,
    pub(super) memory: MemInfo,
    pub(super) pressure: Pressure,
    pub(super) interfaces: Vec<Interface>,
    pub(super) filling: Filling,
}

/// What a pod may fill within seconds; measured more often than the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    pub(super) time: Option<Timestamp>,
    pub(super) process_ids: RlimitStats,
    pub(super) node_fs: Option<FileSystem>,
    pub(super) image_fs: Option<FileSystem>,
    pub(super) container_fs: Option<FileSystem>,
}

impl Filling {
    /// A five-hundredth of a disk, or a fiftieth of all process ids.
    fn is_much_fuller_than(&self, before: &Filling) -> bool {
        let disks = [
            (self.node_fs, before.node_fs),
            (self.image_fs, before.image_fs),
            (self.container_fs, before.container_fs),
        ];
        let mut known = disks
            .into_iter()
            .filter_map(|(now, before)| now.zip(before));
        let is_disk_fuller = known.any(|(now, before)| {
            let bytes = before.available.saturating_sub(now.available);
            let inodes = before.inodes_free.saturating_sub(now.inodes_free);
            bytes > now.capacity / 500 || inodes > now.inodes / 500
        });
        let count = |filling: &Filling| filling.process_ids.curproc.unwrap_or_default();
        let more = count(self).saturating_sub(count(before));
        let most = self.process_ids.maxpid.unwrap_or(i64::MAX);
        is_disk_fuller || more > most / 50
    }
}

/// How many files one measurement may look at to learn what directories hold: some 50 ms.
const FILES_PER_SAMPLE: u64 = 20_000;
/// How many in between.
const FILES_PER_LOOK: u64 = 2_000;

impl Collector {
    /// Measures nothing yet.
    pub fn new(settings: Settings, layout: Layout) -> Collector {
        let root = CgroupName::ROOT.to_path(Driver::Cgroupfs);
        let played = settings.played.as_ref();
        Collector {
            node_cgroup: played.map_or_else(|| root.clone(), |played| played.cgroup.clone()),
            root,
            budget: Budget::new(settings.kept_files),
            buffer: Buffer::default(),
            machine: MachineReader::new(&settings, &layout),
            readers: BTreeMap::new(),
            inventory: Inventory::default(),
            disk: DiskUsage::new(settings.quotas.clone(), settings.walker.clone()),
            node: NodeSample::default(),
            networks: BTreeMap::new(),
            volumes: VolumeFileSystems::default(),
            settings,
            layout,
        }
    }

    /// From now on this is measured. What is no longer in it is forgotten and its files are
    /// closed; a new pod has stats after the next measurement.
    pub fn set_inventory(&mut self, inventory: Inventory) {
        self.inventory = inventory;
        let wanted: BTreeSet<&CgroupPath> = self.cgroups().collect();
        let gone: Vec<CgroupPath> = self
            .readers
            .keys()
            .filter(|cgroup| !wanted.contains(cgroup))
            .cloned()
            .collect();
        for cgroup in gone {
            self.readers.remove(&cgroup);
        }
        let pods = &self.inventory.pods;
        let uids: BTreeSet<&PodUid> = pods.iter().map(|pod| &pod.uid).collect();
        self.networks.retain(|uid, _| uids.contains(uid));
        let volumes = pods.iter().flat_map(|pod| &pod.volumes);
        let paths: BTreeSet<&PathBuf> = volumes.map(|volume| &volume.path).collect();
        self.volumes.retain(&paths);
        self.disk.track(&directories(&self.inventory));
    }

    /// Measures everything. To be called every ten seconds.
    pub fn sample(&mut self, now: Timestamp) {
        self.sample_node(now);
        let inventory = std::mem::take(&mut self.inventory);
        for pod in &inventory.pods {
            self.sample_cgroup(&pod.cgroup, now);
            for container in &pod.containers {
                self.sample_cgroup(&container.cgroup, now);
                if let Some(reader) = self.readers.get_mut(&container.cgroup) {
                    reader.sample_processes(&mut self.buffer);
                }
            }
            self.sample_network(pod);
            self.sample_volumes(&pod.volumes, now);
        }
        self.inventory = inventory;
        self.disk.advance(now, FILES_PER_SAMPLE);
    }

    /// Measures what eviction decides on: the node, and all pods together. Figures of single pods
    /// stay as they are.
    pub fn sample_node(&mut self, now: Timestamp) {
        let filling = self.filling(now);
        let (buffer, budget) = (&mut self.buffer, &self.budget);
        self.node = NodeSample {
            time: Some(now),
            memory: self.machine.memory(buffer, budget).unwrap_or_default(),
            pressure: self.machine.pressure(buffer, budget),
            interfaces: read_interfaces(&net_dev_path(&self.settings.mount_root), buffer)
                .unwrap_or_default(),
            filling,
        };
        let system = self.whole_machine().chain(self.system_cgroups());
        let system: Vec<CgroupPath> = system.cloned().collect();
        for cgroup in system {
            self.sample_cgroup(&cgroup, now);
        }
    }

    /// Measures what may be full within seconds: file systems, process ids, and the directories of
    /// pods that have a limit. To be called every second between measurements. Returns
    /// whether something fills so fast that all pods should be measured.
    pub fn sample_filling(&mut self, now: Timestamp) -> bool {
        let filling = self.filling(now);
        let before = std::mem::replace(&mut self.node.filling, filling);
        self.disk.advance(now, FILES_PER_LOOK);
        self.node.filling.is_much_fuller_than(&before)
    }

    /// Has the next measurement walk over all directories, however new their stats are.
    pub fn hurry(&mut self) {
        self.disk.hurry();
    }

    /// Has all directories walked over, whatever that costs, by calls of [`Collector::catch_up`].
    pub fn want_all(&mut self, now: Timestamp) {
        self.disk.want_all(now);
    }

    /// Walks over directories for some 50 ms; returns whether that was all that is due at once.
    pub fn catch_up(&mut self, now: Timestamp) -> bool {
        self.disk.advance(now, FILES_PER_SAMPLE);
        !self.disk.is_behind()
    }

    fn filling(&mut self, now: Timestamp) -> Filling {
        let fs = |path: &Path| FileSystem::read(path).ok();
        let runtime_fs = |found: &Option<RuntimeFs>| fs(&found.as_ref()?.mount_point);
        let (buffer, budget) = (&mut self.buffer, &self.budget);
        Filling {
            time: Some(now),
            process_ids: self.machine.process_ids(now, buffer, budget),
            node_fs: fs(&self.settings.root_dir),
            image_fs: runtime_fs(&self.inventory.image_fs),
            container_fs: runtime_fs(&self.inventory.container_fs),
        }
    }

    /// Takes what the runtime says of writable layers between measurements, by container.
    pub fn set_layers(&mut self, mut layers: BTreeMap<String, RootFs>) {
        let pods = self.inventory.pods.iter_mut();
        for container in pods.flat_map(|pod| &mut pod.containers) {
            if let Some(root_fs) = layers.remove(&container.id) {
                container.root_fs = root_fs;
            }
        }
    }

    fn sample_cgroup(&mut self, cgroup: &CgroupPath, now: Timestamp) {
        let layout = &self.layout;
        let reader = match self.readers.get_mut(cgroup) {
            Some(reader) => reader,
            None => self
                .readers
                .entry(cgroup.clone())
                .or_insert_with(|| CgroupReader::new(layout, cgroup)),
        };
        reader.sample(now, &self.node.memory, &mut self.buffer, &self.budget);
        if reader.last.is_none() {
            // Files of a removed cgroup stay dead even if there is another of the same name.
            self.readers.remove(cgroup);
        }
    }

    /// Any process of the pod sees its interfaces; the sandbox's is the one that stays.
    fn sample_network(&mut self, pod: &Pod) {
        let sandbox = pod.sandbox.as_ref().and_then(|sandbox| sandbox.pid);
        let containers = pod.containers.iter();
        let others = containers.filter_map(|found| self.last(&found.cgroup)?.first_process);
        let pids: Vec<i32> = sandbox.into_iter().chain(others).collect();
        for pid in pids {
            // Not kept open: that would keep the namespace of a removed pod.
            let path = format!("proc/{pid}/net/dev");
            let path = self.settings.mount_root.join(path);
            if let Some(interfaces) = read_interfaces(&path, &mut self.buffer) {
                self.networks.insert(pod.uid.clone(), interfaces);
                return;
            }
        }
    }

    fn sample_volumes(&mut self, volumes: &[Volume], now: Timestamp) {
        for volume in volumes {
            self.volumes.sample(&volume.path, now);
        }
    }

    /// The agent's own cgroup may change while it runs.
    pub fn set_kubelet_cgroup(&mut self, cgroup: Option<CgroupPath>) {
        self.settings.kubelet = cgroup;
    }

    /// Whether images and writable layers lie on disks of their own, which decides what eviction
    /// frees; `None` before the first measurement or while the runtime has not said.
    pub fn disk_layout(&self) -> Option<DiskLayout> {
        let filling = &self.node.filling;
        let node_fs = filling.node_fs?.device;
        let image_fs = filling.image_fs?.device;
        let container_fs = filling.container_fs.map_or(image_fs, |fs| fs.device);
        Some(DiskLayout::from_dedicated(
            image_fs != node_fs,
            container_fs != image_fs,
        ))
    }

    /// Every cgroup that is measured.
    fn cgroups(&self) -> impl Iterator<Item = &CgroupPath> {
        let pods = self.inventory.pods.iter().flat_map(|pod| {
            let containers = pod.containers.iter().map(|container| &container.cgroup);
            std::iter::once(&pod.cgroup).chain(containers)
        });
        self.whole_machine()
            .chain(self.system_cgroups())
            .chain(pods)
    }

    /// The root, and the cgroup that plays the machine if one does.
    fn whole_machine(&self) -> impl Iterator<Item = &CgroupPath> {
        let played = Some(&self.node_cgroup).filter(|cgroup| **cgroup != self.root);
        std::iter::once(&self.root).chain(played)
    }

    fn system_cgroups(&self) -> impl Iterator<Item = &CgroupPath> {
        let settings = &self.settings;
        let optional = [&settings.kubelet, &settings.runtime, &settings.misc];
        std::iter::once(&settings.kubepods).chain(optional.into_iter().flatten())
    }

    pub(super) fn reader(&self, cgroup: &CgroupPath) -> Option<&CgroupReader> {
        self.readers.get(cgroup)
    }

    /// What was measured last.
    pub(super) fn last(&self, cgroup: &CgroupPath) -> Option<&CgroupSample> {
        self.readers.get(cgroup)?.last.as_ref()
    }

    pub(super) fn volume_fs(&self, path: &Path) -> Option<(Timestamp, FileSystem)> {
        self.volumes.get(path)
    }
}

fn read_interfaces(path: &Path, buffer: &mut Buffer) -> Option<Vec<Interface>> {
    parse_net_dev(buffer.read_once(path).ok()?)
}

/// The directories that are walked over.
fn directories(inventory: &Inventory) -> BTreeMap<PathBuf, Wanted> {
    let mut wanted = BTreeMap::new();
    for pod in &inventory.pods {
        let of = |scope| Wanted {
            scope,
            is_limited: pod.is_limited,
        };
        let containers = pod.containers.iter();
        let logs = containers.filter_map(|container| container.log_directory.clone());
        let logs = logs.chain(pod.log_directory.clone());
        wanted.extend(logs.map(|path| (path, of(Scope::Files))));
        let layers = pod
            .containers
            .iter()
            .filter_map(|container| match &container.root_fs {
                RootFs::Directory(path) => Some(path.clone()),
                RootFs::Unknown | RootFs::Reported { .. } => None,
            });
        let volumes = pod
            .volumes
            .iter()
            .filter(|volume| volume.measure == VolumeMeasure::Directory)
            .map(|volume| volume.path.clone());
        let trees = layers.chain(volumes).chain(pod.etc_hosts.clone());
        wanted.extend(trees.map(|path| (path, of(Scope::Tree))));
    }
    wanted
}
