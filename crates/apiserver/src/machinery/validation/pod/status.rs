//! Pod status updates.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodExtendedResourceClaimStatus, PodSpec, PodStatus,
};
use plimsoll_core::object::syntax::check_label_key;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::ResourceName;

use super::super::address::{check_ip, is_dual_stack};
use super::super::internal::Address;
use super::super::metadata;
use super::super::names::{dns_label, dns_subdomain};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::annotations;

const MAX_HEALTH_MESSAGE_BYTES: usize = 1024;
const MAX_ID: i64 = i32::MAX as i64;
const NOT_NEGATIVE: &str = "must be a non-negative integer";

pub(in super::super) fn validate_status_update(new: &Pod, old: &Pod, problems: &mut Problems) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let meta = Path::new("metadata");
    annotations::check_update(new, old, &meta.child("annotations"), problems);
    let (empty_spec, empty) = (PodSpec::default(), PodStatus::default());
    let (new_spec, old_spec) = (
        new.spec.as_ref().unwrap_or(&empty_spec),
        old.spec.as_ref().unwrap_or(&empty_spec),
    );
    let status = new.status.as_ref().unwrap_or(&empty);
    let old_status = old.status.as_ref().unwrap_or(&empty);
    let path = Path::new("status");
    check_conditions(status, &path.child("conditions"), problems);
    if text(&new_spec.node_name) != text(&old_spec.node_name) {
        problems.forbidden(&path.child("nodeName"), "may not be changed directly");
    }
    check_nomination(
        status,
        old_status,
        old_spec,
        &path.child("nominatedNodeName"),
        problems,
    );
    if let Some(generation) = status
        .observed_generation
        .filter(|generation| *generation < 0)
    {
        problems.invalid(&path.child("observedGeneration"), generation, NOT_NEGATIVE);
    }
    let (qos, old_qos) = (text(&status.qos_class), text(&old_status.qos_class));
    problems.immutable(&path.child("qosClass"), &qos, &old_qos);
    check_transitions(status, old_status, old_spec, &path, problems);
    check_claims(status, new_spec, &path, problems);
    check_addresses(status, old_status, &path, problems);
    check_users(status, new_spec, &path, problems);
    check_allocated(status, new_spec, &path, problems);
}

fn check_conditions(status: &PodStatus, list: &Path<'_>, problems: &mut Problems) {
    for (index, condition) in status.conditions.iter().flatten().enumerate() {
        let path = list.index(index);
        if let Some(generation) = condition.observed_generation.filter(|g| *g < 0) {
            problems.invalid(&path.child("observedGeneration"), generation, NOT_NEGATIVE);
        }
        let name = condition.type_.as_str();
        if !["PodScheduled", "Ready", "Initialized"].contains(&name) {
            problems.invalid_each(&path.child("Type"), name, check_label_key(name));
        }
    }
}

fn check_nomination(
    new: &PodStatus,
    old: &PodStatus,
    old_spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let name = text(&new.nominated_node_name);
    if name.is_empty() || name == text(&old.nominated_node_name) {
        return;
    }
    problems.invalid_each(path, name, dns_subdomain(name));
    if !text(&old_spec.node_name).is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        problems.forbidden(path, detail);
    }
}

/// A terminated container stays terminated unless its restart policy allows a restart.
fn check_transitions(
    new: &PodStatus,
    old: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let rules = spec
        .containers
        .iter()
        .chain(init)
        .flat_map(|c| c.restart_policy_rules.iter());
    let could_all_restart = rules
        .flatten()
        .any(|rule| rule.action == "RestartAllContainers");
    type Statuses = Option<Vec<ContainerStatus>>;
    let lists: [(&str, &Statuses, &Statuses, &[Container]); 3] = [
        (
            "containerStatuses",
            &new.container_statuses,
            &old.container_statuses,
            &spec.containers,
        ),
        (
            "initContainerStatuses",
            &new.init_container_statuses,
            &old.init_container_statuses,
            init,
        ),
        (
            "ephemeralContainerStatuses",
            &new.ephemeral_container_statuses,
            &old.ephemeral_container_statuses,
            &[],
        ),
    ];
    for (field, new, old, containers) in lists {
        if could_all_restart && field != "ephemeralContainerStatuses" {
            continue;
        }
        let list = path.child(field);
        for (index, old) in old.iter().flatten().enumerate() {
            let Some(exit_code) = exit_code(old) else {
                continue;
            };
            let is_back = |new: &&ContainerStatus| new.name == old.name && !is_terminated(new);
            let container = containers
                .iter()
                .find(|container| container.name == old.name);
            let may_restart = container.is_some_and(|c| should_restart(c, spec, exit_code));
            if new.iter().flatten().any(|new| is_back(&new)) && !may_restart {
                let path = list.index(index);
                let detail = "may not be transitioned to non-terminated state";
                problems.forbidden(&path.child("state"), detail);
            }
        }
    }
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    let terminated = status.state.as_ref()?.terminated.as_ref()?;
    Some(terminated.exit_code)
}

