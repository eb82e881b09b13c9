//! The namespaces that a container shares with its sandbox, with other containers and with the
//! node.

use serde_json::{Value, json};

use super::{Input, SpecError};
use crate::wire::{
    LinuxContainerSecurityContext, NamespaceMode, NamespaceOption, PodSandboxConfig,
};

pub(super) struct Namespaces {
    pub(super) json: Vec<Value>,
    /// Whether the end of its first process ends all others.
    pub(super) has_own_pid: bool,
}

pub(super) fn namespaces(
    input: &Input<'_>,
    security: &LinuxContainerSecurityContext,
    has_own_users: bool,
) -> Result<Namespaces, SpecError> {
    let options = security.namespace_options.clone().unwrap_or_default();
    let of = |pid: i32, kind: &str, file: &str| json!({ "type": kind, "path": format!("/proc/{pid}/ns/{file}") });
    let mut json = vec![json!({ "type": "mount" })];
    if has_own_users {
        json.push(of(input.pause, "user", "user"));
    }
    if options.network() != NamespaceMode::Node {
        json.push(of(input.pause, "network", "net"));
        // The machine's name goes with its network.
        json.push(of(input.pause, "uts", "uts"));
    }
    if options.ipc() != NamespaceMode::Node {
        json.push(of(input.pause, "ipc", "ipc"));
    }
    match options.pid() {
        NamespaceMode::Container => json.push(json!({ "type": "pid" })),
        NamespaceMode::Pod => json.push(of(input.pause, "pid", "pid")),
        NamespaceMode::Target => {
            let target = input.target.ok_or(SpecError::NoTarget)?;
            json.push(of(target, "pid", "pid"));
        }
        NamespaceMode::Node => {}
    }
    if input.is_cgroup_v2 && !security.privileged {
        json.push(json!({ "type": "cgroup" }));
    }
    Ok(Namespaces {
        json,
        has_own_pid: options.pid() == NamespaceMode::Container,
    })
}

/// What a sandbox shares with the machine.
pub(in super::super) fn sandbox_options(config: &PodSandboxConfig) -> NamespaceOption {
    let linux = config.linux.as_ref();
    linux
        .and_then(|linux| linux.security_context.as_ref())
        .and_then(|security| security.namespace_options.clone())
        .unwrap_or_default()
}

pub(in super::super) fn is_host_network(config: &PodSandboxConfig) -> bool {
    sandbox_options(config).network() == NamespaceMode::Node
}
