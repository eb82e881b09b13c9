//! Between the JSON and what the engine works with, both ways.

use std::collections::BTreeMap;

use crate::object::identity::PodUid;
use crate::resources::{Bytes, Count};

use super::super::observation::{
    FsObservation, MemoryObservation, MemoryStall, Observation, PidObservation, Room,
};
use super::super::usage::{ContainerUsage, FsUsage, MemoryUsage, PodUsage, VolumeUsage};
use super::{
    ContainerStats, FsStats, MemoryStats, NodeStats, PodStats, ProcessStats, PsiData, PsiStats,
    RlimitStats, RuntimeStats, Summary, SwapStats, VolumeStats,
};

/// The name of the system container that is the cgroup of all pods.
const PODS_CONTAINER: &str = "pods";

impl Summary {
    /// What eviction reads of the node.
    pub fn observation(&self) -> Observation {
        let node = &self.node;
        let mut system_containers = node.system_containers.iter();
        let pods = system_containers.find(|container| container.name == PODS_CONTAINER);
        let runtime = node.runtime.as_ref();
        let memory = node.memory.as_ref();
        Observation {
            memory: memory.and_then(MemoryStats::observation),
            pods_memory: pods
                .and_then(|container| container.memory.as_ref())
                .and_then(MemoryStats::observation),
            node_fs: node.fs.as_ref().map(FsStats::observation),
            image_fs: runtime
                .and_then(|runtime| runtime.image_fs.as_ref())
                .map(FsStats::observation),
            container_fs: runtime
                .and_then(|runtime| runtime.container_fs.as_ref())
                .map(FsStats::observation),
            pids: node.rlimit.as_ref().and_then(|rlimit| {
                Some(PidObservation {
                    max: Count(rlimit.maxpid?),
                    running: Count(rlimit.curproc?),
                    time: rlimit.time,
                })
            }),
            memory_stall: memory.and_then(|memory| {
                let psi = memory.psi.as_ref()?;
                Some(MemoryStall {
                    full_avg10: psi.full.avg10,
                    time: psi.time.or(memory.time),
                })
            }),
            is_oom_killed: false,
            swap_available: node
                .swap
                .as_ref()
                .and_then(|swap| bytes(swap.swap_available_bytes)),
        }
    }

    /// What each pod uses. Of several entries of one pod the last counts.
    pub fn usages(&self) -> BTreeMap<PodUid, PodUsage> {
        let by_uid = |pod: &PodStats| (PodUid::new(&*pod.pod_ref.uid), pod.usage());
        self.pods.iter().map(by_uid).collect()
    }

    /// The document that gives the observation back; without pods.
    pub fn of_node(observation: &Observation) -> Summary {
        let mut memory = observation.memory.map(|memory| MemoryStats::of(&memory));
        if let Some(stall) = observation.memory_stall {
            let stats = memory.get_or_insert_default();
            stats.psi = Some(PsiStats {
                full: PsiData {
                    avg10: stall.full_avg10,
                    ..PsiData::default()
                },
                time: stall.time,
                ..PsiStats::default()
            });
        }
        let pods = observation.pods_memory.map(|memory| ContainerStats {
            name: PODS_CONTAINER.to_owned(),
            memory: Some(MemoryStats::of(&memory)),
            ..ContainerStats::default()
        });
        let fs = |fs: &Option<FsObservation>| fs.as_ref().map(FsStats::of);
        let runtime = RuntimeStats {
            image_fs: fs(&observation.image_fs),
            container_fs: fs(&observation.container_fs),
        };
        let node = NodeStats {
            system_containers: pods.into_iter().collect(),
            memory,
            fs: fs(&observation.node_fs),
            runtime: (runtime != RuntimeStats::default()).then_some(runtime),
            rlimit: observation.pids.map(|pids| RlimitStats {
                time: pids.time,
                maxpid: Some(pids.max.0),
                curproc: Some(pids.running.0),
            }),
            swap: observation.swap_available.map(|swap| SwapStats {
                swap_available_bytes: Some(swap.0.cast_unsigned()),
                ..SwapStats::default()
            }),
            ..NodeStats::default()
        };
        Summary {
            node,
            pods: Vec::new(),
        }
    }
}

fn bytes(number: Option<u64>) -> Option<Bytes> {
    number.map(|number| Bytes(number.cast_signed()))
}

fn number(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(|bytes| bytes.0.cast_unsigned())
}

impl MemoryStats {
    fn observation(&self) -> Option<MemoryObservation> {
        Some(MemoryObservation {
            available: bytes(self.available_bytes)?,
            working_set: bytes(self.working_set_bytes)?,
            kernel_available: bytes(self.mem_available_bytes),
            active_file: bytes(self.active_file_bytes),
            time: self.time,
        })
    }

