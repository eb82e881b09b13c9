//! Profiles of the kernel's security modules and of seccomp.

use k8s_openapi::api::core::v1::{SELinuxOptions, SeccompProfile};

use crate::problem::quoted;

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Names, Setters, containers, plural, quoted_list};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Types of AppArmor and seccomp profiles that confine.
fn confines(sort: &str) -> bool {
    matches!(sort, "RuntimeDefault" | "Localhost")
}

/// The AppArmor profile may not be switched off, by field or by annotation.
pub(super) fn app_armor(subject: &Subject<'_>) -> Option<CheckFailure> {
    let mut setters = Setters::default();
    let mut values = Names::new();
    let pod = subject.spec.security_context.as_ref();
    if let Some(profile) = pod.and_then(|security| security.app_armor_profile.as_ref())
        && !confines(&profile.type_)
    {
        setters.pod = true;
        values.insert(&profile.type_);
    }
    for container in subject.containers() {
        let profile = container
            .security
            .and_then(|s| s.app_armor_profile.as_ref());
        if let Some(profile) = profile.filter(|profile| !confines(&profile.type_)) {
            setters.containers.push(container.name);
            values.insert(&profile.type_);
        }
    }
    let is_allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations = subject.annotations.into_iter().flatten();
    let bad = annotations
        .filter(|(key, value)| key.starts_with(APP_ARMOR_ANNOTATION) && !is_allowed(value));
    let mut bad: Vec<String> = bad.map(|(key, value)| annotation(key, value)).collect();
    bad.sort();
    if setters.is_empty() && bad.is_empty() {
        return None;
    }
    let word = (!bad.is_empty()).then(|| plural(bad.len(), "annotation", "annotations"));
    let setters = setters.and(word);
    let values: Vec<&str> = values
        .into_iter()
        .chain(bad.iter().map(String::as_str))
        .collect();
    Some(CheckFailure {
        reason: plural(
            values.len(),
            "forbidden AppArmor profile",
            "forbidden AppArmor profiles",
        ),
        detail: format!(
            "{setters} must not set AppArmor profile type to {}",
            quoted_list(&values)
        ),
    })
}

fn annotation(key: &str, value: &str) -> String {
    format!("{key}={}", quoted(value))
}

const SE_LINUX_TYPES_0: &[&str] = &["", "container_t", "container_init_t", "container_kvm_t"];
const SE_LINUX_TYPES_31: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

pub(super) fn se_linux_0(subject: &Subject<'_>) -> Option<CheckFailure> {
    se_linux(subject, SE_LINUX_TYPES_0)
}

pub(super) fn se_linux_31(subject: &Subject<'_>) -> Option<CheckFailure> {
    se_linux(subject, SE_LINUX_TYPES_31)
}

/// SELinux options: only types for containers, no user, no role.
fn se_linux(subject: &Subject<'_>, types: &[&str]) -> Option<CheckFailure> {
    let mut bad_types = Names::new();
    let (mut sets_user, mut sets_role) = (false, false);
    let pod = subject.spec.security_context.as_ref();
    let pod = pod.and_then(|security| security.se_linux_options.as_ref());
    let each = subject.containers().filter_map(|container| {
        let options = container.security?.se_linux_options.as_ref()?;
        Some((Some(container.name), options))
    });
    let mut setters = Setters::default();
    for (container, options) in pod.map(|options| (None, options)).into_iter().chain(each) {
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let SELinuxOptions {
            type_, user, role, ..
        } = options;
        let sort = type_.as_deref().unwrap_or_default();
        let is_bad_type = !types.contains(&sort);
        if is_bad_type {
            bad_types.insert(sort);
        }
        sets_user |= is_set(user);
        sets_role |= is_set(role);
        if is_bad_type || is_set(user) || is_set(role) {
            match container {
                None => setters.pod = true,
                Some(name) => setters.containers.push(name),
            }
        }
    }
    if setters.is_empty() {
        return None;
    }
    let mut data = Vec::new();
    if !bad_types.is_empty() {
        let noun = plural(bad_types.len(), "type", "types");
        data.push(format!("{noun} {}", quoted_list(&bad_types)));
    }
    if sets_user {
        data.push("user may not be set".to_owned());
    }
    if sets_role {
        data.push("role may not be set".to_owned());
    }
    Some(CheckFailure {
        reason: "seLinuxOptions",
        detail: format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            setters.named(),
            data.join("; ")
        ),
    })
}

