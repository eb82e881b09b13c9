//! `/metrics/cadvisor`: what dashboards read of the node, its pods and containers.

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::object::timestamp::Timestamp;
use rustix::system::uname;

use super::super::cgroup_reader::{CgroupReader, CgroupSample};
use super::super::collector::Collector;
use super::super::file_system::FileSystem;
use super::super::inventory::Pod;
use super::super::kept_file::{Budget, Buffer};
use super::super::network::Interface;
use super::details::Details;
use super::devices::Devices;
use super::exposition::{Exposition, Kind, float};
use super::labels::Labels;
use super::series::SERIES;

/// One cgroup and its samples.
pub(super) struct Entry<'a> {
    pub(super) labels: Labels,
    pub(super) now: Timestamp,
    pub(super) started: Option<Timestamp>,
    pub(super) sample: Option<&'a CgroupSample>,
    pub(super) details: Details,
    /// Of the disks in `details`.
    pub(super) device_names: Vec<String>,
    pub(super) disks: Vec<Disk>,
    pub(super) interfaces: &'a [Interface],
    pub(super) interfaces_time: Option<Timestamp>,
}

/// A file system, and how much of it is taken.
pub(super) struct Disk {
    pub(super) device: String,
    pub(super) capacity: u64,
    pub(super) used: Option<u64>,
    pub(super) inodes: Option<u64>,
    pub(super) inodes_free: Option<u64>,
    pub(super) time: Timestamp,
}

/// A cgroup that is to be shown, by name.
#[derive(Clone, Copy, Default)]
struct Named<'a> {
    name: &'a str,
    image: &'a str,
    namespace: &'a str,
    pod: &'a str,
    container: &'a str,
}

/// A cgroup that is not measured regularly, measured for this text.
struct Extra {
    cgroup: CgroupPath,
    reader: CgroupReader,
}

impl Collector {
    /// The text of `/metrics/cadvisor`. Usage is that of the last measurement; limits and events
    /// are read now.
    pub fn cadvisor_metrics(&mut self, now: Timestamp) -> String {
        let mut buffer = std::mem::take(&mut self.buffer);
        let extras = self.measure_extras(now, &mut buffer);
        let mut devices = Devices::new(&self.settings.mount_root);
        let entries = self.entries(now, &extras, &mut devices, &mut buffer);
        let mut text = Exposition::default();
        for series in SERIES {
            let mut family = text.family(series.name, series.kind, series.help);
            for entry in &entries {
                (series.add)(entry, &mut family);
            }
        }
        self.add_machine(&mut text, now);
        drop(entries);
        self.buffer = buffer;
        text.into_text()
    }

    /// The tiers, and sandboxes with cgroups of their own.
    fn measure_extras(&self, now: Timestamp, buffer: &mut Buffer) -> Vec<Extra> {
        let sandboxes = self.inventory.pods.iter().filter_map(|pod| {
            let sandbox = pod.sandbox.as_ref()?;
            sandbox.cgroup.as_ref()
        });
        let not_kept = Budget::new(0);
        let measure = |cgroup: &CgroupPath| {
            let mut reader = CgroupReader::new(&self.layout, cgroup);
            reader.sample(now, &self.node.memory, buffer, &not_kept);
            Extra {
                cgroup: cgroup.clone(),
                reader,
            }
        };
        let tiers = self.settings.qos_tiers.iter();
        tiers.chain(sandboxes).map(measure).collect()
    }