    fn of(memory: &MemoryObservation) -> MemoryStats {
        MemoryStats {
            time: memory.time,
            available_bytes: number(Some(memory.available)),
            working_set_bytes: number(Some(memory.working_set)),
            mem_available_bytes: number(memory.kernel_available),
            active_file_bytes: number(memory.active_file),
            ..MemoryStats::default()
        }
    }
}

impl FsStats {
    fn observation(&self) -> FsObservation {
        let room = |available: Option<u64>, capacity: Option<u64>| {
            Some((available?.cast_signed(), capacity?.cast_signed()))
        };
        let bytes = room(self.available_bytes, self.capacity_bytes);
        let inodes = room(self.inodes_free, self.inodes);
        FsObservation {
            bytes: bytes.map(|(available, capacity)| Room {
                available: Bytes(available),
                capacity: Bytes(capacity),
            }),
            inodes: inodes.map(|(available, capacity)| Room {
                available: Count(available),
                capacity: Count(capacity),
            }),
            time: self.time,
        }
    }

    fn of(fs: &FsObservation) -> FsStats {
        FsStats {
            time: fs.time,
            available_bytes: fs.bytes.map(|room| room.available.0.cast_unsigned()),
            capacity_bytes: fs.bytes.map(|room| room.capacity.0.cast_unsigned()),
            inodes_free: fs.inodes.map(|room| room.available.0.cast_unsigned()),
            inodes: fs.inodes.map(|room| room.capacity.0.cast_unsigned()),
            ..FsStats::default()
        }
    }

    fn usage(stats: Option<&FsStats>) -> FsUsage {
        let inodes = stats.and_then(|fs| fs.inodes_used);
        FsUsage {
            used: stats.and_then(|fs| bytes(fs.used_bytes)),
            inodes: inodes.map(|inodes| Count(inodes.cast_signed())),
        }
    }

    fn of_usage(fs: &FsUsage) -> FsStats {
        FsStats {
            used_bytes: number(fs.used),
            inodes_used: fs.inodes.map(|inodes| inodes.0.cast_unsigned()),
            ..FsStats::default()
        }
    }
}

impl PodStats {
    /// What the pod uses.
    pub fn usage(&self) -> PodUsage {
        let working_set = |memory: &MemoryStats| bytes(memory.working_set_bytes);
        let processes = self
            .process_stats
            .as_ref()
            .and_then(|stats| stats.process_count);
        let storage = self.ephemeral_storage.as_ref();
        let container = |container: &ContainerStats| ContainerUsage {
            name: container.name.clone(),
            memory: container.memory.as_ref().and_then(working_set),
            root_fs: FsStats::usage(container.rootfs.as_ref()),
            logs: FsStats::usage(container.logs.as_ref()),
        };
        let volume = |volume: &VolumeStats| VolumeUsage {
            name: volume.name.clone(),
            fs: FsStats::usage(Some(&volume.fs)),
        };
        PodUsage {
            memory: self.memory.as_ref().map(|memory| MemoryUsage {
                working_set: working_set(memory),
            }),
            ephemeral_storage: storage.and_then(|fs| bytes(fs.used_bytes)),
            processes: processes.map(|count| Count(count.cast_signed())),
            containers: self.containers.iter().map(container).collect(),
            volumes: self.volume.iter().map(volume).collect(),
        }
    }

    /// The entry that gives the usage back; it does not say whose it is.
    pub fn of(usage: &PodUsage) -> PodStats {
        let memory = |working_set: Option<Bytes>| MemoryStats {
            working_set_bytes: number(working_set),
            ..MemoryStats::default()
        };
        let container = |container: &ContainerUsage| ContainerStats {
            name: container.name.clone(),
            memory: container.memory.map(|bytes| memory(Some(bytes))),
            rootfs: Some(FsStats::of_usage(&container.root_fs)),
            logs: Some(FsStats::of_usage(&container.logs)),
            ..ContainerStats::default()
        };
        let volume = |volume: &VolumeUsage| VolumeStats {
            name: volume.name.clone(),
            fs: FsStats::of_usage(&volume.fs),
            ..VolumeStats::default()
        };
        PodStats {
            containers: usage.containers.iter().map(container).collect(),
            memory: usage.memory.map(|usage| memory(usage.working_set)),
            volume: usage.volumes.iter().map(volume).collect(),
            ephemeral_storage: usage.ephemeral_storage.map(|used| FsStats {
                used_bytes: number(Some(used)),
                ..FsStats::default()
            }),
            process_stats: usage.processes.map(|count| ProcessStats {
                process_count: Some(count.0.cast_unsigned()),
            }),
            ..PodStats::default()
        }
    }
}
