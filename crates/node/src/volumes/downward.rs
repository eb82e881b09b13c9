//! The downward API: fields of a pod in its variables and files.
//!
//! Matches v1.36 pkg/fieldpath, pkg/apis/core/pods/helpers.go and pkg/api/v1/resource/helpers.go.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    Container, ObjectFieldSelector, Pod, PodSpec, ResourceFieldSelector,
};
use plimsoll_core::object::pod::Requirements;
use plimsoll_core::object::syntax;
use plimsoll_core::problem::Problem;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{ResourceList, ResourceName};

/// Why a field cannot be passed down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Another API version than `v1`.
    #[error("unsupported pod version: {0}")]
    Version(String),
    /// A field that variables cannot have.
    #[error("field label not supported: {0}")]
    Label(String),
    /// A subscript on a field that is no map, in a variable.
    #[error("field label does not support subscript: {0}")]
    LabelSubscript(String),
    /// A field that files cannot have, or variables though it is a known label.
    #[error("unsupported fieldPath: {0}")]
    Path(String),
    /// A subscript on a field that is no map, in a file.
    #[error("fieldPath {0:?} does not support subscript")]
    PathSubscript(String),
    /// A subscript that is no key.
    #[error("invalid key subscript in {path}: {rule}")]
    Key {
        /// The whole path.
        path: String,
        /// The rule that the key breaks.
        rule: String,
    },
    /// A resource that cannot be passed down.
    #[error("unsupported container resource : {0}")]
    Resource(String),
    /// A container that the pod does not have.
    #[error("container {0} not found")]
    Container(String),
    /// Malformed quantities.
    #[error("{0}")]
    Quantity(String),
}

/// The addresses that a pod may refer to.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Its own; the first is the main one.
    pub pod_ips: Vec<IpAddr>,
    /// The node's.
    pub host_ips: Vec<IpAddr>,
}

/// A field of the pod as a variable has it.
pub fn env_field(
    pod: &Pod,
    selector: &ObjectFieldSelector,
    addresses: &Addresses,
) -> Result<String, FieldError> {
    let version = selector.api_version.as_deref().unwrap_or("v1");
    if version != "v1" {
        return Err(FieldError::Version(version.to_owned()));
    }
    let label = selector.field_path.as_str();
    if let Some((path, _)) = split_subscript(label) {
        return match path {
            "metadata.annotations" | "metadata.labels" => file_field(pod, label),
            _ => Err(FieldError::LabelSubscript(label.to_owned())),
        };
    }
    let spec = |field: fn(&PodSpec) -> Option<&String>| {
        let value = pod.spec.as_ref().and_then(field);
        Ok(value.cloned().unwrap_or_default())
    };
    let first = |ips: &[IpAddr]| Ok(ips.first().map(ToString::to_string).unwrap_or_default());
    let joined = |ips: &[IpAddr]| {
        let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
        Ok(ips.join(","))
    };
    match label {
        "spec.nodeName" | "spec.host" => spec(|spec| spec.node_name.as_ref()),
        "spec.serviceAccountName" => spec(|spec| spec.service_account_name.as_ref()),
        "status.hostIP" => first(&addresses.host_ips),
        "status.hostIPs" => joined(&addresses.host_ips),
        "status.podIP" => first(&addresses.pod_ips),
        "status.podIPs" => joined(&addresses.pod_ips),
        // Known to the API, but no node has ever passed them down.
        "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => {
            Err(FieldError::Path(label.to_owned()))
        }
        "metadata.annotations"
        | "metadata.labels"
        | "metadata.name"
        | "metadata.namespace"
        | "metadata.uid" => file_field(pod, label),
        _ => Err(FieldError::Label(label.to_owned())),
    }
}

