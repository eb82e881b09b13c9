//! ResourceSlices.

use k8s_openapi::api::resource::v1::{Device, ResourceSlice, ResourceSliceSpec};

use super::super::metadata::{self, Scope};
use super::super::names::{NameRule, dns_label, dns_subdomain};
use super::super::path::Path;
use super::super::pod::check_node_selector;
use super::super::problems::{Problems, json};
use super::super::storage::check_driver_name;
use super::{check_each, check_qualified_name, check_unique};

const MAX_DEVICES: usize = 128;
const MAX_ADVANCED_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_POOL_BYTES: usize = 253;
const ONE_OF: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

pub(in super::super) fn validate_slice(slice: &ResourceSlice, problems: &mut Problems) {
    let meta = &slice.metadata;
    metadata::check(meta, Scope::Cluster, NameRule::Subdomain, problems);
    check_spec(&slice.spec, None, problems);
}

pub(in super::super) fn validate_slice_update(
    new: &ResourceSlice,
    old: &ResourceSlice,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_spec(&new.spec, Some(&old.spec), problems);
}

fn check_spec(spec: &ResourceSliceSpec, old: Option<&ResourceSliceSpec>, problems: &mut Problems) {
    let path = Path::new("spec");
    check_driver_name(&spec.driver, &path.child("driver"), problems);
    let pool_path = path.child("pool");
    check_pool(spec, &pool_path, problems);
    if let Some(old) = old {
        let name_path = pool_path.child("name");
        problems.immutable(&name_path, &spec.pool.name, &old.pool.name);
        problems.immutable(&path.child("driver"), &spec.driver, &old.driver);
        problems.immutable(&path.child("nodeName"), &spec.node_name, &old.node_name);
    }
    check_place(spec, &path, problems);
    if spec.shared_counters.is_some() && spec.devices.is_some() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        problems.invalid(&path, "", detail);
    }
    let devices = spec.devices.as_deref().unwrap_or_default();
    let is_advanced = |device: &Device| {
        device
            .taints
            .as_ref()
            .is_some_and(|taints| !taints.is_empty())
            || device
                .consumes_counters
                .as_ref()
                .is_some_and(|counters| !counters.is_empty())
    };
    let most = if devices.iter().any(is_advanced) {
        MAX_ADVANCED_DEVICES
    } else {
        MAX_DEVICES
    };
    let devices_path = path.child("devices");
    check_each(devices, most, &devices_path, problems, check_device);
    let names = devices.iter().map(|device| device.name.as_str());
    check_unique(names, most, &devices_path, problems);
    let sets = spec.shared_counters.as_deref().unwrap_or_default();
    let sets_path = path.child("sharedCounters");
    check_each(
        sets,
        MAX_COUNTER_SETS,
        &sets_path,
        problems,
        |set, path, problems| {
            problems.invalid_each(&path.child("name"), &set.name, dns_label(&set.name));
        },
    );
    let names = sets.iter().map(|set| set.name.as_str());
    check_unique(names, MAX_COUNTER_SETS, &sets_path, problems);
}

fn check_pool(spec: &ResourceSliceSpec, path: &Path<'_>, problems: &mut Problems) {
    let pool = &spec.pool;
    let name_path = path.child("name");
    if pool.name.is_empty() {
        problems.required(&name_path, "");
    } else {
        if pool.name.len() > MAX_POOL_BYTES {
            problems.too_long(&name_path, MAX_POOL_BYTES);
        }
        for part in pool.name.split('/') {
            problems.invalid_each(&name_path, part, dns_subdomain(part));
        }
    }
    problems.positive(&path.child("resourceSliceCount"), pool.resource_slice_count);
    if pool.generation < 0 {
        let detail = "must be greater than or equal to zero";
        problems.invalid(&path.child("generation"), pool.generation, detail);
    }
}

/// The nodes that can use the devices, in one of four forms.
fn check_place(spec: &ResourceSliceSpec, path: &Path<'_>, problems: &mut Problems) {
    let mut given = Vec::new();
    let name_path = path.child("nodeName");
    match spec.node_name.as_deref() {
        None => {}
        Some("") => {
            let detail = "must be either unset or set to a non-empty string";
            problems.invalid(&name_path, "", detail);
        }
        Some(name) => {
            given.push("`nodeName`");
            problems.invalid_each(&name_path, name, dns_subdomain(name));
        }
    }
    if let Some(selector) = &spec.node_selector {
        given.push("`nodeSelector`");
        let path = path.child("nodeSelector");
        check_node_selector(selector, &path, problems);
        if selector.node_selector_terms.len() != 1 {
            let shown = json(&selector.node_selector_terms);
            let detail = "must have exactly one node selector term";
            problems.invalid(&path.child("nodeSelectorTerms"), shown, detail);
        }
    }
    for (field, shown, flag) in [
        ("allNodes", "`allNodes`", spec.all_nodes),
        (
            "perDeviceNodeSelection",
            "`perDeviceNodeSelection`",
            spec.per_device_node_selection,
        ),
    ] {
        match flag {
            Some(true) => given.push(shown),
            Some(false) => {
                let detail = "must be either unset or set to true";
                problems.invalid(&path.child(field), false, detail);
            }
            None => {}
        }
    }
    match given.as_slice() {
        [] => problems.required(path, ONE_OF),
        [_] => {}
        many => {
            let shown = format!("{{{}}}", many.join(", "));
            let detail = format!("{ONE_OF}, but multiple fields are set");
            problems.invalid(path, &shown, detail);
        }
    }
}

fn check_device(device: &Device, path: &Path<'_>, problems: &mut Problems) {
    problems.invalid_each(&path.child("name"), &device.name, dns_label(&device.name));
    let attributes = device.attributes.iter().flat_map(|map| map.keys());
    for name in attributes {
        let path = path.child("attributes");
        check_qualified_name(name, &path.key(name), problems);
    }
    for name in device.capacity.iter().flat_map(|map| map.keys()) {
        let path = path.child("capacity");
        check_qualified_name(name, &path.key(name), problems);
    }
}
