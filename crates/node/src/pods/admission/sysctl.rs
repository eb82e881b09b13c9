//! Kernel settings that a pod may change for itself.
//!
//! Matches v1.36 pkg/kubelet/sysctl.

use k8s_openapi::api::core::v1::Pod;

use super::{Rejection, reject};
use crate::pod_fields;

/// Settings that are the pod's own and affect no other pod. All of them are per namespace since
/// Linux 4.15, the oldest that v1.36 runs on.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Dots and slashes may both separate; a slash in first place means that dots are part of names.
fn normalized(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

pub(super) fn admit(pod: &Pod, allowed_unsafe: &[String]) -> Result<(), Rejection> {
    let Some(spec) = pod_fields::spec(pod) else {
        return Ok(());
    };
    let security = spec.security_context.as_ref();
    let sysctls = security.and_then(|security| security.sysctls.as_deref());
    for sysctl in sysctls.unwrap_or_default() {
        let name = normalized(&sysctl.name);
        let is_allowed = SAFE.contains(&name.as_str())
            || allowed_unsafe.iter().any(|pattern| {
                let pattern = normalized(pattern);
                match pattern.strip_suffix('*') {
                    Some(prefix) => name.starts_with(prefix),
                    None => name == pattern,
                }
            });
        let problem = if !is_allowed {
            Some(format!("{name:?} not allowlisted"))
        } else if name.starts_with("net.") && spec.host_network == Some(true) {
            Some(format!("{name:?} not allowed with host net enabled"))
        } else if is_ipc(&name) && spec.host_ipc == Some(true) {
            Some(format!("{name:?} not allowed with host ipc enabled"))
        } else {
            None
        };
        if let Some(problem) = problem {
            return reject("SysctlForbidden", format!("forbidden sysctl: {problem}"));
        }
    }
    Ok(())
}

fn is_ipc(name: &str) -> bool {
    let ipc = ["kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."];
    ipc.iter().any(|prefix| name.starts_with(prefix))
}
