//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, PodSpec, SeccompProfile, SecurityContext, Sysctl,
};

use super::super::file_path::check_local_descending;
use super::super::internal;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::{Rules, visit_containers, windows};

const MAX_ID: i64 = i32::MAX as i64;
const MAX_SYSCTL_BYTES: usize = 253;
const SYSCTL_RULE: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const MAX_APP_ARMOR_BYTES: usize = 4095;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

pub(super) fn check_container(
    context: &SecurityContext,
    uses_host_users: bool,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_privileged = context.privileged == Some(true);
    if is_privileged && !rules.allows_privileged {
        problems.forbidden(&path.child("privileged"), "disallowed by cluster policy");
    }
    check_id(context.run_as_user, &path.child("runAsUser"), problems);
    check_id(context.run_as_group, &path.child("runAsGroup"), problems);
    if let Some(mount) = &context.proc_mount {
        let path = path.child("procMount");
        problems.one_of(&path, mount, &["Default", "Unmasked"]);
        if uses_host_users && mount == "Unmasked" {
            problems.invalid(
                &path,
                json(mount),
                "`hostUsers` must be false to use `Unmasked`",
            );
        }
    }
    check_seccomp(
        context.seccomp_profile.as_ref(),
        &path.child("seccompProfile"),
        problems,
    );
    if context.allow_privilege_escalation == Some(false) {
        if is_privileged {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            problems.invalid(path, json(&shown(context)), detail);
        }
        let added = context
            .capabilities
            .iter()
            .flat_map(|c| c.add.iter().flatten());
        for _ in added.filter(|capability| *capability == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                          CAP_SYS_ADMIN";
            problems.invalid(path, json(&shown(context)), detail);
        }
    }
    windows::check_options(
        context.windows_options.as_ref(),
        &path.child("windowsOptions"),
        problems,
    );
    check_app_armor(
        context.app_armor_profile.as_ref(),
        &path.child("appArmorProfile"),
        problems,
    );
}

/// A whole security context in upstream's format.
fn shown(context: &SecurityContext) -> impl serde::Serialize {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Shown {
        capabilities: Option<Capabilities>,
        privileged: Option<bool>,
        #[serde(rename = "SELinuxOptions")]
        se_linux_options: Option<serde_json::Value>,
        windows_options: Option<serde_json::Value>,
        run_as_user: Option<i64>,
        run_as_group: Option<i64>,
        run_as_non_root: Option<bool>,
        read_only_root_filesystem: Option<bool>,
        allow_privilege_escalation: Option<bool>,
        proc_mount: Option<String>,
        seccomp_profile: Option<serde_json::Value>,
        app_armor_profile: Option<serde_json::Value>,
    }
    #[derive(serde::Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Capabilities {
        add: Option<Vec<String>>,
        drop: Option<Vec<String>>,
    }
    let capabilities = context.capabilities.clone();
    Shown {
        capabilities: capabilities.map(|c| Capabilities {
            add: c.add,
            drop: c.drop,
        }),
        privileged: context.privileged,
        se_linux_options: as_value(&context.se_linux_options),
        windows_options: as_value(&context.windows_options),
        run_as_user: context.run_as_user,
        run_as_group: context.run_as_group,
        run_as_non_root: context.run_as_non_root,
        read_only_root_filesystem: context.read_only_root_filesystem,
        allow_privilege_escalation: context.allow_privilege_escalation,
        proc_mount: context.proc_mount.clone(),
        seccomp_profile: as_value(&context.seccomp_profile),
        app_armor_profile: as_value(&context.app_armor_profile),
    }
}

fn as_value(part: &Option<impl serde::Serialize>) -> Option<serde_json::Value> {
    part.as_ref()
        .and_then(|part| serde_json::to_value(part).ok())
}

fn check_id(id: Option<i64>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(id) = id {
        problems.in_range(path, id, 0, MAX_ID);
    }
}