const SECCOMP: &str = "seccompProfile";

/// Before 1.19 annotations named seccomp profiles.
pub(super) fn seccomp_annotations(subject: &Subject<'_>) -> Option<CheckFailure> {
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let of_containers = subject.containers();
    let of_containers =
        of_containers.map(|container| format!("{SECCOMP_CONTAINER_ANNOTATION}{}", container.name));
    let keys = std::iter::once(SECCOMP_POD_ANNOTATION.to_owned()).chain(of_containers);
    let mut bad: Vec<String> = keys
        .filter_map(|key| {
            let value = subject.annotation(&key)?;
            (!is_allowed(value)).then(|| annotation(&key, value))
        })
        .collect();
    bad.sort();
    bad.dedup();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: SECCOMP,
        detail: format!(
            "forbidden {} {}",
            plural(bad.len(), "annotation", "annotations"),
            bad.join(", ")
        ),
    })
}

/// The seccomp profiles of a pod and its containers, summed up.
struct Seccomp<'a> {
    setters: Setters<'a>,
    values: Names<'a>,
    /// Containers that neither have a profile nor get one from the pod.
    silent: Vec<&'a str>,
}

impl<'a> Seccomp<'a> {
    fn of(subject: &Subject<'a>) -> Seccomp<'a> {
        let pod = subject.spec.security_context.as_ref();
        let pod = pod.and_then(|security| security.seccomp_profile.as_ref());
        let is_bad = |profile: &&SeccompProfile| !confines(&profile.type_);
        let bad = pod.filter(is_bad);
        let mut seen = Seccomp {
            setters: Setters {
                pod: bad.is_some(),
                containers: Vec::new(),
            },
            values: bad.iter().map(|profile| profile.type_.as_str()).collect(),
            silent: Vec::new(),
        };
        for container in subject.containers() {
            match container.security.and_then(|s| s.seccomp_profile.as_ref()) {
                Some(profile) if is_bad(&profile) => {
                    seen.setters.containers.push(container.name);
                    seen.values.insert(&profile.type_);
                }
                None if pod.is_none() || bad.is_some() => seen.silent.push(container.name),
                _ => {}
            }
        }
        seen
    }

    fn refuse_explicit(&self) -> Option<CheckFailure> {
        (!self.setters.is_empty()).then(|| CheckFailure {
            reason: SECCOMP,
            detail: format!(
                "{} must not set securityContext.seccompProfile.type to {}",
                self.setters.named(),
                quoted_list(&self.values)
            ),
        })
    }
}

/// The seccomp profile may not be switched off.
pub(super) fn seccomp_baseline(subject: &Subject<'_>) -> Option<CheckFailure> {
    Seccomp::of(subject).refuse_explicit()
}

/// There must be a seccomp profile.
pub(super) fn seccomp_restricted(subject: &Subject<'_>) -> Option<CheckFailure> {
    let seen = Seccomp::of(subject);
    seen.refuse_explicit().or_else(|| {
        (!seen.silent.is_empty()).then(|| CheckFailure {
            reason: SECCOMP,
            detail: format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
                 \"Localhost\"",
                containers(&seen.silent)
            ),
        })
    })
}

/// Pods for Windows cannot set the field.
pub(super) fn seccomp_restricted_but_on_windows(subject: &Subject<'_>) -> Option<CheckFailure> {
    match subject.is_for_windows() {
        true => None,
        false => seccomp_restricted(subject),
    }
}
