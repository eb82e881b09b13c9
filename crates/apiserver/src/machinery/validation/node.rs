//! Nodes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    ConfigMapNodeConfigSource, Node, NodeConfigSource, NodeSpec, NodeStatus, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use plimsoll_core::object::resource_rules::check_amount;
use plimsoll_core::object::syntax::check_label_value;
use plimsoll_core::problem::quoted;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::ResourceName;

use super::address::{check_cidr, is_dual_stack};
use super::metadata::{self, Scope};
use super::names::{NameRule, config_map_key, dns_label, dns_subdomain};
use super::path::Path;
use super::pod::tolerations::check_effect;
use super::problems::{Problems, json};
use super::selector::check_key;
use super::{Part, internal, text};

const TAINTS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/taints";
const MAX_FEATURE_BYTES: usize = 253;

pub(super) fn validate(node: &Node, problems: &mut Problems) {
    metadata::check(
        &node.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    check_annotations(node, problems);
    let (spec, status) = parts(node);
    let meta = Path::new("metadata");
    let taints = spec.taints.as_deref().unwrap_or_default();
    check_taints(taints, &meta.child("taints"), problems);
    check_resources(&status, problems);
    let swap = status
        .node_info
        .as_ref()
        .and_then(|info| info.swap.as_ref()?.capacity);
    if let Some(capacity) = swap {
        let path = meta.child("nodeSwapStatus");
        problems.positive(&path.child("capacity"), capacity);
    }
    check_features(&status, problems);
    check_cidrs(&spec, problems);
}

/// Upstream also runs the rules for new nodes, so some problems are reported twice.
pub(super) fn validate_update(new: &Node, old: &Node, part: Part, problems: &mut Problems) {
    if part == Part::Main {
        validate(new, problems);
    }
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_annotations(new, problems);
    let ((spec, status), (old_spec, _)) = (parts(new), parts(old));
    check_resources(&status, problems);
    check_features(&status, problems);
    let path = Path::new("status");
    let list = path.child("addresses");
    let mut seen = BTreeSet::new();
    for (index, address) in status.addresses.iter().flatten().enumerate() {
        if !seen.insert((&address.type_, &address.address)) {
            let shown = internal::NodeAddress {
                r#type: &address.type_,
                address: &address.address,
            };
            let path = list.index(index).to_string();
            let value = plimsoll_core::problem::json_text(&shown);
            problems.push(plimsoll_core::problem::Problem::duplicate(path, "").with_value(value));
        }
    }
    check_unchanged(&spec, &old_spec, problems);
    let path = Path::new("spec");
    if let Some(source) = &spec.config_source {
        check_config_source(source, Place::Spec, &path.child("configSource"), problems);
    }
    if let Some(config) = &status.config {
        let status = Path::new("status");
        let path = status.child("config");
        for (field, source) in [
            ("assigned", &config.assigned),
            ("active", &config.active),
            ("lastKnownGood", &config.last_known_good),
        ] {
            if let Some(source) = source {
                check_config_source(source, Place::Status, &path.child(field), problems);
            }
        }
    }
    let meta = Path::new("metadata");
    let taints = spec.taints.as_deref().unwrap_or_default();
    check_taints(taints, &meta.child("taints"), problems);
    if text(&spec.external_id) != text(&old_spec.external_id) {
        problems.forbidden(&path.child("externalID"), "may not be updated");
    }
}

fn parts(node: &Node) -> (NodeSpec, NodeStatus) {
    (
        node.spec.clone().unwrap_or_default(),
        node.status.clone().unwrap_or_default(),
    )
}

fn check_unchanged(spec: &NodeSpec, old: &NodeSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    let (new_cidrs, old_cidrs) = (
        spec.pod_cidrs.as_deref().unwrap_or_default(),
        old.pod_cidrs.as_deref().unwrap_or_default(),
    );
    if !old_cidrs.is_empty() {
        let changes = if new_cidrs.len() == old_cidrs.len() {
            new_cidrs
                .iter()
                .zip(old_cidrs)
                .filter(|(new, old)| new != old)
                .count()
        } else {
            1
        };
        for _ in 0..changes {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            problems.forbidden(&path.child("podCIDRs"), detail);
        }
    }
    let old_provider = text(&old.provider_id);
    if !old_provider.is_empty() && old_provider != text(&spec.provider_id) {
        let detail = "node updates may not change providerID except from \"\" to valid";
        problems.forbidden(&path.child("providerID"), detail);
    }
}

fn check_annotations(node: &Node, problems: &mut Problems) {
    let annotations = node.metadata.annotations.as_ref();
    let value = annotations.and_then(|annotations| annotations.get(TAINTS_ANNOTATION));
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return;
    };
    let meta = Path::new("metadata");
    let path = meta.child("annotations");
    match serde_json::from_str::<Vec<Taint>>(value) {
        Ok(taints) => check_taints(&taints, &path.child(TAINTS_ANNOTATION), problems),
        Err(error) => problems.invalid(&path, TAINTS_ANNOTATION, error.to_string()),
    }
}

