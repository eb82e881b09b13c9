//! The desired settings of a cgroup, and the files they are written to.

use std::collections::BTreeMap;

use crate::resources::Bytes;

use super::conversion::{
    QUOTA_PERIOD_MICROS, kubelet_weight_from_shares, runtime_weight_from_shares,
};
use super::huge_page::HugePageSize;

/// The desired settings of a cgroup. `None` and missing entries are left as the kernel has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceConfig {
    /// Most memory; the kernel kills beyond it.
    pub memory: Option<Bytes>,
    /// Share of the CPU when others want it too.
    pub cpu_shares: Option<u64>,
    /// CPU time per period in microseconds; -1 for no limit.
    pub cpu_quota: Option<i64>,
    /// Length of the period in microseconds.
    pub cpu_period: Option<u64>,
    /// The CPUs it may run on: `0-3,5`.
    pub cpuset: Option<String>,
    /// Most processes and threads.
    pub pids_limit: Option<i64>,
    /// Most huge pages, by size.
    pub huge_page_limits: BTreeMap<HugePageSize, Bytes>,
    /// Further files of cgroup v2, as they are written.
    pub unified: BTreeMap<String, String>,
}

/// The generation of the kernel's cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One tree per controller.
    V1,
    /// One tree for all.
    V2,
}

/// How shares become the weight of cgroup v2; see [`super::conversion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightFormula {
    /// For the cgroups of the kubelet: kubepods, tiers and pods.
    Kubelet,
    /// For the cgroups of a container runtime.
    Runtime,
}

/// The properties of a machine that decide how a config is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Which interface.
    pub version: Version,
    /// The sizes of huge pages that the kernel has.
    pub huge_page_sizes: Vec<HugePageSize>,
    /// Whether there is a controller for huge pages.
    pub has_hugetlb: bool,
}

impl ResourceConfig {
    /// This config with what the other one sets set as there.
    #[must_use]
    pub fn overlaid_with(mut self, other: ResourceConfig) -> ResourceConfig {
        self.huge_page_limits.extend(other.huge_page_limits);
        self.unified.extend(other.unified);
        ResourceConfig {
            memory: other.memory.or(self.memory),
            cpu_shares: other.cpu_shares.or(self.cpu_shares),
            cpu_quota: other.cpu_quota.or(self.cpu_quota),
            cpu_period: other.cpu_period.or(self.cpu_period),
            cpuset: other.cpuset.or(self.cpuset),
            pids_limit: other.pids_limit.or(self.pids_limit),
            ..self
        }
    }
}

/// The value upstream's cgroup library takes for "not set".
const UNSET: i64 = 0;
/// The value it takes for "no limit".
const UNLIMITED: i64 = -1;

impl Host {
    /// The files of the cgroup and what is written into them.
    ///
    /// Zeros are not written, as upstream's library takes them for "not set". Matches
    /// opencontainers/cgroups v0.0.6, fs and fs2.
    pub fn render(
        &self,
        config: &ResourceConfig,
        formula: WeightFormula,
    ) -> BTreeMap<String, String> {
        let mut files = match self.version {
            Version::V1 => render_v1(config),
            Version::V2 => render_v2(config, formula),
        };
        if let Some(cpus) = &config.cpuset {
            files.insert("cpuset.cpus".to_owned(), cpus.clone());
        }
        if let Some(limit) = config.pids_limit {
            // systemd cannot write 0, so that both drivers use 1 instead.
            let text = match limit {
                0 => "1".to_owned(),
                1.. => limit.to_string(),
                _ => "max".to_owned(),
            };
            files.insert("pids.max".to_owned(), text);
        }
        if self.has_hugetlb {
            self.render_huge_pages(config, &mut files);
        }
        files
    }

    /// Sizes that are not mentioned are limited to none.
    fn render_huge_pages(&self, config: &ResourceConfig, files: &mut BTreeMap<String, String>) {
        let suffix = match self.version {
            Version::V1 => "limit_in_bytes",
            Version::V2 => "max",
        };
        let mut limits: BTreeMap<HugePageSize, Bytes> = self
            .huge_page_sizes
            .iter()
            .map(|size| (*size, Bytes::ZERO))
            .collect();
        limits.extend(&config.huge_page_limits);
        for (size, limit) in limits {
            let Some(part) = size.file_part() else {
                continue;
            };
            let text = limit.0.cast_unsigned().to_string();
            files.insert(format!("hugetlb.{part}.{suffix}"), text.clone());
            files.insert(format!("hugetlb.{part}.rsvd.{suffix}"), text);
        }
    }
}

