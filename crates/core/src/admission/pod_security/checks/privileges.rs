//! Privileged containers, privilege escalation, Windows host processes.

use k8s_openapi::api::core::v1::WindowsSecurityContextOptions;

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Setters, containers};

/// privileged.
pub(super) fn privileged(subject: &Subject<'_>) -> Option<CheckFailure> {
    let bad = subject.containers().filter(|container| {
        let security = container.security;
        security.and_then(|security| security.privileged) == Some(true)
    });
    let bad: Vec<&str> = bad.map(|container| container.name).collect();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "privileged",
        detail: format!(
            "{} must not set securityContext.privileged=true",
            containers(&bad)
        ),
    })
}

/// allowPrivilegeEscalation, which must be switched off explicitly.
pub(super) fn escalation(subject: &Subject<'_>) -> Option<CheckFailure> {
    let bad = subject.containers().filter(|container| {
        let security = container.security;
        security.and_then(|security| security.allow_privilege_escalation) != Some(false)
    });
    let bad: Vec<&str> = bad.map(|container| container.name).collect();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "allowPrivilegeEscalation != false",
        detail: format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers(&bad)
        ),
    })
}

/// Pods for Windows cannot set the field.
pub(super) fn escalation_but_on_windows(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.is_for_windows() {
        true => None,
        false => escalation(subject),
    }
}

/// windowsOptions.hostProcess.
pub(super) fn host_process(subject: &Subject<'_>) -> Option<CheckFailure> {
    let is_host_process = |options: Option<&WindowsSecurityContextOptions>| {
        options.and_then(|options| options.host_process) == Some(true)
    };
    let pod = subject.spec.security_context.as_ref();
    let bad = subject.containers().filter(|container| {
        let security = container.security;
        is_host_process(security.and_then(|security| security.windows_options.as_ref()))
    });
    let setters = Setters {
        pod: is_host_process(pod.and_then(|security| security.windows_options.as_ref())),
        containers: bad.map(|container| container.name).collect(),
    };
    (!setters.is_empty()).then(|| CheckFailure {
        reason: "hostProcess",
        detail: format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            setters.named()
        ),
    })
}
