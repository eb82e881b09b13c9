//! The stats as the summary document.
//!
//! Matches v1.36 pkg/kubelet/server/stats/summary.go and pkg/kubelet/stats/cri_stats_provider.go.

use plimsoll_core::eviction::Observation;
use plimsoll_core::eviction::summary::{
    ContainerStats, CpuStats, FsStats, IoStats, MemoryStats, NodeStats, PodReference, PodStats,
    ProcessStats, RuntimeStats, Summary,
};
use plimsoll_core::object::timestamp::Timestamp;

use super::collector::Collector;
use super::file_system::FileSystem;
use super::inventory::{Container, Pod, RuntimeFs};
use super::machine::Pressure;
use super::network::network_stats;
use super::sums::{sum, sum_cpu, sum_memory, sum_swap};

/// How much of the document is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    CpuAndMemory,
}

impl Collector {
    /// The whole document, with the stats that eviction reads besides upstream's.
    pub fn summary(&self) -> Summary {
        self.summary_of(Extent::All)
    }

    /// The document for `?only_cpu_and_memory=true`.
    pub fn cpu_and_memory(&self) -> Summary {
        self.summary_of(Extent::CpuAndMemory)
    }

    /// What eviction reads of the node; pods are left out.
    pub fn observation(&self) -> Observation {
        let summary = Summary {
            node: self.node_stats(Extent::All),
            pods: Vec::new(),
        };
        summary.observation()
    }

    fn summary_of(&self, extent: Extent) -> Summary {
        let pods = self.inventory.pods.iter();
        Summary {
            node: self.node_stats(extent),
            pods: pods.map(|pod| self.pod_stats(pod, extent)).collect(),
        }
    }

    fn node_stats(&self, extent: Extent) -> NodeStats {
        let root = self.last(&self.node_cgroup);
        let played = self.settings.played.as_ref();
        // Stalls of the machine are not those of a cgroup that plays it.
        let none = Pressure::default();
        let pressure = match played {
            Some(_) => &none,
            None => &self.node.pressure,
        };
        let mut stats = NodeStats {
            node_name: self.settings.node_name.clone(),
            system_containers: self.system_containers(extent),
            start_time: self.machine.boot_time,
            cpu: root.and_then(|root| root.cpu_stats()).map(|cpu| CpuStats {
                psi: pressure.cpu.clone().or(cpu.psi),
                ..cpu
            }),
            memory: root
                .and_then(|root| root.memory_stats())
                .map(|memory| match played {
                    // The kernel has no `MemAvailable` of a cgroup.
                    Some(played) => MemoryStats {
                        available_bytes: memory
                            .working_set_bytes
                            .map(|used| played.memory.wrapping_sub(used)),
                        ..memory
                    },
                    None => MemoryStats {
                        mem_available_bytes: Some(self.node.memory.available),
                        psi: pressure.memory.clone().or(memory.psi),
                        ..memory
                    },
                }),
            swap: root.and_then(|root| root.swap_stats()),
            ..NodeStats::default()
        };
        let Some(time) = self.node.time.filter(|_| extent == Extent::All) else {
            return stats;
        };
        stats.io = pressure.io.clone().map(|psi| IoStats {
            time: Some(time),
            psi: Some(psi),
        });
        stats.network = Some(network_stats(&self.node.interfaces, time));
        let filling = &self.node.filling;
        stats.fs = filling.node_fs.map(|fs| fs.whole(filling.time));
        stats.runtime = Some(self.runtime_stats());
        stats.rlimit = Some(filling.process_ids.clone());
        stats
    }

    fn runtime_stats(&self) -> RuntimeStats {
        let filling = &self.node.filling;
        let stats = |found: &Option<RuntimeFs>, fs: Option<FileSystem>| {
            let (found, fs) = (found.as_ref()?, fs?);
            // What is left is measured here, whenever the runtime measured what it takes.
            Some(FsStats {
                used_bytes: found.used_bytes,
                inodes_used: found.inodes_used,
                ..fs.around(found.time.max(filling.time))
            })
        };
        let image_fs = stats(&self.inventory.image_fs, filling.image_fs);
        let container_fs = stats(&self.inventory.container_fs, filling.container_fs);
        RuntimeStats {
            container_fs: container_fs.or_else(|| image_fs.clone()),
            image_fs,
        }
    }

    fn system_containers(&self, extent: Extent) -> Vec<ContainerStats> {
        let settings = &self.settings;
        let named = [
            ("kubelet", settings.kubelet.as_ref(), Some(settings.started)),
            ("runtime", settings.runtime.as_ref(), None),
            ("misc", settings.misc.as_ref(), None),
            ("pods", Some(&settings.kubepods), None),
        ];
        let stats = |(name, cgroup, started): (&str, Option<_>, Option<Timestamp>)| {
            let reader = self.reader(cgroup?)?;
            let last = reader.last.as_ref()?;
            Some(ContainerStats {
                name: name.to_owned(),
                start_time: started.or(reader.created),
                cpu: last.cpu_stats(),
                memory: last.memory_stats(),
                io: last.io_stats().filter(|_| extent == Extent::All),
                swap: last.swap_stats(),
                ..ContainerStats::default()
            })
        };
        named.into_iter().filter_map(stats).collect()
    }

    fn pod_stats(&self, pod: &Pod, extent: Extent) -> PodStats {
        let last = self.last(&pod.cgroup);
        let containers: Vec<ContainerStats> = pod
            .containers
            .iter()
            .map(|container| self.container_stats(container, extent))
            .collect();
        let cpu = last.and_then(|last| last.cpu_stats());
        let memory = last.and_then(|last| last.memory_stats());
        let swap = last.and_then(|last| last.swap_stats());
        let mut stats = PodStats {
            pod_ref: PodReference {
                name: pod.name.clone(),
                namespace: pod.namespace.clone(),
                uid: pod.uid.as_str().to_owned(),
            },
            start_time: pod.started,
            cpu: cpu.or_else(|| sum_cpu(&containers)),
            memory: memory.or_else(|| sum_memory(&containers)),
            swap: swap.or_else(|| sum_swap(&containers)),
            containers,
            ..PodStats::default()
        };
        if extent == Extent::CpuAndMemory {
            return stats;
        }
        stats.io = last.and_then(|last| last.io_stats());
        stats.network = self.node.time.and_then(|time| {
            let interfaces = self.networks.get(&pod.uid)?;
            Some(network_stats(interfaces, time))
        });
        stats.process_stats = self.process_stats(pod);
        self.add_storage(pod, &mut stats);
        stats
    }

    fn process_stats(&self, pod: &Pod) -> Option<ProcessStats> {
        let containers = pod.containers.iter();
        let counts = containers.filter_map(|found| self.last(&found.cgroup)?.processes);
        let total = counts.fold(None, |total, count| sum(total, Some(count)));
        total.map(|count| ProcessStats {
            process_count: Some(count),
        })
    }

    fn container_stats(&self, container: &Container, extent: Extent) -> ContainerStats {
        let last = self.last(&container.cgroup);
        let stats = ContainerStats {
            name: container.name.clone(),
            start_time: container.started,
            cpu: last.and_then(|last| last.cpu_stats()),
            memory: last.and_then(|last| last.memory_stats()),
            swap: last.and_then(|last| last.swap_stats()),
            ..ContainerStats::default()
        };
        if extent == Extent::CpuAndMemory {
            return stats;
        }
        ContainerStats {
            io: last.and_then(|last| last.io_stats()),
            rootfs: Some(self.root_fs_stats(&container.root_fs)),
            logs: self.on_node_fs(container.log_directory.as_deref()),
            ..stats
        }
    }
}