fn render_v1(config: &ResourceConfig) -> BTreeMap<String, String> {
    let memory = config.memory.map_or(UNSET, |memory| memory.0);
    [
        ("cpu.shares", unless_zero(config.cpu_shares)),
        ("cpu.cfs_period_us", unless_zero(config.cpu_period)),
        ("cpu.cfs_quota_us", unless_zero(config.cpu_quota)),
        ("memory.limit_in_bytes", unless_zero(Some(memory))),
    ]
    .into_iter()
    .filter_map(|(name, text)| Some((name.to_owned(), text?)))
    .collect()
}

fn unless_zero<T: Default + PartialEq + ToString>(value: Option<T>) -> Option<String> {
    value
        .filter(|value| *value != T::default())
        .map(|value| value.to_string())
}

fn render_v2(config: &ResourceConfig, formula: WeightFormula) -> BTreeMap<String, String> {
    let weight = config.cpu_shares.map(|shares| match formula {
        WeightFormula::Kubelet => kubelet_weight_from_shares(shares),
        WeightFormula::Runtime => runtime_weight_from_shares(shares),
    });
    let memory = match config.memory.map_or(UNSET, |memory| memory.0) {
        UNSET => None,
        UNLIMITED => Some("max".to_owned()),
        limit => Some(limit.to_string()),
    };
    // Memory without limit takes the limit off swap too, as it did with cgroup v1.
    let swap = memory.clone().filter(|text| text == "max");
    let mut files = config.unified.clone();
    let fields = [
        ("cpu.weight", unless_zero(weight)),
        ("cpu.max", cpu_max(config)),
        ("memory.max", memory),
        ("memory.swap.max", swap),
    ];
    for (name, text) in fields {
        if let Some(text) = text {
            // Values of `unified` are written last and win.
            files.entry(name.to_owned()).or_insert(text);
        }
    }
    files
}

fn cpu_max(config: &ResourceConfig) -> Option<String> {
    let quota = config.cpu_quota.unwrap_or(UNSET);
    let period = config.cpu_period.unwrap_or(0);
    if quota == UNSET && period == 0 {
        return None;
    }
    let quota = match quota {
        1.. => quota.to_string(),
        _ => "max".to_owned(),
    };
    let period = match period {
        0 => QUOTA_PERIOD_MICROS,
        period => period,
    };
    Some(format!("{quota} {period}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(version: Version) -> Host {
        Host {
            version,
            huge_page_sizes: vec![HugePageSize(Bytes(2 << 20))],
            has_hugetlb: false,
        }
    }

    fn rendered(version: Version, config: &ResourceConfig) -> Vec<(String, String)> {
        let files = host(version).render(config, WeightFormula::Kubelet);
        files.into_iter().collect()
    }

    fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        files.iter().map(owned).collect()
    }

    #[test]
    fn zeros_are_not_written_and_minus_one_means_no_limit() {
        let config = ResourceConfig {
            memory: Some(Bytes(0)),
            cpu_quota: Some(-1),
            cpu_period: Some(0),
            pids_limit: Some(0),
            ..ResourceConfig::default()
        };
        assert_eq!(
            rendered(Version::V1, &config),
            owned(&[("cpu.cfs_quota_us", "-1"), ("pids.max", "1")])
        );
        assert_eq!(
            rendered(Version::V2, &config),
            owned(&[("cpu.max", "max 100000"), ("pids.max", "1")])
        );
        let unlimited = ResourceConfig {
            memory: Some(Bytes(-1)),
            pids_limit: Some(-1),
            ..ResourceConfig::default()
        };
        assert_eq!(
            rendered(Version::V2, &unlimited),
            owned(&[
                ("memory.max", "max"),
                ("memory.swap.max", "max"),
                ("pids.max", "max")
            ])
        );
    }

    #[test]
    fn unified_files_are_for_cgroup_v2_only() {
        let config = ResourceConfig {
            unified: [("memory.min".to_owned(), "1".to_owned())].into(),
            ..ResourceConfig::default()
        };
        assert!(rendered(Version::V1, &config).is_empty());
        assert_eq!(
            rendered(Version::V2, &config),
            owned(&[("memory.min", "1")])
        );
    }

    #[test]
    fn huge_pages_of_unmentioned_sizes_are_forbidden() {
        let host = Host {
            has_hugetlb: true,
            ..host(Version::V2)
        };
        let files = host.render(&ResourceConfig::default(), WeightFormula::Kubelet);
        assert_eq!(files["hugetlb.2MB.max"], "0");
        assert_eq!(files["hugetlb.2MB.rsvd.max"], "0");
    }

    #[test]
    fn the_upper_layer_wins_where_both_set_something() {
        let lower = ResourceConfig {
            memory: Some(Bytes(1)),
            cpu_shares: Some(2),
            ..ResourceConfig::default()
        };
        let upper = ResourceConfig {
            cpu_shares: Some(3),
            ..ResourceConfig::default()
        };
        let both = lower.overlaid_with(upper);
        assert_eq!((both.memory, both.cpu_shares), (Some(Bytes(1)), Some(3)));
    }
}
