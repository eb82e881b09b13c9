//! The user that processes run as.

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Setters, containers};

const NON_ROOT: &str = "runAsNonRoot != true";

/// runAsNonRoot, which the pod sets for all of its containers or each for itself.
pub(super) fn non_root(subject: &Subject<'_>) -> Option<CheckFailure> {
    let pod = subject.spec.security_context.as_ref();
    let pod = pod.and_then(|security| security.run_as_non_root);
    let mut setters = Setters {
        pod: pod == Some(false),
        containers: Vec::new(),
    };
    let mut silent = Vec::new();
    for container in subject.containers() {
        match container.security.and_then(|s| s.run_as_non_root) {
            Some(true) => {}
            Some(false) => setters.containers.push(container.name),
            None if pod == Some(true) => {}
            None => silent.push(container.name),
        }
    }
    if !setters.is_empty() {
        return Some(CheckFailure {
            reason: NON_ROOT,
            detail: format!(
                "{} must not set securityContext.runAsNonRoot=false",
                setters.named()
            ),
        });
    }
    (!silent.is_empty()).then(|| CheckFailure {
        reason: NON_ROOT,
        detail: format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers(&silent)
        ),
    })
}

/// Root of a user namespace is an unprivileged user on the node.
pub(super) fn non_root_outside_user_namespaces(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.has_user_namespace() {
        true => None,
        false => non_root(subject),
    }
}

/// runAsUser may not be root.
pub(super) fn not_zero(subject: &Subject<'_>) -> Option<CheckFailure> {
    let pod = subject.spec.security_context.as_ref();
    let bad = subject
        .containers()
        .filter(|container| container.security.and_then(|s| s.run_as_user) == Some(0));
    let setters = Setters {
        pod: pod.and_then(|security| security.run_as_user) == Some(0),
        containers: bad.map(|container| container.name).collect(),
    };
    (!setters.is_empty()).then(|| CheckFailure {
        reason: "runAsUser=0",
        detail: format!("{} must not set runAsUser=0", setters.named()),
    })
}

/// Root of a user namespace is an unprivileged user on the node.
pub(super) fn not_zero_outside_user_namespaces(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.has_user_namespace() {
        true => None,
        false => not_zero(subject),
    }
}