/// `path` is that of the pod's security context.
pub(super) fn check_pod(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(context) = &spec.security_context else {
        return;
    };
    check_id(context.fs_group, &path.child("fsGroup"), problems);
    check_id(context.run_as_user, &path.child("runAsUser"), problems);
    check_id(context.run_as_group, &path.child("runAsGroup"), problems);
    let groups = path.child("supplementalGroups");
    for (index, group) in context.supplemental_groups.iter().flatten().enumerate() {
        problems.in_range(&groups.index(index), *group, 0, MAX_ID);
    }
    if spec.host_pid == Some(true) && spec.share_process_namespace == Some(true) {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(&path.child("shareProcessNamespace"), true, detail);
    }
    let sysctls = context.sysctls.as_deref().unwrap_or_default();
    check_sysctls(sysctls, spec, &path.child("sysctls"), problems);
    if let Some(policy) = &context.fs_group_change_policy {
        problems.one_of(
            &path.child("fsGroupChangePolicy"),
            policy,
            &["Always", "OnRootMismatch"],
        );
    }
    check_seccomp(
        context.seccomp_profile.as_ref(),
        &path.child("seccompProfile"),
        problems,
    );
    windows::check_options(
        context.windows_options.as_ref(),
        &path.child("windowsOptions"),
        problems,
    );
    check_app_armor(
        context.app_armor_profile.as_ref(),
        &path.child("appArmorProfile"),
        problems,
    );
    if let Some(policy) = &context.supplemental_groups_policy {
        problems.one_of(
            &path.child("supplementalGroupsPolicy"),
            policy,
            &["Merge", "Strict"],
        );
    }
    if let Some(policy) = &context.se_linux_change_policy {
        problems.one_of(
            &path.child("seLinuxChangePolicy"),
            policy,
            &["MountOption", "Recursive"],
        );
    }
}

fn check_sysctls(sysctls: &[Sysctl], spec: &PodSpec, list: &Path<'_>, problems: &mut Problems) {
    let mut names = BTreeSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let path = list.index(index);
        let path = path.child("name");
        let name = sysctl.name.as_str();
        if name.is_empty() {
            problems.required(&path, "");
        } else if !is_sysctl_name(name) {
            problems.invalid(&path, name, SYSCTL_RULE);
        } else if names.contains(name) {
            problems.duplicate(&path, name);
        }
        match sysctl_namespace(name) {
            Some("net") if spec.host_network == Some(true) => {
                problems.invalid(
                    &path,
                    name,
                    "may not be specified when 'hostNetwork' is true",
                );
            }
            Some("ipc") if spec.host_ipc == Some(true) => {
                problems.invalid(&path, name, "may not be specified when 'hostIPC' is true");
            }
            _ => {}
        }
        names.insert(name);
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let is_outer = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_segment = |segment: &str| {
        plimsoll_core::object::syntax::is_framed(segment, is_outer, |b| {
            is_outer(b) || b == b'-' || b == b'_'
        })
    };
    name.len() <= MAX_SYSCTL_BYTES && name.split(['.', '/']).all(is_segment)
}

/// Matches v1.36 component-helpers/node/util/sysctl/namespace.go.
fn sysctl_namespace(name: &str) -> Option<&'static str> {
    let name = if name.find('/') < name.find('.') && name.contains('/') {
        name.replace('/', ".")
    } else {
        name.to_owned()
    };
    match name.as_str() {
        "kernel.sem" => Some("ipc"),
        name if ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|p| name.starts_with(p)) =>
        {
            Some("ipc")
        }
        name if name.starts_with("net.") => Some("net"),
        _ => None,
    }
}

