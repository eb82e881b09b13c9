//! Nodes.

use std::collections::BTreeSet;

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, UNKNOWN, View};

pub(super) const NODE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "The status of the node"),
        Column::text("Roles", "The roles of the node"),
        AGE,
        Column::field("Version", SYSTEM_INFO, "kubeletVersion"),
        Column::field("Internal-IP", STATUS, "addresses").wide(),
        Column::field("External-IP", STATUS, "addresses").wide(),
        Column::field("OS-Image", SYSTEM_INFO, "osImage").wide(),
        Column::field("Kernel-Version", SYSTEM_INFO, "kernelVersion").wide(),
        Column::field("Container-Runtime", SYSTEM_INFO, "containerRuntimeVersion").wide(),
    ],
    row: node,
};

const STATUS: &str = "api.core.v1.NodeStatus";
const SYSTEM_INFO: &str = "api.core.v1.NodeSystemInfo";

fn node(node: View<'_>) -> Row {
    let info = |field: &str| node.text_or(&format!("/status/nodeInfo/{field}"), UNKNOWN);
    let mut kernel = info("kernelVersion").to_owned();
    let architecture = node.text("/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    row![
        node.name(),
        status(node),
        roles(node),
        node.age(),
        node.text("/status/nodeInfo/kubeletVersion"),
        address(node, "InternalIP"),
        address(node, "ExternalIP"),
        info("osImage"),
        kernel,
        info("containerRuntimeVersion"),
    ]
}

fn status(node: View<'_>) -> String {
    // Of several conditions of one type the last counts.
    let mut conditions = node.items("/status/conditions").rev();
    let ready = conditions.find(|condition| condition.text("/type") == "Ready");
    let status = match ready.map(|condition| condition.text("/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node.flag("/spec/unschedulable") {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(node: View<'_>) -> String {
    let labels = node.entries("/metadata/labels").into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return NONE.to_owned();
    }
    roles.into_iter().collect::<Vec<&str>>().join(",")
}

fn address<'a>(node: View<'a>, ty: &str) -> &'a str {
    let mut addresses = node.items("/status/addresses");
    let address = addresses.find(|address| address.text("/type") == ty);
    address.map_or(NONE, |address| address.text("/address"))
}