fn check_taints(taints: &[Taint], list: &Path<'_>, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = list.index(index);
        check_key(&taint.key, &path.child("key"), problems);
        let value = text(&taint.value);
        let broken = check_label_value(value);
        if !broken.is_empty() {
            problems.invalid(&path.child("value"), value, broken.join(";"));
        }
        let effect_path = path.child("effect");
        if taint.effect.is_empty() {
            problems.required(&effect_path, "");
        } else {
            check_effect(&taint.effect, &effect_path, problems);
        }
        if !seen.insert((&taint.effect, &taint.key)) {
            let value = plimsoll_core::problem::json_text(&internal::Taint::from(taint));
            let problem = plimsoll_core::problem::Problem::duplicate(path.to_string(), "");
            let detail = "taints must be unique by key and effect pair";
            problems.push(problem.with_value(value).with_detail(detail));
        }
    }
}

fn check_resources(status: &NodeStatus, problems: &mut Problems) {
    let check =
        |field: &str, list: &Option<BTreeMap<String, ApiQuantity>>, problems: &mut Problems| {
            for (name, ApiQuantity(amount)) in list.iter().flatten() {
                let Ok(quantity) = amount.parse::<Quantity>() else {
                    continue;
                };
                let path = format!("status.{field}.{name}");
                let mut found = Vec::new();
                check_amount(
                    &ResourceName::new(name.as_str()),
                    &quantity,
                    &path,
                    &mut found,
                );
                problems.extend(found);
            }
        };
    check("capacity", &status.capacity, problems);
    check("allocatable", &status.allocatable, problems);
}

fn check_features(status: &NodeStatus, problems: &mut Problems) {
    let path = Path::new("status");
    let list = path.child("declaredFeatures");
    let features = status.declared_features.as_deref().unwrap_or_default();
    for (index, feature) in features.iter().enumerate() {
        let shown = quoted(feature);
        if feature.len() > MAX_FEATURE_BYTES {
            let detail = format!(
                "invalid feature name {shown}: must be no more than {MAX_FEATURE_BYTES} characters"
            );
            problems.invalid(&list.index(index), feature, detail);
        } else if !is_feature(feature) {
            let detail = format!(
                "invalid feature name {shown}: must start with an UpperCamelCase segment, with \
                 subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), \
                 and contain only alphanumeric characters and slashes"
            );
            problems.invalid(&list.index(index), feature, detail);
        }
        match features.get(index + 1) {
            Some(next) if next == feature => problems.duplicate(&list.index(index + 1), next),
            Some(next) if feature > next => {
                let detail = "list must be sorted alphabetically";
                problems.invalid(&list.index(index + 1), next, detail);
            }
            _ => {}
        }
    }
}

fn is_feature(name: &str) -> bool {
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment)
}

fn check_cidrs(spec: &NodeSpec, problems: &mut Problems) {
    let cidrs = spec.pod_cidrs.as_deref().unwrap_or_default();
    let path = Path::new("spec");
    let list = path.child("podCIDRs");
    for (index, cidr) in cidrs.iter().enumerate() {
        check_cidr(cidr, &list.index(index), problems);
    }
    if cidrs.len() < 2 {
        return;
    }
    let is_dual = is_dual_stack(cidrs.iter().map(String::as_str));
    if is_dual.is_none() {
        let detail =
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR address";
        problems.internal(&list, detail);
    }
    if is_dual != Some(true) || cidrs.len() > 2 {
        let detail = "may specify no more than one CIDR for each IP family";
        problems.invalid(&list, json(&cidrs), detail);
    }
}

/// The location of a source of dynamic configuration, which determines its required fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Spec,
    Status,
}

fn check_config_source(
    source: &NodeConfigSource,
    place: Place,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(map) = &source.config_map else {
        let shown = super::problems::Shown::bare("{\"ConfigMap\":null}");
        return problems.invalid(
            path,
            shown,
            "exactly one reference subfield must be non-nil",
        );
    };
    let path = path.child("configMap");
    for (field, value) in [
        ("uid", &map.uid),
        ("resourceVersion", &map.resource_version),
    ] {
        let is_set = !text(value).is_empty();
        match place {
            Place::Spec if is_set => {
                problems.forbidden(
                    &path.child(field),
                    format!("{field} must not be set in spec"),
                );
            }
            Place::Status if !is_set => problems.required(&path.child(field), ""),
            _ => {}
        }
    }
    check_config_map(map, &path, problems);
}

/// Reports the violated rules of a text.
type Rule = fn(&str) -> Vec<String>;

fn check_config_map(map: &ConfigMapNodeConfigSource, path: &Path<'_>, problems: &mut Problems) {
    let rules: [(&str, &str, Rule); 3] = [
        ("namespace", &map.namespace, dns_label),
        ("name", &map.name, dns_subdomain),
        ("kubeletConfigKey", &map.kubelet_config_key, config_map_key),
    ];
    for (field, value, rule) in rules {
        match value {
            "" => problems.required(&path.child(field), ""),
            value => problems.invalid_each(&path.child(field), value, rule(value)),
        }
    }
}