fn check_seccomp(profile: Option<&SeccompProfile>, path: &Path<'_>, problems: &mut Problems) {
    let Some(profile) = profile else { return };
    let (kind, localhost) = (profile.type_.as_str(), profile.localhost_profile.as_deref());
    if kind.is_empty() {
        problems.required(
            &path.child("type"),
            "type is required when seccompProfile is set",
        );
    } else {
        problems.one_of(&path.child("type"), kind, &PROFILE_TYPES);
    }
    let path = path.child("localhostProfile");
    match (kind, localhost) {
        ("Localhost", None) => {
            problems.required(&path, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(file)) => check_local_descending(file, &path, problems),
        (_, Some(_)) => {
            let shown = internal::SeccompProfile {
                r#type: kind,
                localhost_profile: localhost,
            };
            let detail = "can only be set when seccomp type is Localhost";
            problems.invalid(&path, json(&shown), detail);
        }
        (_, None) => {}
    }
}

fn check_app_armor(profile: Option<&AppArmorProfile>, path: &Path<'_>, problems: &mut Problems) {
    let Some(profile) = profile else { return };
    let localhost_path = path.child("localhostProfile");
    match (profile.type_.as_str(), profile.localhost_profile.as_deref()) {
        ("Localhost", None | Some("")) => {
            problems.required(
                &localhost_path,
                "must be set when AppArmor type is Localhost",
            );
        }
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                problems.invalid(&localhost_path, name, "must not be padded with whitespace");
            }
            if name.len() > MAX_APP_ARMOR_BYTES {
                problems.too_long(&localhost_path, MAX_APP_ARMOR_BYTES);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            problems.invalid(&localhost_path, json(&name), detail);
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            problems.required(
                &path.child("type"),
                "type is required when appArmorProfile is set",
            );
        }
        (other, _) => problems.not_supported(&path.child("type"), other, &PROFILE_TYPES),
    }
}

/// The fields that user namespaces exclude. Matches v1.36 `validateHostUsers`.
pub(super) fn check_host_users(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    const DETAIL: &str = "when `hostUsers` is false";
    if spec.host_users != Some(false) {
        return;
    }
    problems.forbid_if(
        spec.host_network == Some(true),
        &path.child("hostNetwork"),
        DETAIL,
    );
    problems.forbid_if(spec.host_pid == Some(true), &path.child("HostPID"), DETAIL);
    problems.forbid_if(spec.host_ipc == Some(true), &path.child("HostIPC"), DETAIL);
    visit_containers(spec, path, |container, path| {
        let devices = container.volume_devices.as_deref().unwrap_or_default();
        problems.forbid_if(!devices.is_empty(), &path.child("volumeDevices"), DETAIL);
    });
}

/// A Linux pod has no Windows options.
pub(super) fn check_linux(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    const DETAIL: &str = "windows options cannot be set for a linux pod";
    let context = path.child("securityContext");
    let options = spec
        .security_context
        .as_ref()
        .and_then(|c| c.windows_options.as_ref());
    problems.forbid_if(options.is_some(), &context.child("windowsOptions"), DETAIL);
    visit_containers(spec, path, |container, path| {
        let context = path.child("securityContext");
        let options = container
            .security_context
            .as_ref()
            .and_then(|c| c.windows_options.as_ref());
        problems.forbid_if(options.is_some(), &context.child("windowsOptions"), DETAIL);
    });
}

/// Whether the text of an annotation and the profile in the field agree.
pub(super) fn check_seccomp_match(
    annotation: &str,
    profile: &SeccompProfile,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_same_type = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => ["runtime/default", "docker/default"].contains(&annotation),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(file) => {
                if profile.localhost_profile.as_deref() != Some(file) {
                    let detail = "seccomp profile in annotation and field must match";
                    problems.forbidden(&path.child("localhostProfile"), detail);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !is_same_type {
        let detail = "seccomp type in annotation and field must match";
        problems.forbidden(&path.child("type"), detail);
    }
}

/// As [`check_seccomp_match`], for AppArmor.
pub(super) fn check_app_armor_match(
    annotation: &str,
    profile: &AppArmorProfile,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_same_type = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default",
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(name) => {
                if text(&profile.localhost_profile) != name || profile.localhost_profile.is_none() {
                    let detail = "apparmor profile in annotation and field must match";
                    problems.forbidden(&path.child("localhostProfile"), detail);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !is_same_type {
        let detail = "apparmor type in annotation and field must match";
        problems.forbidden(&path.child("type"), detail);
    }
}
