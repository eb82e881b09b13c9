//! Containers, init containers and ephemeral containers.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, ContainerResizePolicy, ContainerRestartRule, ResourceClaim,
    ResourceRequirements,
};
use plimsoll_core::admission::pod_validation::validate_container_resources;
use plimsoll_core::object::pod::{Requirements, as_container};
use plimsoll_core::problem::Problem;

use super::super::names::{dns_label, port_name, port_number};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::{SpecCheck, env, mounts, probes, security};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const ONLY_FOR_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_FOR_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// The maximum of a container's restart rules, and of the exit codes of one of them.
const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

impl SpecCheck<'_> {
    pub(super) fn check_containers(&self, path: &Path<'_>, problems: &mut Problems) {
        let containers = &self.spec.containers;
        let path = path.child("containers");
        if containers.is_empty() {
            return problems.required(&path, "");
        }
        let mut names = BTreeSet::new();
        for (index, container) in containers.iter().enumerate() {
            let path = path.index(index);
            let resources = self.view.containers.get(index).map(|view| &view.resources);
            self.check_common(container, resources, &path, problems);
            if !names.insert(&container.name) {
                problems.duplicate(&path.child("name"), &container.name);
            }
            self.check_lifecycle(container, &path, problems);
            check_restart_policy(container, &path, problems);
        }
        check_host_ports(containers, &path, problems);
    }

    pub(super) fn check_init_containers(&self, path: &Path<'_>, problems: &mut Problems) {
        let containers = self.spec.init_containers.as_deref().unwrap_or_default();
        let path = path.child("initContainers");
        let mut names: BTreeSet<&String> = self.spec.containers.iter().map(|c| &c.name).collect();
        for (index, container) in containers.iter().enumerate() {
            let item = path.index(index);
            let resources = self
                .view
                .init_containers
                .get(index)
                .map(|view| &view.resources);
            self.check_common(container, resources, &item, problems);
            check_init_restart_policy(container, &item, problems);
            if names.contains(&container.name) {
                problems.duplicate(&item.child("name"), &container.name);
            } else if !container.name.is_empty() {
                names.insert(&container.name);
            }
            // Upstream counts these containers from the start of the list, each by itself.
            check_host_ports(std::slice::from_ref(container), &path, problems);
            if is_sidecar(container) {
                self.check_lifecycle(container, &item, problems);
                continue;
            }
            let forbid = &mut |is_set: bool, field: &str| {
                problems.forbid_if(is_set, &item.child(field), ONLY_FOR_SIDECARS);
            };
            forbid(container.lifecycle.is_some(), "lifecycle");
            forbid(container.liveness_probe.is_some(), "livenessProbe");
            forbid(container.readiness_probe.is_some(), "readinessProbe");
            forbid(container.startup_probe.is_some(), "startupProbe");
            check_init_resize_policy(container, &item, problems);
        }
    }

    pub(super) fn check_ephemeral_containers(&self, path: &Path<'_>, problems: &mut Problems) {
        let containers = self
            .spec
            .ephemeral_containers
            .as_deref()
            .unwrap_or_default();
        let path = path.child("ephemeralContainers");
        let init = self.spec.init_containers.iter().flatten();
        let others: BTreeSet<&String> = self
            .spec
            .containers
            .iter()
            .chain(init)
            .map(|c| &c.name)
            .collect();
        let mut names = others.clone();
        for (index, ephemeral) in containers.iter().enumerate() {
            let path = path.index(index);
            let container = as_container(ephemeral);
            self.check_common(&container, None, &path, problems);
            check_only_for_pod(&container, &path, problems);
            if !names.insert(&ephemeral.name) {
                problems.duplicate(&path.child("name"), &ephemeral.name);
            }
            if let Some(target) = &ephemeral.target_container_name
                && !target.is_empty()
                && !others.contains(target)
            {
                problems.not_found(&path.child("targetContainerName"), target);
            }
            check_ephemeral_fields(&container, &path, problems);
        }
    }

    fn check_lifecycle(&self, container: &Container, path: &Path<'_>, problems: &mut Problems) {
        let grace = self.spec.termination_grace_period_seconds;
        if let Some(lifecycle) = &container.lifecycle {
            let os = self.spec.os.as_ref().map(|os| os.name.as_str());
            probes::check_lifecycle(lifecycle, grace, os, &path.child("lifecycle"), problems);
        }
        if let Some(probe) = &container.liveness_probe {
            probes::check_liveness(probe, &path.child("livenessProbe"), problems);
        }
        if let Some(probe) = &container.readiness_probe {
            probes::check_readiness(probe, &path.child("readinessProbe"), problems);
        }
        if let Some(probe) = &container.startup_probe {
            probes::check_liveness(probe, &path.child("startupProbe"), problems);
        }
    }

    /// The rules for every type of container.
    fn check_common(
        &self,
        container: &Container,
        resources: Option<&Requirements>,
        path: &Path<'_>,
        problems: &mut Problems,
    ) {
        let name = path.child("name");
        match container.name.as_str() {
            "" => problems.required(&name, ""),
            text => problems.invalid_each(&name, text, dns_label(text)),
        }
        problems.require_text(&path.child("image"), text(&container.image));
        problems.required_one_of(
            &path.child("terminationMessagePolicy"),
            text(&container.termination_message_policy),
            &["File", "FallbackToLogsOnError"],
        );
        let ports = container.ports.as_deref().unwrap_or_default();
        check_ports(ports, &path.child("ports"), problems);
        env::check(container, path, problems);
        mounts::check(container, &self.volumes, path, problems);
        let policy = text(&container.image_pull_policy);
        check_pull_policy(policy, &path.child("imagePullPolicy"), problems);
        self.check_resources(container, resources, path, problems);
        let resize = container.resize_policy.as_deref().unwrap_or_default();
        self.check_resize_policy(resize, &path.child("resizePolicy"), problems);
        if let Some(context) = &container.security_context {
            let path = path.child("securityContext");
            security::check_container(context, self.uses_host_users(), self.rules, &path, problems);
        }
    }

    fn check_resources(
        &self,
        container: &Container,
        resources: Option<&Requirements>,
        path: &Path<'_>,
        problems: &mut Problems,
    ) {
        let path = path.child("resources");
        if let Some(resources) = resources.filter(|resources| !resources.is_empty()) {
            let mut found = Vec::new();
            validate_container_resources(resources, &path.to_string(), &mut found);
            problems.extend(found);
        }
        let claims = container
            .resources
            .as_ref()
            .and_then(|r| r.claims.as_deref());
        self.check_claims(claims.unwrap_or_default(), &path.child("claims"), problems);
    }

    fn check_claims(&self, claims: &[ResourceClaim], path: &Path<'_>, problems: &mut Problems) {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (index, claim) in claims.iter().enumerate() {
            let path = path.index(index);
            let name = claim.name.as_str();
            if name.is_empty() {
                problems.required(&path, "");
                continue;
            }
            if names.contains(name) {
                problems.duplicate(&path, name);
            } else {
                let request = text(&claim.request);
                let mut key = name.to_owned();
                if !request.is_empty() {
                    problems.invalid_each(&path.child("request"), request, dns_label(request));
                    key = format!("{name}/{request}");
                }
                if names.contains(&key) {
                    problems.duplicate(&path, &key);
                } else if request.is_empty() {
                    let of_claim =
                        |key: &&String| key.split_once('/').is_some_and(|(n, _)| n == name);
                    for _ in names.iter().filter(of_claim) {
                        problems.duplicate(&path, name);
                    }
                }
                names.insert(key);
            }
            if !self.claim_names.contains(name) {
                let known: Vec<&str> = self.claim_names.iter().copied().collect();
                let known = if known.is_empty() {
                    " which is empty".to_owned()
                } else {
                    format!(": {}", known.join(", "))
                };
                let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
                problems.push(Problem::not_found(path.to_string(), name).with_detail(detail));
            }
        }
    }

    fn check_resize_policy(
        &self,
        policies: &[ContainerResizePolicy],
        path: &Path<'_>,
        problems: &mut Problems,
    ) {
        let mut seen = BTreeSet::new();
        for (index, policy) in policies.iter().enumerate() {
            if !seen.insert(&policy.resource_name) {
                problems.duplicate(&path.index(index), &policy.resource_name);
            }
            problems.required_one_of(path, &policy.resource_name, &["cpu", "memory"]);
            let restart = policy.restart_policy.as_str();
            problems.required_one_of(path, restart, &["NotRequired", "RestartContainer"]);
            if text(&self.spec.restart_policy) == "Never" && restart != "NotRequired" {
                let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
                problems.invalid(path, json(&restart), detail);
            }
        }
    }
}

