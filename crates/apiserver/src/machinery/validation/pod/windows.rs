//! Fields of Windows pods, and fields that they must not have.

use k8s_openapi::api::core::v1::{PodSpec, WindowsSecurityContextOptions};

use super::super::names::dns_subdomain;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::{Rules, visit_containers};

const MAX_CREDENTIAL_SPEC_KIB: usize = 64;
const MAX_DOMAIN_BYTES: usize = 256;
const MAX_USER_BYTES: usize = 104;
const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

pub(super) fn check_options(
    options: Option<&WindowsSecurityContextOptions>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(options) = options else { return };
    if let Some(name) = &options.gmsa_credential_spec_name {
        problems.invalid_each(
            &path.child("gmsaCredentialSpecName"),
            name,
            dns_subdomain(name),
        );
    }
    if let Some(spec) = &options.gmsa_credential_spec {
        let path = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            problems.invalid(
                &path,
                json(spec),
                "gmsaCredentialSpec cannot be an empty string",
            );
        } else if spec.len() > MAX_CREDENTIAL_SPEC_KIB << 10 {
            let detail =
                format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_SPEC_KIB} KiB");
            problems.invalid(&path, json(spec), detail);
        }
    }
    if let Some(name) = &options.run_as_user_name {
        let path = path.child("runAsUserName");
        for rule in broken_user_name_rules(name) {
            problems.invalid(&path, json(name), rule);
        }
    }
}

fn broken_user_name_rules(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    if name.matches('\\').count() > 1 {
        return vec!["runAsUserName cannot contain more than one backslash".to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut broken = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= MAX_DOMAIN_BYTES) {
        broken.push(format!(
            "runAsUserName's Domain length must be under {MAX_DOMAIN_BYTES} characters"
        ));
    }
    if domain.is_some_and(|domain| !is_net_bios_name(domain) && !is_dns_name(domain)) {
        let rule = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        broken.push(rule.to_owned());
    }
    if user.is_empty() {
        broken.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > MAX_USER_BYTES {
        broken.push(format!(
            "runAsUserName's User length must not be longer than {MAX_USER_BYTES} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        broken.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        let rule =
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        broken.push(rule.to_owned());
    }
    broken
}

fn is_net_bios_name(domain: &str) -> bool {
    let count = domain.chars().count();
    (1..=15).contains(&count)
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c))
}

fn is_dns_name(domain: &str) -> bool {
    domain.split('.').all(|label| {
        label.len() <= 63
            && plimsoll_core::object::syntax::is_framed(
                label,
                |b| b.is_ascii_alphanumeric(),
                |b| b.is_ascii_alphanumeric() || b == b'-',
            )
    })
}

/// Either all containers are host process containers, or none is.
pub(super) fn check_host_process(
    spec: &PodSpec,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let context = spec.security_context.as_ref();
    let pod = context.and_then(|c| c.windows_options.as_ref()?.host_process);
    let (mut containers, mut on_host) = (0, 0);
    visit_containers(spec, path, |container, path| {
        containers += 1;
        let context = container.security_context.as_ref();
        let own = context.and_then(|c| c.windows_options.as_ref()?.host_process);
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let context = path.child("securityContext");
            let options = context.child("windowsOptions");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            problems.invalid(&options.child("hostProcess"), own, detail);
        }
        if own.or(pod) == Some(true) {
            on_host += 1;
        }
    });
    if on_host == 0 {
        return;
    }
    if on_host != containers {
        let detail = "If pod contains any hostProcess containers then all containers must be \
                      HostProcess containers";
        problems.invalid(path, "", detail);
    }
    if spec.host_network != Some(true) {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        problems.invalid(&path.child("hostNetwork"), false, detail);
    }
    if !rules.allows_privileged {
        let detail = "hostProcess containers are disallowed by cluster policy";
        problems.forbidden(path, detail);
    }
}

/// Fields that a Windows pod must not have. Matches v1.36 `validateWindows`.
pub(super) fn check_windows(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let context_path = path.child("securityContext");
    if let Some(context) = &spec.security_context {
        let in_context = true;
        for (is_in_context, field, is_set) in [
            (
                in_context,
                "appArmorProfile",
                context.app_armor_profile.is_some(),
            ),
            (
                in_context,
                "seLinuxOptions",
                context.se_linux_options.is_some(),
            ),
            (false, "hostUsers", spec.host_users.is_some()),
            (false, "hostPID", spec.host_pid == Some(true)),
            (false, "hostIPC", spec.host_ipc == Some(true)),
            (
                in_context,
                "seccompProfile",
                context.seccomp_profile.is_some(),
            ),
            (in_context, "fsGroup", context.fs_group.is_some()),
            (
                in_context,
                "fsGroupChangePolicy",
                context.fs_group_change_policy.is_some(),
            ),
            (in_context, "sysctls", context.sysctls.is_some()),
            (
                false,
                "shareProcessNamespace",
                spec.share_process_namespace.is_some(),
            ),
            (in_context, "runAsUser", context.run_as_user.is_some()),
            (in_context, "runAsGroup", context.run_as_group.is_some()),
            (
                in_context,
                "supplementalGroups",
                context.supplemental_groups.is_some(),
            ),
            (
                in_context,
                "supplementalGroupsPolicy",
                context.supplemental_groups_policy.is_some(),
            ),
            (
                in_context,
                "seLinuxChangePolicy",
                context.se_linux_change_policy.is_some(),
            ),
        ] {
            let parent = if is_in_context { &context_path } else { path };
            problems.forbid_if(is_set, &parent.child(field), NOT_ON_WINDOWS);
        }
    }
    visit_containers(spec, path, |container, path| {
        let Some(context) = &container.security_context else {
            return;
        };
        let path = path.child("securityContext");
        for (field, is_set) in [
            ("appArmorProfile", context.app_armor_profile.is_some()),
            ("seLinuxOptions", context.se_linux_options.is_some()),
            ("seccompProfile", context.seccomp_profile.is_some()),
            ("capabilities", context.capabilities.is_some()),
            (
                "readOnlyRootFilesystem",
                context.read_only_root_filesystem.is_some(),
            ),
            ("privileged", context.privileged.is_some()),
            (
                "allowPrivilegeEscalation",
                context.allow_privilege_escalation.is_some(),
            ),
            ("procMount", context.proc_mount.is_some()),
            ("runAsUser", context.run_as_user.is_some()),
            ("runAsGroup", context.run_as_group.is_some()),
        ] {
            problems.forbid_if(is_set, &path.child(field), NOT_ON_WINDOWS);
        }
    });
}
