//! Limits, from core's plan to the messages of CRI.

use plimsoll_core::cgroup::container::{ContainerSettings, container_resources};
use plimsoll_core::cgroup::{self, LinuxContainerResources as Planned};
use plimsoll_core::object::pod::{ContainerKind, ContainerView, Overhead, PodView, Requirements};
use plimsoll_core::resources::{ResourceList, ResourceName};
use plimsoll_runtime::wire::{HugepageLimit, LinuxContainerResources};

/// The resources of a container, for the runtime. A container that the view does not have, as an
/// ephemeral one, has neither requests nor limits.
pub fn linux_resources(
    pod: &PodView,
    container: &str,
    settings: &ContainerSettings,
) -> LinuxContainerResources {
    let unlimited = ContainerView {
        name: container.to_owned(),
        ..ContainerView::default()
    };
    let known = pod.all_containers().find(|view| view.name == container);
    let view = known.unwrap_or(&unlimited);
    render(&container_resources(pod, view, settings, false))
}

/// The message of what core planned.
pub fn render(planned: &Planned) -> LinuxContainerResources {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let huge_pages = planned.huge_page_limits.iter();
    LinuxContainerResources {
        cpu_period: signed(planned.cpu_period),
        cpu_quota: planned.cpu_quota,
        cpu_shares: signed(planned.cpu_shares),
        memory_limit_in_bytes: planned.memory_limit.0,
        memory_swap_limit_in_bytes: planned.memory_swap_limit.0,
        oom_score_adj: planned.oom_score_adj,
        hugepage_limits: huge_pages
            .filter_map(|(size, limit)| {
                Some(HugepageLimit {
                    page_size: size.file_part()?,
                    limit: u64::try_from(limit.0).unwrap_or_default(),
                })
            })
            .collect(),
        unified: planned.unified.clone(),
        ..LinuxContainerResources::default()
    }
}

/// The whole pod without its overhead, for runtimes that size their sandboxes.
pub fn sandbox_resources(pod: &PodView, settings: &ContainerSettings) -> LinuxContainerResources {
    let requests = pod.requests(Overhead::Excluded);
    let limits = pod.limits(Overhead::Excluded);
    sized(requests, limits, settings)
}

/// What the sandbox needs for itself: requested and limited alike.
pub fn overhead_resources(pod: &PodView, settings: &ContainerSettings) -> LinuxContainerResources {
    if pod.overhead.is_empty() {
        return LinuxContainerResources::default();
    }
    let mut overhead = pod.overhead.clone();
    if !overhead.contains(&ResourceName::CPU) {
        let none = overhead.get_or_zero(&ResourceName::CPU);
        overhead.insert(ResourceName::CPU, none);
    }
    sized(overhead.clone(), overhead, settings)
}

/// Cpu and memory as of a lone container with these; sandboxes have no other resources.
fn sized(
    requests: ResourceList,
    limits: ResourceList,
    settings: &ContainerSettings,
) -> LinuxContainerResources {
    let container = ContainerView {
        kind: ContainerKind::App,
        resources: Requirements { requests, limits },
        ..ContainerView::default()
    };
    let settings = ContainerSettings {
        swap: None,
        memory_qos: cgroup::MemoryQos::Off,
        ..settings.clone()
    };
    let planned = container_resources(&PodView::default(), &container, &settings, false);
    render(&Planned {
        oom_score_adj: 0,
        huge_page_limits: Default::default(),
        ..planned
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods::spec::testing::{container_settings, pod_with};

    fn view(spec: serde_json::Value) -> PodView {
        PodView::from_api(&pod_with(spec)).unwrap()
    }

    #[test]
    fn cri_resources_match_the_plan_of_core() {
        let pod = view(json!({"containers": [{"name": "c", "resources": {
            "requests": {"cpu": "250m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "128Mi", "hugepages-2Mi": "4Mi"},
        }}]}));
        let got = linux_resources(&pod, "c", &container_settings());
        assert_eq!(
            (got.cpu_shares, got.cpu_quota, got.cpu_period),
            (256, 100_000, 100_000)
        );
        assert_eq!(got.memory_limit_in_bytes, 128 << 20);
        assert_eq!(got.oom_score_adj, 999);
        let pages: Vec<_> = got
            .hugepage_limits
            .iter()
            .map(|limit| (limit.page_size.as_str(), limit.limit))
            .collect();
        assert_eq!(pages, [("2MB", 4 << 20)]);
        assert_eq!(
            linux_resources(&pod, "debug", &container_settings()).cpu_shares,
            2
        );
    }

    #[test]
    fn sandboxes_are_sized_by_the_whole_pod_and_by_its_overhead() {
        let pod = view(json!({
            "overhead": {"cpu": "100m", "memory": "10Mi"},
            "containers": [
                {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "64Mi"},
                    "requests": {"cpu": "1", "memory": "64Mi"}}},
                {"name": "b", "resources": {"limits": {"cpu": "500m", "memory": "64Mi"},
                    "requests": {"cpu": "250m", "memory": "64Mi"}}},
            ],
        }));
        let settings = container_settings();
        let whole = sandbox_resources(&pod, &settings);
        assert_eq!((whole.cpu_shares, whole.cpu_quota), (1280, 150_000));
        assert_eq!(whole.memory_limit_in_bytes, 128 << 20);
        assert_eq!(whole.oom_score_adj, 0);
        let overhead = overhead_resources(&pod, &settings);
        assert_eq!((overhead.cpu_shares, overhead.cpu_quota), (102, 10_000));
        assert_eq!(overhead.memory_limit_in_bytes, 10 << 20);
    }

    #[test]
    fn pod_without_overhead_has_empty_overhead_resources() {
        let pod = view(json!({"containers": []}));
        let got = overhead_resources(&pod, &container_settings());
        assert_eq!(got, LinuxContainerResources::default());
    }
}
