//! What several node suites share: resource lists and cgroup configs as JSON.

use plimsoll_core::cgroup::conversion::kubelet_weight_from_shares;
use plimsoll_core::cgroup::{HugePageSize, ResourceConfig};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::resources::{Bytes, ResourceList, ResourceName};
use serde_json::{Map, Value, json};

/// The sizes that the recording host was set to.
pub(crate) fn huge_page_sizes() -> Vec<HugePageSize> {
    vec![HugePageSize(Bytes(2 << 20)), HugePageSize(Bytes(1 << 30))]
}

/// Canonical text and number in the unit that the README gives.
pub(crate) fn described_list(list: &ResourceList) -> Map<String, Value> {
    list.iter()
        .map(|(name, quantity)| {
            let number = if *name == ResourceName::CPU {
                quantity.milli_value()
            } else {
                quantity.value()
            };
            let described = json!({"s": quantity.canonical(), "n": number});
            (name.to_string(), described)
        })
        .collect()
}

pub(crate) fn parsed_list(list: &Value) -> ResourceList {
    let entries = list.as_object().into_iter().flatten();
    entries
        .map(|(name, text)| {
            let quantity = text.as_str().unwrap().parse().unwrap();
            (ResourceName::new(name), quantity)
        })
        .collect()
}

pub(crate) fn described_config(config: &ResourceConfig) -> Value {
    let huge_pages: Map<String, Value> = config
        .huge_page_limits
        .iter()
        .map(|(size, limit)| (size.0.0.to_string(), json!(limit.0)))
        .collect();
    json!({
        "memory": config.memory.map(|memory| memory.0),
        "cpuShares": config.cpu_shares,
        "cpuWeightKubelet": config.cpu_shares.map(kubelet_weight_from_shares),
        "cpuQuota": config.cpu_quota,
        "cpuPeriod": config.cpu_period,
        "pidsLimit": config.pids_limit,
        "hugePageLimit": huge_pages,
        "unified": config.unified,
    })
}

pub(crate) fn pod(api: &Value) -> PodView {
    PodView::from_api(&serde_json::from_value(api.clone()).unwrap()).unwrap()
}

/// A quantity in bytes; zero where none is given.
pub(crate) fn bytes(text: &Value) -> Bytes {
    let text = text.as_str().filter(|text| !text.is_empty());
    text.map_or(Bytes::ZERO, |text| {
        Bytes::from_quantity(&text.parse().unwrap())
    })
}