pub(super) fn is_sidecar(container: &Container) -> bool {
    text(&container.restart_policy) == "Always"
}

pub(super) fn check_pull_policy(policy: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.required_one_of(path, policy, &PULL_POLICIES);
}

fn check_init_restart_policy(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    if container.restart_policy.is_none() {
        let rules = container
            .restart_policy_rules
            .as_deref()
            .unwrap_or_default();
        if !rules.is_empty() {
            problems.required(&path.child("restartPolicy"), RULES_WITHOUT_POLICY);
        }
        return;
    }
    check_restart_policy(container, path, problems);
}

const RULES_WITHOUT_POLICY: &str = "must specify restartPolicy when restart rules are used";

fn check_restart_policy(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    let rules = container
        .restart_policy_rules
        .as_deref()
        .unwrap_or_default();
    let policy_path = path.child("restartPolicy");
    match container.restart_policy.as_deref() {
        None if rules.is_empty() => return,
        None => problems.required(&policy_path, RULES_WITHOUT_POLICY),
        Some(policy) => problems.one_of(&policy_path, policy, &RESTART_POLICIES),
    }
    let path = path.child("restartPolicyRules");
    problems.too_many(&path, rules.len(), MAX_RESTART_RULES);
    for (index, rule) in rules.iter().enumerate() {
        check_restart_rule(rule, &path.index(index), problems);
    }
}

