//! The discovery documents.
//!
//! All of them are generated from the table of `kinds`. Current clients request the
//! aggregated form at `/api` and `/apis`; older ones read the legacy documents, one per group and
//! version.
//!
//! Matches v1.36 apiserver/pkg/endpoints/discovery.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::document::Document;
use crate::kinds::{self, GROUPS, Group, Kind, Scope, Subresource, Verb};

/// The media type of an aggregated document; clients choose their parser by it.
pub const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Aggregated discovery of the core group, at `/api`.
pub fn aggregated_core() -> &'static Document {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(|| aggregated(|g| g.name.is_empty()));
    &DOCUMENT
}

/// Aggregated discovery of all other groups, at `/apis`.
pub fn aggregated_groups() -> &'static Document {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(|| aggregated(|g| !g.name.is_empty()));
    &DOCUMENT
}

fn aggregated(includes: fn(&Group) -> bool) -> Document {
    let groups = GROUPS.iter().filter(|group| includes(group));
    let items: Vec<Value> = groups.map(aggregated_group).collect();
    Document::new(&json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }))
}

fn aggregated_group(group: &Group) -> Value {
    let resources: Vec<Value> = group.kinds.iter().map(aggregated_resource).collect();
    let mut metadata = json!({});
    if !group.name.is_empty() {
        metadata["name"] = json!(group.name);
    }
    json!({
        "metadata": metadata,
        "versions": [{
            "version": group.version,
            "resources": resources,
            "freshness": "Current",
        }],
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let scope = match kind.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind("", "", kind.kind),
        "scope": scope,
        "singularResource": kind.singular,
        "verbs": verbs(kind.verbs),
    });
    add_names(&mut resource, kind);
    if !kind.subresources.is_empty() {
        let subresources = kind.subresources.iter().map(aggregated_subresource);
        resource["subresources"] = subresources.collect();
    }
    resource
}

fn aggregated_subresource(subresource: &Subresource) -> Value {
    let (group, version) = subresource.group_version.unwrap_or_default();
    json!({
        "subresource": subresource.name,
        "responseKind": response_kind(group, version, subresource.kind),
        "verbs": verbs(subresource.verbs),
    })
}

/// Group and version are empty where they are the document's own.
fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn verbs(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

fn add_names(resource: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
}

/// The versions of the core group, at `/api`; `server_address` is a host and a port.
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{
            "clientCIDR": "0.0.0.0/0",
            "serverAddress": server_address,
        }],
    })
}

/// The groups, at `/apis`.
pub fn group_list() -> Value {
    let groups = GROUPS.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = groups.map(group_entry).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// One group, at `/apis/<name>`.
pub fn group(name: &str) -> Option<Value> {
    let named = GROUPS.iter().find(|group| group.name == name);
    let mut entry = group_entry(named.filter(|group| !group.name.is_empty())?);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Some(entry)
}

fn group_entry(group: &Group) -> Value {
    let version = json!({"groupVersion": group.group_version(), "version": group.version});
    json!({"name": group.name, "versions": [version], "preferredVersion": version})
}

/// The resources of a group and version, at `/api/v1` or `/apis/<name>/<version>`.
pub fn resource_list(name: &str, version: &str) -> Option<Value> {
    let group = kinds::group(name, version)?;
    let resources: Vec<Value> = group.kinds.iter().flat_map(resource_entries).collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group.group_version(),
        "resources": resources,
    });
    // Upstream's oldest document has no version of its own.
    if !name.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn resource_entries(kind: &Kind) -> Vec<Value> {
    let is_namespaced = kind.is_namespaced();
    let mut entry = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": is_namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind.verbs),
    });
    add_names(&mut entry, kind);
    if kind.storage.is_some() {
        entry["storageVersionHash"] = json!(storage_version_hash(kind));
    }
    let subresources = kind.subresources.iter().map(|subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", kind.plural, subresource.name),
            "singularName": "",
            "namespaced": is_namespaced,
            "kind": subresource.kind,
            "verbs": verbs(subresource.verbs),
        });
        if let Some((group, version)) = subresource.group_version {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
        entry
    });
    std::iter::once(entry).chain(subresources).collect()
}

/// Changes when the stored encoding of a kind does. Events are stored in the core encoding.
fn storage_version_hash(kind: &Kind) -> String {
    let group = match kind.group {
        "events.k8s.io" => "",
        group => group,
    };
    let hash = Sha256::digest(format!("{group}/{}/{}", kind.version, kind.kind));
    STANDARD.encode(&hash[..8])
}

/// The release of Kubernetes whose API this is.
pub const KUBERNETES_VERSION: &str = "v1.36.4";

/// The minor version in it.
pub const KUBERNETES_MINOR: u64 = 36;

/// The platform, as Go names it: `linux/amd64`.
pub fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

/// The version document, at `/version`.
///
/// Clients compare `gitVersion` with their own; the part after `+` identifies the server. The
/// fields about the Go toolchain are present but empty: some clients require them.
pub fn version() -> String {
    let git_version = format!(
        "{KUBERNETES_VERSION}+plimsoll-{}",
        env!("CARGO_PKG_VERSION")
    );
    let platform = platform();
    let minor = KUBERNETES_MINOR.to_string();
    let fields = [
        ("major", "1"),
        ("minor", &minor),
        ("emulationMajor", "1"),
        ("emulationMinor", &minor),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "35"),
        ("gitVersion", &git_version),
        ("gitCommit", ""),
        ("gitTreeState", ""),
        ("buildDate", "1970-01-01T00:00:00Z"),
        ("goVersion", ""),
        ("compiler", "rustc"),
        ("platform", &platform),
    ];
    let lines = fields.map(|(name, value)| format!("  \"{name}\": \"{value}\""));
    format!("{{\n{}\n}}", lines.join(",\n"))
}

#[cfg(test)]
mod tests;
