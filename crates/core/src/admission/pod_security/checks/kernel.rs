//! Kernel settings, and what of /proc a container sees.

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Names, containers, quoted_list};

/// Sysctls that are namespaced and harm no other pod, with the release that allowed them.
const SAFE_SYSCTLS: [(u64, &str); 12] = [
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
];

pub(super) fn sysctls_0(subject: &Subject<'_>) -> Option<CheckFailure> {
    sysctls(subject, 0)
}

pub(super) fn sysctls_27(subject: &Subject<'_>) -> Option<CheckFailure> {
    sysctls(subject, 27)
}

pub(super) fn sysctls_29(subject: &Subject<'_>) -> Option<CheckFailure> {
    sysctls(subject, 29)
}

pub(super) fn sysctls_32(subject: &Subject<'_>) -> Option<CheckFailure> {
    sysctls(subject, 32)
}

/// Only those that a release knew to be safe.
fn sysctls(subject: &Subject<'_>, minor: u64) -> Option<CheckFailure> {
    let is_safe = |name: &str| {
        let mut safe = SAFE_SYSCTLS.iter();
        safe.any(|(since, safe)| *since <= minor && *safe == name)
    };
    let pod = subject.spec.security_context.as_ref();
    let set = pod.into_iter().flat_map(|pod| pod.sysctls.iter().flatten());
    let names = set.map(|sysctl| sysctl.name.as_str());
    let bad: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "forbidden sysctls",
        detail: bad.join(", "),
    })
}

/// procMount may be nothing but the default.
pub(super) fn proc_mount(subject: &Subject<'_>) -> Option<CheckFailure> {
    let mut bad = Vec::new();
    let mut sorts = Names::new();
    for container in subject.containers() {
        let security = container.security;
        let sort = security.and_then(|security| security.proc_mount.as_deref());
        if let Some(sort) = sort.filter(|sort| *sort != "Default") {
            bad.push(container.name);
            sorts.insert(sort);
        }
    }
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "procMount",
        detail: format!(
            "{} must not set securityContext.procMount to {}",
            containers(&bad),
            quoted_list(&sorts)
        ),
    })
}

/// Root of a user namespace cannot do harm through /proc.
pub(super) fn proc_mount_outside_user_namespaces(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.has_user_namespace() {
        true => None,
        false => proc_mount(subject),
    }
}
