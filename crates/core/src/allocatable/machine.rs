//! The resources of a machine.

use crate::quantity::{Format, Quantity};
use crate::resources::{Bytes, Count, ResourceList, ResourceName};

/// The parts of a machine that are shared out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Logical processors.
    pub cores: i64,
    /// `MemTotal`.
    pub memory: Bytes,
    /// Huge pages by size.
    pub huge_pages: Vec<HugePages>,
    /// Size of the file system with the kubelet's root directory; `None` where local storage is
    /// not isolated.
    pub root_fs: Option<Bytes>,
    /// The smaller of `pid_max` and `threads-max`; `None` where it cannot be read.
    pub max_pid: Option<Count>,
}

/// The huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Size of a page.
    pub page_size: Bytes,
    /// Number of pages.
    pub count: i64,
}

/// How many pods a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodCount {
    /// `maxPods`.
    pub max_pods: i64,
    /// `podsPerCore`; zero or less for no such bound.
    pub pods_per_core: i64,
}

impl Default for PodCount {
    /// Upstream's defaults.
    fn default() -> Self {
        PodCount {
            max_pods: 110,
            pods_per_core: 0,
        }
    }
}

impl PodCount {
    /// The bound on a machine with that many cores.
    pub fn on(self, cores: i64) -> Count {
        if self.pods_per_core > 0 {
            let by_cores = cores.saturating_mul(self.pods_per_core);
            Count(by_cores.min(self.max_pods))
        } else {
            Count(self.max_pods)
        }
    }
}

impl Machine {
    /// Everything that can be reserved or limited: cpu, memory, huge pages, disk and process ids.
    pub fn capacity(&self) -> ResourceList {
        let mut capacity = ResourceList::new();
        let millicores = self.cores.wrapping_mul(1000);
        let cpu = Quantity::from_milli(millicores, Format::DecimalSi);
        capacity.insert(ResourceName::CPU, cpu);
        capacity.insert(ResourceName::MEMORY, self.memory.to_quantity());
        for pages in &self.huge_pages {
            let bytes = Bytes(pages.page_size.0.wrapping_mul(pages.count));
            let name = ResourceName::huge_pages(pages.page_size);
            capacity.insert(name, bytes.to_quantity());
        }
        if let Some(size) = self.root_fs {
            capacity.insert(ResourceName::EPHEMERAL_STORAGE, size.to_quantity());
        }
        if let Some(count) = self.max_pid {
            capacity.insert(ResourceName::PID, count.to_quantity());
        }
        capacity
    }
}
