//! What holds the machine's memory beside pods, for people: read once, after the decision.

use plimsoll_core::cgroup::{CgroupPath, Version};
use plimsoll_core::eviction::record::shortfall::Consumer;
use plimsoll_runtime::cgroup::{Layout, parse_own_cgroup};

use super::gauge::{CgroupMemory, Look, Reading, kibibytes};
use super::roster::children;
use super::settings::Settings;
use crate::stats::keyed::{each_entry, number_or_max};

/// How many cgroups beside each other are read.
const MOST_CGROUPS: usize = 256;
/// How many consumers are named.
const MOST_NAMED: usize = 8;
/// What holds less is not worth a name.
const LEAST: i64 = 1 << 20;
/// The name of the agent's own cgroup, as in the summary API.
const AGENT: &str = "kubelet";

/// The cgroups below the machine's with what they hold, the agent's own among them, then what the
/// kernel holds outside of them, and what is left; the largest first.
pub(super) fn consumers(
    settings: &Settings,
    layout: &Layout,
    look: &Look,
    reading: &mut Reading,
) -> Vec<Consumer> {
    let machine = &settings.machine;
    let own = own_cgroup(settings, layout);
    let mut paths = children(layout, machine);
    paths.truncate(MOST_CGROUPS);
    let measured = paths.iter().map(|path| measure(layout, path, reading));
    let mut all: Vec<(Option<&CgroupPath>, Consumer)> =
        paths.iter().map(Some).zip(measured).collect();
    if let Some(own) = &own {
        take_apart(&mut all, own, layout, reading);
    }
    let sum = |of: &dyn Fn(&Consumer) -> i64| -> i64 {
        let held = all.iter().map(|(_, consumer)| of(consumer));
        held.fold(0, i64::saturating_add)
    };
    let charged = sum(&|consumer| consumer.working_set);
    let charged_to_kernel = sum(&|consumer| consumer.kernel.unwrap_or_default());
    let is_whole = machine.as_str() == "/";
    let kernel = match is_whole {
        true => kernel_of_machine(settings),
        false => kernel_memory(layout, machine),
    };
    let kernel = kernel
        .unwrap_or_default()
        .saturating_sub(charged_to_kernel)
        .max(0);
    let working_set = look.machine.working_set.0;
    // What the root cgroup is charged with has no kernel memory in it.
    let unaccounted = match is_whole {
        true => working_set.saturating_sub(charged.saturating_sub(charged_to_kernel)),
        false => working_set.saturating_sub(charged).saturating_sub(kernel),
    };
    let rest = [("kernel", kernel), ("unaccounted", unaccounted)];
    let mut all: Vec<Consumer> = all.into_iter().map(|(_, consumer)| consumer).collect();
    all.extend(rest.map(|(name, working_set)| Consumer {
        name: name.to_owned(),
        working_set,
        kernel: None,
    }));
    all.retain(|consumer| consumer.working_set >= LEAST);
    all.sort_by_key(|consumer| std::cmp::Reverse(consumer.working_set));
    all.truncate(MOST_NAMED);
    all
}

fn own_cgroup(settings: &Settings, layout: &Layout) -> Option<CgroupPath> {
    let file = settings.mount_root.join("proc/self/cgroup");
    let text = std::fs::read_to_string(file).ok()?;
    parse_own_cgroup(&text, layout.version()).filter(|path| path.as_str() != "/")
}

/// Names the agent's own cgroup; what it holds is subtracted from a cgroup around it.
fn take_apart(
    all: &mut Vec<(Option<&CgroupPath>, Consumer)>,
    own: &CgroupPath,
    layout: &Layout,
    reading: &mut Reading,
) {
    let is_around = |path: &CgroupPath| {
        let inner = own.as_str().strip_prefix(path.as_str());
        inner.is_some_and(|inner| inner.starts_with('/'))
    };
    for (path, consumer) in all.iter_mut() {
        let Some(path) = path else { continue };
        if *path == own {
            consumer.name = AGENT.to_owned();
            return;
        }
        if is_around(path) {
            let agent = Consumer {
                name: AGENT.to_owned(),
                ..measure(layout, own, reading)
            };
            consumer.working_set = consumer.working_set.saturating_sub(agent.working_set);
            consumer.kernel = consumer.kernel.map(|kernel| {
                kernel
                    .saturating_sub(agent.kernel.unwrap_or_default())
                    .max(0)
            });
            all.push((None, agent));
            return;
        }
    }
}

fn measure(layout: &Layout, path: &CgroupPath, reading: &mut Reading) -> Consumer {
    let amounts = CgroupMemory::new(layout, path).read(reading);
    let working_set = amounts.map_or(0, |amounts| amounts.working_set());
    Consumer {
        name: path.as_str().to_owned(),
        working_set: i64::try_from(working_set).unwrap_or(i64::MAX),
        kernel: kernel_memory(layout, path),
    }
}

/// The kernel memory that a cgroup is charged with.
fn kernel_memory(layout: &Layout, cgroup: &CgroupPath) -> Option<i64> {
    let directory = layout.directory("memory", cgroup)?;
    let bytes = match layout.version() {
        Version::V1 => {
            let text = std::fs::read_to_string(directory.join("memory.kmem.usage_in_bytes"));
            number_or_max(&text.ok()?)?
        }
        Version::V2 => {
            let text = std::fs::read_to_string(directory.join("memory.stat")).ok()?;
            kernel_of_stat(&text)
        }
    };
    i64::try_from(bytes).ok()
}

/// Kernels before 5.18 do not give the sum.
fn kernel_of_stat(text: &str) -> u64 {
    let (mut whole, mut parts) = (None, 0_u64);
    each_entry(text, |key, number| match key {
        "kernel" => whole = Some(number),
        "slab" | "kernel_stack" | "pagetables" | "percpu" => parts = parts.saturating_add(number),
        _ => {}
    });
    whole.unwrap_or(parts)
}

fn kernel_of_machine(settings: &Settings) -> Option<i64> {
    let text = std::fs::read_to_string(settings.mount_root.join("proc/meminfo")).ok()?;
    let parts = ["Slab:", "KernelStack:", "PageTables:", "Percpu:"];
    let parts = parts.iter().filter_map(|key| kibibytes(&text, key));
    i64::try_from(parts.fold(0, u64::saturating_add)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_memory_is_the_kernels_sum_or_the_sum_of_its_parts() {
        let old = "anon 5\nslab 10\nkernel_stack 2\npagetables 3\npercpu 1\n";
        assert_eq!(kernel_of_stat(old), 16);
        assert_eq!(kernel_of_stat(&format!("kernel 20\n{old}")), 20);
    }
}