/// A field of the pod as a file has it: only metadata can be.
pub fn file_field(pod: &Pod, path: &str) -> Result<String, FieldError> {
    let meta = &pod.metadata;
    if let Some((field, key)) = split_subscript(path) {
        let (map, name) = match field {
            "metadata.annotations" => (&meta.annotations, key.to_lowercase()),
            "metadata.labels" => (&meta.labels, key.to_owned()),
            _ => return Err(FieldError::PathSubscript(path.to_owned())),
        };
        let problems = syntax::check_label_key(&name);
        if !problems.is_empty() {
            return Err(FieldError::Key {
                path: path.to_owned(),
                rule: problems.join(";"),
            });
        }
        let value = map.as_ref().and_then(|map| map.get(key));
        return Ok(value.cloned().unwrap_or_default());
    }
    let text = |value: &Option<String>| Ok(value.clone().unwrap_or_default());
    match path {
        "metadata.annotations" => Ok(render_map(meta.annotations.as_ref())),
        "metadata.labels" => Ok(render_map(meta.labels.as_ref())),
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        _ => Err(FieldError::Path(path.to_owned())),
    }
}

/// `metadata.labels['key']` as field and key.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// One `key="value"` per line, values quoted as Go does.
fn render_map(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten();
    let lines: Vec<String> = lines
        .map(|(key, value)| format!("{key}={}", quoted(value)))
        .collect();
    lines.join("\n")
}

/// A text in double quotes, as Go's strconv.Quote writes it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let written = match code {
                    0..=0x7f => write!(out, "\\x{code:02x}"),
                    0x80..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        }
    }
    out.push('"');
    out
}

/// Whether Go prints the character as it is. Rust agrees with it on which are printable, if asked
/// about one that is not the first: a mark at the beginning would have nothing to sit on.
fn is_printable(c: char) -> bool {
    c == '\'' || ['a', c].iter().collect::<String>().escape_debug().count() == 2
}

/// A resource of a container as a variable has it. Missing limits are the pod's or the node's.
pub fn env_resource(
    pod: &Pod,
    own: &Container,
    selector: &ResourceFieldSelector,
    allocatable: &ResourceList,
) -> Result<String, FieldError> {
    let spec = pod.spec.as_ref();
    let mut ceiling = allocatable.clone();
    let pod_level = spec.and_then(|spec| spec.resources.as_ref());
    let pod_level = parse("spec.resources", pod_level)?;
    for name in [ResourceName::CPU, ResourceName::MEMORY] {
        let limit = pod_level.limits.get(&name).filter(|limit| !limit.is_zero());
        if let Some(limit) = limit
            && ceiling.contains(&name)
        {
            ceiling.insert(name, limit.clone());
        }
    }
    match selector.container_name.as_deref().unwrap_or_default() {
        "" => resource(own, selector, &ceiling),
        name => {
            // Upstream gives missing limits to regular containers only.
            let regular = spec.into_iter().flat_map(|spec| &spec.containers);
            if let Some(container) = regular.clone().find(|c| c.name == name) {
                return resource(container, selector, &ceiling);
            }
            let container = find(pod, name)?;
            resource(container, selector, &ResourceList::default())
        }
    }
}

/// A resource of a container as a file has it. Missing limits are the node's.
pub fn file_resource(
    pod: &Pod,
    selector: &ResourceFieldSelector,
    allocatable: &ResourceList,
) -> Result<String, FieldError> {
    let name = selector.container_name.as_deref().unwrap_or_default();
    resource(find(pod, name)?, selector, allocatable)
}

fn find<'a>(pod: &'a Pod, name: &str) -> Result<&'a Container, FieldError> {
    let spec = pod.spec.as_ref();
    let regular = spec.into_iter().flat_map(|spec| &spec.containers);
    let init = spec
        .into_iter()
        .flat_map(|spec| spec.init_containers.iter().flatten());
    let mut all = regular.chain(init);
    let found = all.find(|container| container.name == name);
    found.ok_or_else(|| FieldError::Container(name.to_owned()))
}