    fn entries<'a>(
        &'a self,
        now: Timestamp,
        extras: &'a [Extra],
        devices: &mut Devices,
        buffer: &mut Buffer,
    ) -> Vec<Entry<'a>> {
        let settings = &self.settings;
        let mut entries = Vec::new();
        let mut add = |cgroup: &CgroupPath, named: Named<'_>, reader: Option<&'a CgroupReader>| {
            let details = Details::read(&self.layout, cgroup, buffer);
            let names = details.io.iter();
            let names = names.map(|io| devices.block(io.major, io.minor).to_owned());
            entries.push(Entry {
                labels: named.labels(cgroup),
                now,
                started: reader.and_then(|reader| reader.created),
                sample: reader.and_then(|reader| reader.last.as_ref()),
                device_names: names.collect(),
                details,
                disks: Vec::new(),
                interfaces: &[],
                interfaces_time: self.node.time,
            });
            entries.len() - 1
        };
        let root = add(&self.root, Named::default(), self.reader(&self.root));
        let system = [&settings.kubelet, &settings.runtime, &settings.misc];
        let system = system.into_iter().flatten();
        for cgroup in std::iter::once(&settings.kubepods).chain(system) {
            add(cgroup, Named::default(), self.reader(cgroup));
        }
        for extra in extras.iter().take(settings.qos_tiers.len()) {
            add(&extra.cgroup, Named::default(), Some(&extra.reader));
        }
        let mut networks = Vec::new();
        let mut containers = Vec::new();
        for pod in &self.inventory.pods {
            let named = Named::of(pod);
            let whole = add(&pod.cgroup, named, self.reader(&pod.cgroup));
            let sandbox = pod.sandbox.as_ref();
            let extra = sandbox.and_then(|sandbox| {
                let cgroup = sandbox.cgroup.as_ref()?;
                let extra = extras.iter().find(|extra| extra.cgroup == *cgroup)?;
                let named = Named {
                    name: &sandbox.id,
                    image: &sandbox.image,
                    ..named
                };
                Some(add(&extra.cgroup, named, Some(&extra.reader)))
            });
            networks.push((extra.unwrap_or(whole), pod));
            for container in &pod.containers {
                let named = Named {
                    name: &container.id,
                    image: &container.image,
                    container: &container.name,
                    ..named
                };
                let index = add(&container.cgroup, named, self.reader(&container.cgroup));
                containers.push((index, container));
            }
        }
        entries[root].interfaces = &self.node.interfaces;
        entries[root].disks = self.machine_disks(devices, now);
        for (index, pod) in networks {
            let interfaces = self.networks.get(&pod.uid);
            entries[index].interfaces = interfaces.map_or(&[], Vec::as_slice);
        }
        for (index, container) in containers {
            let root_fs = self.root_fs_stats(&container.root_fs);
            let filling = &self.node.filling;
            let fs = filling.container_fs.or(filling.image_fs);
            entries[index].started = container.started.or(entries[index].started);
            entries[index].disks = fs
                .map(|fs| Disk {
                    device: devices.file_system(fs.device).to_owned(),
                    capacity: fs.capacity,
                    used: root_fs.used_bytes,
                    inodes: None,
                    inodes_free: None,
                    time: root_fs.time.unwrap_or(now),
                })
                .into_iter()
                .collect();
        }
        entries
    }

    /// The file systems that the node watches, each once.
    fn machine_disks(&self, devices: &Devices, now: Timestamp) -> Vec<Disk> {
        let filling = &self.node.filling;
        let mut all: Vec<FileSystem> = [filling.node_fs, filling.image_fs, filling.container_fs]
            .into_iter()
            .flatten()
            .collect();
        all.sort_by_key(|fs| fs.device);
        all.dedup_by_key(|fs| fs.device);
        let disk = |fs: FileSystem| Disk {
            device: devices.file_system(fs.device).to_owned(),
            capacity: fs.capacity,
            used: Some(fs.used),
            inodes: Some(fs.inodes),
            inodes_free: Some(fs.inodes_free),
            time: filling.time.unwrap_or(now),
        };
        all.into_iter().map(disk).collect()
    }

    fn add_machine(&self, text: &mut Exposition, now: Timestamp) {
        let processors = self.machine.processors;
        let memory = &self.node.memory;
        let gauges = [
            (
                "machine_cpu_cores",
                "Number of logical CPU cores.",
                processors.logical,
            ),
            (
                "machine_cpu_physical_cores",
                "Number of physical CPU cores.",
                processors.physical,
            ),
            (
                "machine_cpu_sockets",
                "Number of CPU sockets.",
                processors.sockets,
            ),
            (
                "machine_memory_bytes",
                "Amount of memory installed on the machine.",
                memory.total,
            ),
            (
                "machine_swap_bytes",
                "Amount of swap memory available on the machine.",
                memory.swap_total,
            ),
        ];
        let kernel = uname();
        let version = Labels::new([
            ("cadvisorRevision", ""),
            ("cadvisorVersion", ""),
            ("dockerVersion", ""),
            ("kernelVersion", &kernel.release().to_string_lossy()),
            ("osVersion", ""),
        ]);
        let help = "A metric with a constant '1' value labeled by kernel version, OS version, \
                    docker version, cadvisor version & cadvisor revision.";
        text.family("cadvisor_version_info", Kind::Gauge, help)
            .add(version.as_str(), 1.0, None);
        let help = "1 if there was an error while getting container metrics, 0 otherwise";
        text.family("container_scrape_error", Kind::Gauge, help)
            .add("", 0.0, None);
        for (name, help, value) in gauges {
            text.family(name, Kind::Gauge, help).add(
                "",
                float(value),
                Some(self.node.time.unwrap_or(now)),
            );
        }
        let help = "1 if there was an error while getting machine metrics, 0 otherwise.";
        text.family("machine_scrape_error", Kind::Gauge, help)
            .add("", 0.0, None);
    }
}

impl<'a> Named<'a> {
    fn of(pod: &'a Pod) -> Named<'a> {
        Named {
            namespace: &pod.namespace,
            pod: &pod.name,
            ..Named::default()
        }
    }

    fn labels(&self, cgroup: &CgroupPath) -> Labels {
        Labels::new([
            ("container", self.container),
            ("id", cgroup.as_str()),
            ("image", self.image),
            ("name", self.name),
            ("namespace", self.namespace),
            ("pod", self.pod),
        ])
    }
}
