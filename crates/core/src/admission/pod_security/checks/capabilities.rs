//! Linux capabilities.

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Names, containers, quoted_list};

/// Capabilities that containers have by default and may add. `NET_RAW` is a default that may not be
/// added.
const DEFAULT: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The one that may be added to none.
const NET_BIND_SERVICE: &str = "NET_BIND_SERVICE";

/// Containers and the capabilities that they add and `may` not.
fn adding<'a>(subject: &Subject<'a>, may: impl Fn(&str) -> bool) -> (Vec<&'a str>, Names<'a>) {
    let mut bad = Vec::new();
    let mut forbidden = Names::new();
    for container in subject.containers() {
        let capabilities = container.security.and_then(|s| s.capabilities.as_ref());
        let added = capabilities
            .into_iter()
            .flat_map(|all| all.add.iter().flatten());
        let added: Vec<&str> = added
            .map(String::as_str)
            .filter(|name| !may(name))
            .collect();
        if !added.is_empty() {
            bad.push(container.name);
            forbidden.extend(added);
        }
    }
    (bad, forbidden)
}

fn must_not_add(bad: &[&str], forbidden: &Names<'_>) -> String {
    format!(
        "{} must not include {} in securityContext.capabilities.add",
        containers(bad),
        quoted_list(forbidden)
    )
}

/// Nothing beyond the default.
pub(super) fn baseline(subject: &Subject<'_>) -> Option<CheckFailure> {
    let (bad, forbidden) = adding(subject, |name| DEFAULT.contains(&name));
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "non-default capabilities",
        detail: must_not_add(&bad, &forbidden),
    })
}

/// All dropped, at most one added.
pub(super) fn restricted(subject: &Subject<'_>) -> Option<CheckFailure> {
    let keeping = subject.containers().filter(|container| {
        let capabilities = container.security.and_then(|s| s.capabilities.as_ref());
        let mut dropped = capabilities
            .into_iter()
            .flat_map(|all| all.drop.iter().flatten());
        !dropped.any(|name| name == "ALL")
    });
    let keeping: Vec<&str> = keeping.map(|container| container.name).collect();
    let (bad, forbidden) = adding(subject, |name| name == NET_BIND_SERVICE);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }
    if !bad.is_empty() {
        details.push(must_not_add(&bad, &forbidden));
    }
    (!details.is_empty()).then(|| CheckFailure {
        reason: "unrestricted capabilities",
        detail: details.join("; "),
    })
}

/// Pods for Windows cannot set the field.
pub(super) fn restricted_but_on_windows(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.is_for_windows() {
        true => None,
        false => restricted(subject),
    }
}