fn is_terminated(status: &ContainerStatus) -> bool {
    exit_code(status).is_some()
}

/// Matches v1.36 pkg/api/v1/pod/util.go, `ContainerShouldRestart`.
fn should_restart(container: &Container, spec: &PodSpec, exit_code: i32) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    };
    let Some(policy) = container.restart_policy.as_deref() else {
        return by_policy(text(&spec.restart_policy));
    };
    let matching = container
        .restart_policy_rules
        .iter()
        .flatten()
        .find(|rule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let is_listed = codes.values.iter().flatten().any(|code| *code == exit_code);
                match codes.operator.as_str() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    _ => false,
                }
            })
        });
    match matching.map(|rule| rule.action.as_str()) {
        Some("Restart" | "RestartAllContainers") => true,
        _ if ["Always", "OnFailure", "Never"].contains(&policy) => by_policy(policy),
        _ => by_policy(text(&spec.restart_policy)),
    }
}

fn check_claims(status: &PodStatus, spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    let list = path.child("resourceClaimStatuses");
    let mut names = BTreeSet::new();
    for (index, entry) in status.resource_claim_statuses.iter().flatten().enumerate() {
        let path = list.index(index);
        if !claims.iter().any(|claim| claim.name == entry.name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            problems.invalid(&path.child("name"), &entry.name, detail);
        }
        if !names.insert(&entry.name) {
            problems.duplicate(&path.child("name"), &entry.name);
        }
        if let Some(name) = &entry.resource_claim_name {
            problems.invalid_each(&path.child("resourceClaimName"), name, dns_subdomain(name));
        }
    }
    if let Some(extended) = &status.extended_resource_claim_status {
        let path = path.child("extendedResourceClaimStatus");
        check_extended_claim(extended, spec, &path, problems);
    }
    check_allocatable_claims(status, spec, path, problems);
}

fn check_extended_claim(
    claim: &PodExtendedResourceClaimStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.child("requestMappings");
    if claim.request_mappings.is_empty() {
        problems.required(&list, "at least one request mapping is required");
    }
    let mut seen = BTreeSet::new();
    for (index, mapping) in claim.request_mappings.iter().enumerate() {
        let item = list.index(index);
        let (container, resource) = (
            mapping.container_name.as_str(),
            mapping.resource_name.as_str(),
        );
        let mut all = spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().flatten());
        match all.find(|c| c.name == container) {
            Some(found) => {
                let requests = found.resources.as_ref().and_then(|r| r.requests.as_ref());
                if !requests.is_some_and(|requests| requests.contains_key(resource)) {
                    let detail = "must match the extended resource name of an entry in \
                                  spec.initContainers.resources.requests or \
                                  spec.containers.resources.requests";
                    problems.invalid(&item.child("resourceName"), resource, detail);
                }
            }
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or \
                              spec.containers.name";
                problems.invalid(&item.child("containerName"), container, detail);
            }
        }
        let request = mapping.request_name.as_str();
        problems.invalid_each(&path.child("requestName"), request, dns_label(request));
        if !seen.insert((container, resource, request)) {
            problems.duplicate(&item.child("containerName"), container);
            problems.duplicate(&item.child("resourceName"), resource);
            problems.duplicate(&item.child("requestName"), request);
        }
    }
    let name_path = path.child("resourceClaimName");
    match claim.resource_claim_name.as_str() {
        "" => problems.required(&name_path, ""),
        name => problems.invalid_each(&name_path, name, dns_subdomain(name)),
    }
}