fn parse(
    path: &str,
    resources: Option<&k8s_openapi::api::core::v1::ResourceRequirements>,
) -> Result<Requirements, FieldError> {
    let mut problems: Vec<Problem> = Vec::new();
    let parsed = Requirements::from_api(path, resources, &mut problems);
    match problems.first() {
        Some(problem) => Err(FieldError::Quantity(problem.to_string())),
        None => Ok(parsed),
    }
}

fn resource(
    container: &Container,
    selector: &ResourceFieldSelector,
    ceiling: &ResourceList,
) -> Result<String, FieldError> {
    let path = format!("spec.containers[{}].resources", container.name);
    let stated = parse(&path, container.resources.as_ref())?;
    let unsupported = || FieldError::Resource(selector.resource.clone());
    let (part, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let name = ResourceName::new(name);
    let has_ceiling = [
        ResourceName::CPU,
        ResourceName::MEMORY,
        ResourceName::EPHEMERAL_STORAGE,
    ]
    .contains(&name);
    if !has_ceiling && name.huge_page_size().is_none() {
        return Err(unsupported());
    }
    let amount = match part {
        "requests" => stated.requests.get_or_zero(&name),
        "limits" => {
            let limit = stated.limits.get_or_zero(&name);
            if limit.is_zero() && has_ceiling {
                ceiling.get_or_zero(&name)
            } else {
                limit
            }
        }
        _ => return Err(unsupported()),
    };
    let divisor = match selector.divisor.as_ref().map(|divisor| divisor.0.as_str()) {
        None | Some("") => None,
        Some(text) => {
            let parsed = text.parse::<Quantity>();
            Some(parsed.map_err(|error| FieldError::Quantity(error.to_string()))?)
        }
    };
    let divisor = divisor.filter(|divisor| !divisor.is_zero());
    let (amount, divisor) = if name == ResourceName::CPU {
        (
            amount.milli_value(),
            divisor.map_or(1000, |d| d.milli_value()),
        )
    } else {
        (amount.value(), divisor.map_or(1, |d| d.value()))
    };
    Ok(divided_up(amount, divisor).to_string())
}

/// The quotient, rounded up, in floats as upstream has it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes in floats"
)]
fn divided_up(amount: i64, divisor: i64) -> i64 {
    (amount as f64 / divisor as f64).ceil() as i64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-0", "namespace": "shop", "uid": "u1",
                "labels": {"app": "web", "tier.example.com/x": "1"},
                "annotations": {"B": "b", "a": "line\none \"q\""},
            },
            "spec": {
                "nodeName": "n1", "serviceAccountName": "sa",
                "containers": [{"name": "c", "resources": {
                    "requests": {"cpu": "250m", "memory": "64Mi"},
                    "limits": {"memory": "100Mi", "hugepages-2Mi": "4Mi"},
                }}],
                "initContainers": [{"name": "i"}],
            },
        }))
        .unwrap()
    }

    fn env(path: &str) -> Result<String, String> {
        let selector = ObjectFieldSelector {
            field_path: path.to_owned(),
            ..ObjectFieldSelector::default()
        };
        let addresses = Addresses {
            pod_ips: vec!["10.1.0.2".parse().unwrap(), "fd00::2".parse().unwrap()],
            host_ips: vec!["192.0.2.1".parse().unwrap()],
        };
        env_field(&pod(), &selector, &addresses).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_see_fields_of_metadata_spec_and_status() {
        for (path, want) in [
            ("metadata.name", "web-0"),
            ("metadata.namespace", "shop"),
            ("metadata.uid", "u1"),
            ("metadata.labels['app']", "web"),
            ("metadata.annotations['B']", "b"),
            ("metadata.labels['missing']", ""),
            ("metadata.labels", "app=\"web\"\ntier.example.com/x=\"1\""),
            (
                "metadata.annotations",
                "B=\"b\"\na=\"line\\none \\\"q\\\"\"",
            ),
            ("spec.nodeName", "n1"),
            ("spec.host", "n1"),
            ("spec.serviceAccountName", "sa"),
            ("status.hostIP", "192.0.2.1"),
            ("status.podIP", "10.1.0.2"),
            ("status.podIPs", "10.1.0.2,fd00::2"),
        ] {
            assert_eq!(env(path).as_deref(), Ok(want), "{path}");
        }
    }

    #[test]
    fn unsupported_fields_are_refused_in_upstreams_words() {
        for (path, want) in [
            (
                "spec.dnsPolicy",
                "field label not supported: spec.dnsPolicy",
            ),
            ("status.phase", "unsupported fieldPath: status.phase"),
            (
                "metadata.name['a']",
                "field label does not support subscript: metadata.name['a']",
            ),
        ] {
            assert_eq!(env(path), Err(want.to_owned()), "{path}");
        }
        let error = env("metadata.labels['no good']").unwrap_err();
        assert!(
            error.starts_with("invalid key subscript in metadata.labels['no good']: "),
            "{error}"
        );
        let error = file_field(&pod(), "spec.nodeName").unwrap_err();
        assert_eq!(error.to_string(), "unsupported fieldPath: spec.nodeName");
        let error = file_field(&pod(), "spec.x['a']").unwrap_err();
        assert_eq!(
            error.to_string(),
            "fieldPath \"spec.x['a']\" does not support subscript"
        );
    }

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, want) in [
            ("plain 'x'", r#""plain 'x'""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{b}\u{0}\u{7f}", r#""\a\v\x00\x7f""#),
            ("é\u{a0}\u{feff}", r#""é\u00a0\ufeff""#),
            ("e\u{301}\u{1f600}\u{e000}", "\"e\u{301}\u{1f600}\\ue000\""),
        ] {
            assert_eq!(quoted(text), want);
        }
    }

    fn check(resource: &str, divisor: &str, want: &str) {
        let selector = |container: Option<&str>| -> ResourceFieldSelector {
            serde_json::from_value(json!({
                "containerName": container, "resource": resource, "divisor": divisor,
            }))
            .unwrap()
        };
        let allocatable: ResourceList = [("cpu", "4"), ("memory", "8Gi")]
            .into_iter()
            .map(|(name, amount)| (ResourceName::new(name), amount.parse().unwrap()))
            .collect();
        let pod = pod();
        let own = &pod.spec.as_ref().unwrap().containers[0];
        let env = env_resource(&pod, own, &selector(None), &allocatable).unwrap();
        assert_eq!(env, want, "{resource} {divisor}");
        let file = file_resource(&pod, &selector(Some("c")), &allocatable).unwrap();
        assert_eq!(file, want, "{resource} {divisor}");
    }

    #[test]
    fn resources_are_divided_and_rounded_up_and_missing_limits_are_the_nodes() {
        for (resource, divisor, want) in [
            ("requests.cpu", "0", "1"),
            ("requests.cpu", "1m", "250"),
            ("limits.cpu", "1", "4"),
            ("requests.memory", "1Mi", "64"),
            ("limits.memory", "1Gi", "1"),
            ("limits.memory", "0", "104857600"),
            ("limits.ephemeral-storage", "1", "0"),
            ("limits.hugepages-2Mi", "1Mi", "4"),
            ("requests.hugepages-2Mi", "1Mi", "0"),
        ] {
            check(resource, divisor, want);
        }
    }

    #[test]
    fn unknown_resources_and_containers_are_refused() {
        let selector = |container: &str, resource: &str| ResourceFieldSelector {
            container_name: Some(container.to_owned()),
            resource: resource.to_owned(),
            ..ResourceFieldSelector::default()
        };
        let read = |container, resource| {
            let allocatable = ResourceList::default();
            let selector = selector(container, resource);
            file_resource(&pod(), &selector, &allocatable)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(read("x", "limits.cpu"), "container x not found");
        assert_eq!(
            read("c", "limits.pods"),
            "unsupported container resource : limits.pods"
        );
        assert_eq!(read("c", "cpu"), "unsupported container resource : cpu");
    }
}
