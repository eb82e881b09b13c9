//! Limits of containers: CRI's message, as core and the kernel take it.

use std::collections::BTreeMap;

use plimsoll_core::cgroup::{HugePageSize, ResourceConfig, WeightFormula};
use plimsoll_core::resources::Bytes;

use super::cgroup::{Cgroup, Machine};
use crate::cgroup::Error;
use crate::wire::LinuxContainerResources;

/// What a cgroup should have for a container.
fn resource_config(resources: &LinuxContainerResources) -> ResourceConfig {
    let limits = resources.hugepage_limits.iter().filter_map(|limit| {
        let size = parse_page_size(&limit.page_size)?;
        Some((size, Bytes(i64::try_from(limit.limit).unwrap_or(i64::MAX))))
    });
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ResourceConfig {
        memory: Some(Bytes(resources.memory_limit_in_bytes)),
        cpu_shares: u64::try_from(resources.cpu_shares).ok(),
        cpu_quota: Some(resources.cpu_quota),
        cpu_period: u64::try_from(resources.cpu_period).ok(),
        cpuset: text(&resources.cpuset_cpus),
        pids_limit: None,
        huge_page_limits: limits.collect(),
        unified: resources.unified.clone(),
    }
}

/// `2MB` as in names of files, 2 Mi as a number.
fn parse_page_size(text: &str) -> Option<HugePageSize> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "B" | "" => 0,
        "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    let number: i64 = digits.parse().ok()?;
    Some(HugePageSize(Bytes(number.checked_mul(1 << unit)?)))
}

/// Writes the limits of a container into its cgroup.
pub(super) fn apply(
    machine: &Machine,
    cgroup: &Cgroup,
    resources: &LinuxContainerResources,
) -> Result<(), Error> {
    let mut files = machine
        .host()
        .render(&resource_config(resources), WeightFormula::Runtime);
    if !resources.cpuset_mems.is_empty() {
        files.insert("cpuset.mems".to_owned(), resources.cpuset_mems.clone());
    }
    let swap = v1_swap(cgroup, resources);
    // With swap limited too, the smaller limit must never be the one of both together.
    if let Some(swap) = &swap
        && raises(cgroup, "memory.memsw.limit_in_bytes", swap)
    {
        cgroup.write_if_present("memory.memsw.limit_in_bytes", swap)?;
    }
    // A quota is checked against the period that is in force.
    let (first, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = files
        .into_iter()
        .partition(|(name, _)| name == "cpu.cfs_period_us");
    cgroup.write(&first)?;
    cgroup.write(&rest)?;
    if let Some(swap) = &swap {
        cgroup.write_if_present("memory.memsw.limit_in_bytes", swap)?;
    }
    Ok(())
}

fn v1_swap(cgroup: &Cgroup, resources: &LinuxContainerResources) -> Option<String> {
    let limit = resources.memory_swap_limit_in_bytes;
    (!cgroup.is_v2() && limit != 0).then(|| limit.to_string())
}

fn raises(cgroup: &Cgroup, file: &str, text: &str) -> bool {
    let now = cgroup
        .read(file)
        .and_then(|now| now.trim().parse::<u64>().ok());
    match (now, text.parse::<u64>()) {
        (Some(now), Ok(next)) => next > now,
        // Minus one is no limit at all.
        _ => true,
    }
}

/// These limits with what a change sets set as there; zero and empty leave things as they are.
pub(super) fn updated(
    mut now: LinuxContainerResources,
    change: &LinuxContainerResources,
) -> LinuxContainerResources {
    let set = |now: &mut i64, value: i64| {
        if value != 0 {
            *now = value;
        }
    };
    set(&mut now.cpu_period, change.cpu_period);
    set(&mut now.cpu_quota, change.cpu_quota);
    set(&mut now.cpu_shares, change.cpu_shares);
    set(&mut now.memory_limit_in_bytes, change.memory_limit_in_bytes);
    set(
        &mut now.memory_swap_limit_in_bytes,
        change.memory_swap_limit_in_bytes,
    );
    set(&mut now.oom_score_adj, change.oom_score_adj);
    for (now, value) in [
        (&mut now.cpuset_cpus, &change.cpuset_cpus),
        (&mut now.cpuset_mems, &change.cpuset_mems),
    ] {
        if !value.is_empty() {
            now.clone_from(value);
        }
    }
    if !change.hugepage_limits.is_empty() {
        now.hugepage_limits.clone_from(&change.hugepage_limits);
    }
    now.unified.extend(change.unified.clone());
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_are_read_as_the_kernel_names_them() {
        assert_eq!(parse_page_size("2MB"), Some(HugePageSize(Bytes(2 << 20))));
        assert_eq!(parse_page_size("1GB"), Some(HugePageSize(Bytes(1 << 30))));
        assert_eq!(parse_page_size("64KB"), Some(HugePageSize(Bytes(64 << 10))));
        assert_eq!(parse_page_size("2Mi"), None);
        assert_eq!(parse_page_size(""), None);
    }

    #[test]
    fn update_keeps_unmentioned_resources() {
        let now = LinuxContainerResources {
            cpu_shares: 512,
            cpuset_cpus: "0".to_owned(),
            memory_limit_in_bytes: 1 << 20,
            ..Default::default()
        };
        let change = LinuxContainerResources {
            memory_limit_in_bytes: 2 << 20,
            unified: [("memory.high".to_owned(), "1".to_owned())].into(),
            ..Default::default()
        };
        let next = updated(now, &change);
        assert_eq!(
            (next.cpu_shares, next.memory_limit_in_bytes),
            (512, 2 << 20)
        );
        assert_eq!(next.cpuset_cpus, "0");
        assert_eq!(next.unified["memory.high"], "1");
    }
}