fn check_allocatable_claims(
    status: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.child("nodeAllocatableResourceClaimStatuses");
    let in_spec = spec
        .resource_claims
        .iter()
        .flatten()
        .map(|c| &c.resource_claim_name);
    let in_status = status
        .resource_claim_statuses
        .iter()
        .flatten()
        .map(|c| &c.resource_claim_name);
    let known: BTreeSet<&str> = in_spec
        .chain(in_status)
        .filter_map(|name| name.as_deref())
        .collect();
    let entries = status
        .node_allocatable_resource_claim_statuses
        .iter()
        .flatten();
    for (index, entry) in entries.enumerate() {
        let path = list.index(index);
        let name = entry.resource_claim_name.as_str();
        let name_path = path.child("resourceClaimName");
        if name.is_empty() {
            problems.required(&name_path, "must not be empty");
        }
        if !known.contains(name) {
            problems.invalid(&name_path, name, "no mapping found in pod reference");
        }
        if entry.containers.as_ref().is_none_or(Vec::is_empty) {
            problems.required(&path.child("containers"), "must not be empty");
        }
        let resources = path.child("resources");
        if entry.resources.is_empty() {
            problems.required(&resources, "must not be empty");
        }
        for (resource, quantity) in &entry.resources {
            let path = resources.key(resource);
            if !ResourceName::new(resource.as_str()).is_native() {
                let detail = "must be a node allocatable resource name";
                problems.invalid(&path, json(resource), detail);
            }
            if quantity
                .0
                .parse::<Quantity>()
                .is_ok_and(|quantity| quantity.signum() < 0)
            {
                problems.invalid(&path, &quantity.0, "must be non-negative");
            }
        }
    }
}

fn check_addresses(new: &PodStatus, old: &PodStatus, path: &Path<'_>, problems: &mut Problems) {
    let pod_ips = |status: &PodStatus| -> Vec<String> {
        status
            .pod_ips
            .iter()
            .flatten()
            .map(|ip| ip.ip.clone())
            .collect()
    };
    let host_ips = |status: &PodStatus| -> Vec<String> {
        status
            .host_ips
            .iter()
            .flatten()
            .map(|ip| ip.ip.clone())
            .collect()
    };
    check_address_list(
        &pod_ips(new),
        &pod_ips(old),
        &path.child("podIPs"),
        problems,
    );
    let hosts = host_ips(new);
    let list = path.child("hostIPs");
    if let Some(first) = hosts.first().filter(|first| *first != text(&new.host_ip)) {
        let path = list.index(0);
        problems.invalid(&path.child("ip"), first, "must be equal to `hostIP`");
    }
    check_address_list(&hosts, &host_ips(old), &list, problems);
}

fn check_address_list(new: &[String], old: &[String], list: &Path<'_>, problems: &mut Problems) {
    for (index, address) in new.iter().enumerate() {
        check_ip(address, old, &list.index(index), problems);
    }
    if new.len() < 2 {
        return;
    }
    let is_dual = is_dual_stack(new.iter().map(String::as_str));
    if is_dual.is_none() {
        let wrong = new
            .iter()
            .find(|ip| is_dual_stack(std::iter::once(ip.as_str())).is_none());
        let wrong = wrong.map(String::as_str).unwrap_or_default();
        problems.internal(
            list,
            format!("failed to check for dual stack with error:ip {wrong} is invalid"),
        );
    }
    if is_dual != Some(true) || new.len() > 2 {
        let shown: Vec<Address<'_>> = new.iter().map(|ip| Address { ip }).collect();
        let detail = "may specify no more than one IP for each IP family";
        problems.invalid(list, json(&shown), detail);
    }
}