fn check_restart_rule(rule: &ContainerRestartRule, path: &Path<'_>, problems: &mut Problems) {
    problems.one_of(
        &path.child("action"),
        &rule.action,
        &["Restart", "RestartAllContainers"],
    );
    let path = path.child("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        return problems.required(&path, "must be specified");
    };
    problems.one_of(&path.child("operator"), &codes.operator, &["In", "NotIn"]);
    let count = codes.values.as_ref().map_or(0, Vec::len);
    problems.too_many(&path.child("values"), count, MAX_EXIT_CODES);
}

fn check_init_resize_policy(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("resizePolicy");
    for (index, policy) in container.resize_policy.iter().flatten().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            problems.invalid(
                &path.index(index).child("restartPolicy"),
                json(&policy.restart_policy),
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            );
        }
    }
}

fn check_ports(ports: &[ContainerPort], path: &Path<'_>, problems: &mut Problems) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(&port.name);
        if !name.is_empty() {
            let broken = port_name(name);
            let is_name = broken.is_empty();
            problems.invalid_each(&path.child("name"), name, broken);
            if is_name && !names.insert(name) {
                problems.duplicate(&path.child("name"), name);
            }
        }
        if port.container_port == 0 {
            problems.required(&path.child("containerPort"), "");
        } else {
            check_port_number(port.container_port, &path.child("containerPort"), problems);
        }
        if let Some(host_port) = port.host_port.filter(|port| *port != 0) {
            check_port_number(host_port, &path.child("hostPort"), problems);
        }
        problems.required_one_of(&path.child("protocol"), text(&port.protocol), &PROTOCOLS);
    }
}

fn check_port_number(port: i32, path: &Path<'_>, problems: &mut Problems) {
    for rule in port_number(port) {
        problems.invalid(path, port, rule);
    }
}

/// No two containers of the list may use the same host port.
fn check_host_ports(containers: &[Container], path: &Path<'_>, problems: &mut Problems) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let Some(number) = port.host_port.filter(|port| *port != 0) else {
                continue;
            };
            let key = format!("{}/{}/{number}", text(&port.protocol), text(&port.host_ip));
            if taken.contains(&key) {
                problems.duplicate(&path.index(index).child("hostPort"), &key);
            }
            taken.insert(key);
        }
    }
}

/// The rules for pods that templates of pods do not have.
pub(super) fn check_only_for_pod(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    let image = text(&container.image);
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        problems.invalid(&path.child("image"), image, detail);
    }
}

/// Ephemeral containers are for debugging only.
fn check_ephemeral_fields(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    let resources = container.resources.clone().unwrap_or_default();
    for (field, is_set) in [
        ("ports", container.ports.is_some()),
        ("resources", resources != ResourceRequirements::default()),
        ("resizePolicy", container.resize_policy.is_some()),
        ("restartPolicy", container.restart_policy.is_some()),
        (
            "restartPolicyRules",
            container.restart_policy_rules.is_some(),
        ),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
        ("lifecycle", container.lifecycle.is_some()),
    ] {
        problems.forbid_if(is_set, &path.child(field), NOT_FOR_EPHEMERAL);
    }
    let path = path.child("volumeMounts");
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let path = path.index(index);
        let forbid = &mut |field: &str, value: &Option<String>| {
            problems.forbid_if(
                !text(value).is_empty(),
                &path.child(field),
                NOT_FOR_EPHEMERAL,
            );
        };
        forbid("subPath", &mount.sub_path);
        forbid("subPathExpr", &mount.sub_path_expr);
    }
}