/// The three lists of container statuses with their names.
fn all_statuses(status: &PodStatus) -> [(&'static str, &[ContainerStatus]); 3] {
    [
        (
            "containerStatuses",
            status.container_statuses.as_deref().unwrap_or_default(),
        ),
        (
            "initContainerStatuses",
            status
                .init_container_statuses
                .as_deref()
                .unwrap_or_default(),
        ),
        (
            "ephemeralContainerStatuses",
            status
                .ephemeral_container_statuses
                .as_deref()
                .unwrap_or_default(),
        ),
    ]
}

fn check_users(status: &PodStatus, spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let os = spec.os.as_ref().map_or("linux", |os| os.name.as_str());
    for (field, statuses) in all_statuses(status) {
        let list = path.child(field);
        for (index, status) in statuses.iter().enumerate() {
            let Some(linux) = status.user.as_ref().and_then(|user| user.linux.as_ref()) else {
                continue;
            };
            let item = list.index(index);
            let user = item.child("user");
            let path = user.child("linux");
            if os == "windows" {
                problems.forbidden(&path, "cannot be set for a windows pod");
            }
            if os != "linux" {
                continue;
            }
            problems.in_range(&path.child("uid"), linux.uid, 0, MAX_ID);
            problems.in_range(&path.child("gid"), linux.gid, 0, MAX_ID);
            let groups = path.child("supplementalGroups");
            for (index, group) in linux.supplemental_groups.iter().flatten().enumerate() {
                problems.in_range(&groups.index(index), *group, 0, MAX_ID);
            }
        }
    }
}

fn check_allocated(status: &PodStatus, spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    for (field, statuses) in all_statuses(status) {
        let list = path.child(field);
        for (index, status) in statuses.iter().enumerate() {
            let item = list.index(index);
            let path = item.child("allocatedResourcesStatus");
            let containers = match field {
                "containerStatuses" => spec.containers.as_slice(),
                "initContainerStatuses" => spec.init_containers.as_deref().unwrap_or_default(),
                _ => {
                    let is_set = status.allocated_resources_status.is_some();
                    let detail = "must not be specified in container status";
                    problems.forbid_if(is_set, &path, detail);
                    continue;
                }
            };
            let container = containers
                .iter()
                .find(|container| container.name == status.name);
            check_allocated_of(status, container, &path, problems);
        }
    }
}

fn check_allocated_of(
    status: &ContainerStatus,
    container: Option<&Container>,
    list: &Path<'_>,
    problems: &mut Problems,
) {
    for (index, resource) in status
        .allocated_resources_status
        .iter()
        .flatten()
        .enumerate()
    {
        let path = list.index(index);
        let name = resource.name.as_str();
        let own = container.map(|container| container.resources.clone().unwrap_or_default());
        if let Some(own) = own {
            let (is_known, detail) = if name.starts_with("claim:") {
                let is_known = own.claims.iter().flatten().any(|claim| {
                    let request = text(&claim.request);
                    let suffix = if request.is_empty() {
                        String::new()
                    } else {
                        format!("/{request}")
                    };
                    format!("claim:{}{suffix}", claim.name) == name
                });
                (
                    is_known,
                    "must match one of the container's resource claims in a format \
                     'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
                )
            } else {
                let is_known = own
                    .requests
                    .is_some_and(|requests| requests.contains_key(name));
                (
                    is_known,
                    "must match one of the container's resource requests",
                )
            };
            if !is_known {
                problems.invalid(&path.child("name"), json(&name), detail);
            }
        }
        let resources = path.child("resources");
        let mut ids = BTreeSet::new();
        for (index, health) in resource.resources.iter().flatten().enumerate() {
            let path = resources.index(index);
            let state = text(&health.health);
            problems.one_of(
                &path.child("health"),
                state,
                &["Healthy", "Unhealthy", "Unknown"],
            );
            match health.message.as_deref() {
                Some("") => {
                    problems.required(&path.child("message"), "must be non-empty if specified");
                }
                Some(message) if message.len() > MAX_HEALTH_MESSAGE_BYTES => {
                    problems.too_long(&path.child("message"), MAX_HEALTH_MESSAGE_BYTES);
                }
                _ => {}
            }
            if !ids.insert(&health.resource_id) {
                problems.duplicate(&path.child("resourceID"), &health.resource_id);
            }
        }
    }
}
