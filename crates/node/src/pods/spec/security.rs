//! The user that a container runs as and what it may do.
//!
//! Matches v1.36 pkg/securitycontext/util.go and pkg/kubelet/kuberuntime/security_context*.go: what
//! the container says wins over what the pod says.

use std::path::Path;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Capabilities, Container, Pod, PodSecurityContext, PodSpec, SELinuxOptions,
    SeccompProfile, SecurityContext,
};
use plimsoll_runtime::wire::security_profile::ProfileType;
use plimsoll_runtime::wire::{
    Capability, Int64Value, LinuxContainerSecurityContext, NamespaceMode, NamespaceOption,
    SeLinuxOption, SecurityProfile, SupplementalGroupsPolicy, UserNamespace,
};

use super::{NodeFacts, SpecError, display_pod};

/// Hidden from containers unless `procMount` is `Unmasked`.
const MASKED_PATHS: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

/// Not to be written by containers unless `procMount` is `Unmasked`.
const READONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Annotations that named AppArmor profiles before there was a field.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The user that an image runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUser {
    /// A number; zero where the image says nothing.
    Id(i64),
    /// A name that only the image can resolve.
    Name(String),
}

impl ImageUser {
    /// Reads the answer of a runtime about an image.
    pub fn from_image(image: Option<&plimsoll_runtime::wire::Image>) -> ImageUser {
        match image {
            Some(image) if image.uid.is_some() => {
                ImageUser::Id(image.uid.as_ref().map_or(0, |uid| uid.value))
            }
            Some(image) if !image.username.is_empty() => ImageUser::Name(image.username.clone()),
            _ => ImageUser::Id(0),
        }
    }
}

/// Masked besides what always is: how hot each CPU got reveals what other pods compute.
pub fn thermal_throttle_paths(sys_cpu: &Path) -> Vec<String> {
    let mut paths: Vec<String> = std::fs::read_dir(sys_cpu)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .map(|entry| entry.path().join("thermal_throttle"))
        .filter(|path| path.exists())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    paths.sort();
    paths
}

/// The security context of a container.
pub fn container_security(
    node: &NodeFacts,
    pod: &Pod,
    container: &Container,
    user: &ImageUser,
    user_namespace: &UserNamespace,
) -> Result<LinuxContainerSecurityContext, SpecError> {
    let spec = pod.spec.as_ref();
    let of_pod = spec.and_then(|spec| spec.security_context.as_ref());
    let effective = effective(of_pod, container.security_context.as_ref());
    verify_not_root(pod, container, &effective, user)?;

    let is_unmasked = effective.proc_mount.as_deref() == Some("Unmasked");
    let paths = |paths: &[&str]| -> Vec<String> {
        let paths = paths.iter().filter(|_| !is_unmasked);
        paths.map(|path| (*path).to_owned()).collect()
    };
    let mut masked_paths = paths(&MASKED_PATHS);
    if !is_unmasked {
        masked_paths.extend(node.masked_paths.iter().cloned());
    }
    let mut context = LinuxContainerSecurityContext {
        capabilities: effective.capabilities.as_ref().map(capabilities),
        privileged: effective.privileged.unwrap_or_default(),
        namespace_options: Some(namespace_options(spec, user_namespace)),
        selinux_options: effective.se_linux_options.as_ref().map(se_linux),
        run_as_user: effective.run_as_user.map(|value| Int64Value { value }),
        run_as_group: effective.run_as_group.map(|value| Int64Value { value }),
        readonly_rootfs: effective.read_only_root_filesystem.unwrap_or_default(),
        supplemental_groups: supplemental_groups(of_pod),
        supplemental_groups_policy: supplemental_groups_policy(of_pod)?,
        no_new_privs: effective.allow_privilege_escalation == Some(false),
        masked_paths,
        readonly_paths: paths(&READONLY_PATHS),
        seccomp: Some(seccomp(node, of_pod, container)?),
        apparmor: app_armor(pod, container)?,
        ..LinuxContainerSecurityContext::default()
    };
    set_deprecated_app_armor(&mut context);
    if context.run_as_user.is_none() {
        match user {
            ImageUser::Id(value) => context.run_as_user = Some(Int64Value { value: *value }),
            ImageUser::Name(name) => context.run_as_username.clone_from(name),
        }
    }
    Ok(context)
}

/// What pod and container say together.
fn effective(pod: Option<&PodSecurityContext>, own: Option<&SecurityContext>) -> SecurityContext {
    let mut effective = own.cloned().unwrap_or_default();
    if let Some(pod) = pod {
        let own = effective.se_linux_options.take();
        effective.se_linux_options = own.or_else(|| pod.se_linux_options.clone());
        effective.run_as_user = effective.run_as_user.or(pod.run_as_user);
        effective.run_as_group = effective.run_as_group.or(pod.run_as_group);
        effective.run_as_non_root = effective.run_as_non_root.or(pod.run_as_non_root);
    }
    effective
}

/// The user that all containers of a pod run as, if they agree on one.
pub fn common_user(spec: &PodSpec) -> Option<i64> {
    let of_pod = spec
        .security_context
        .as_ref()
        .and_then(|pod| pod.run_as_user);
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|container| container.security_context.as_ref());
    let contexts = super::containers(spec).map(|container| container.security_context.as_ref());
    let mut users = contexts
        .chain(ephemeral)
        .map(|context| context.and_then(|context| context.run_as_user).or(of_pod));
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

/// Refuses a container that must not run as root but would, or might.
fn verify_not_root(
    pod: &Pod,
    container: &Container,
    effective: &SecurityContext,
    user: &ImageUser,
) -> Result<(), SpecError> {
    if effective.run_as_non_root != Some(true) {
        return Ok(());
    }
    let problem = match (effective.run_as_user, user) {
        (Some(0), _) => "container's runAsUser breaks non-root policy".to_owned(),
        (Some(_), _) => return Ok(()),
        (None, ImageUser::Name(name)) => format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify \
             user is non-root"
        ),
        (None, ImageUser::Id(0)) => {
            "container has runAsNonRoot and image will run as root".to_owned()
        }
        (None, ImageUser::Id(id)) if i32::try_from(*id).is_ok_and(|id| id > 0) => return Ok(()),
        (None, ImageUser::Id(id)) => format!(
            "container has runAsNonRoot and image has an invalid user id ({id}). (Must be \
             1-({max})): must be between 0 and {max}, inclusive",
            max = i32::MAX
        ),
    };
    Err(SpecError::RunAsNonRoot(format!(
        "{problem} (pod: {:?}, container: {})",
        display_pod(pod),
        container.name
    )))
}

/// The namespaces of a pod. Containers see only their own processes unless the pod requests otherwise.
pub fn namespace_options(
    spec: Option<&PodSpec>,
    user_namespace: &UserNamespace,
) -> NamespaceOption {
    let is_on = |field: fn(&PodSpec) -> Option<bool>| spec.and_then(field) == Some(true);
    let of_node_or_pod = |is_node: bool| match is_node {
        true => NamespaceMode::Node,
        false => NamespaceMode::Pod,
    };
    let pid = if is_on(|spec| spec.host_pid) {
        NamespaceMode::Node
    } else if is_on(|spec| spec.share_process_namespace) {
        NamespaceMode::Pod
    } else {
        NamespaceMode::Container
    };
    NamespaceOption {
        network: of_node_or_pod(is_on(|spec| spec.host_network)).into(),
        ipc: of_node_or_pod(is_on(|spec| spec.host_ipc)).into(),
        pid: pid.into(),
        userns_options: Some(user_namespace.clone()),
        ..NamespaceOption::default()
    }
}

/// `fsGroup`, then `supplementalGroups`.
pub fn supplemental_groups(pod: Option<&PodSecurityContext>) -> Vec<i64> {
    let Some(pod) = pod else {
        return Vec::new();
    };
    let groups = pod.supplemental_groups.iter().flatten().copied();
    pod.fs_group.into_iter().chain(groups).collect()
}

/// Whether groups of the image count too.
pub fn supplemental_groups_policy(pod: Option<&PodSecurityContext>) -> Result<i32, SpecError> {
    let policy = pod.and_then(|pod| pod.supplemental_groups_policy.as_deref());
    match policy {
        None | Some("Merge") => Ok(SupplementalGroupsPolicy::Merge.into()),
        Some("Strict") => Ok(SupplementalGroupsPolicy::Strict.into()),
        Some(other) => Err(SpecError::SupplementalGroupsPolicy(other.to_owned())),
    }
}

fn capabilities(capabilities: &Capabilities) -> Capability {
    Capability {
        add_capabilities: capabilities.add.clone().unwrap_or_default(),
        drop_capabilities: capabilities.drop.clone().unwrap_or_default(),
        ..Capability::default()
    }
}

/// SELinux labels in CRI's words.
pub fn se_linux(options: &SELinuxOptions) -> SeLinuxOption {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    SeLinuxOption {
        user: text(&options.user),
        role: text(&options.role),
        r#type: text(&options.type_),
        level: text(&options.level),
    }
}

fn profile(kind: ProfileType, localhost_ref: String) -> SecurityProfile {
    SecurityProfile {
        profile_type: kind.into(),
        localhost_ref,
    }
}

/// The seccomp profile of a container: its own, the pod's, or the node's default.
fn seccomp(
    node: &NodeFacts,
    pod: Option<&PodSecurityContext>,
    container: &Container,
) -> Result<SecurityProfile, SpecError> {
    let own = container.security_context.as_ref();
    let own = own.and_then(|context| context.seccomp_profile.as_ref());
    let stated: Option<&SeccompProfile> =
        own.or_else(|| pod.and_then(|pod| pod.seccomp_profile.as_ref()));
    let plain = |kind| Ok(profile(kind, String::new()));
    match stated {
        None if node.seccomp_default => plain(ProfileType::RuntimeDefault),
        None => plain(ProfileType::Unconfined),
        Some(stated) => match stated.type_.as_str() {
            "RuntimeDefault" => plain(ProfileType::RuntimeDefault),
            "Localhost" => {
                let file = stated.localhost_profile.as_deref().unwrap_or_default();
                if file.is_empty() {
                    return Err(SpecError::SeccompProfile);
                }
                let path = node.seccomp_dir().join(file);
                let path = path.to_string_lossy().into_owned();
                Ok(profile(ProfileType::Localhost, path))
            }
            _ => plain(ProfileType::Unconfined),
        },
    }
}

/// The AppArmor profile of a container: its own, one in an annotation, or the pod's.
fn app_armor(pod: &Pod, container: &Container) -> Result<Option<SecurityProfile>, SpecError> {
    let own = container.security_context.as_ref();
    let own = own.and_then(|context| context.app_armor_profile.clone());
    let of_pod = || {
        let context = pod.spec.as_ref()?.security_context.as_ref()?;
        context.app_armor_profile.clone()
    };
    let stated = own
        .or_else(|| annotated_app_armor(pod, &container.name))
        .or_else(of_pod);
    let Some(stated) = stated else {
        return Ok(None);
    };
    let found = match stated.type_.as_str() {
        "RuntimeDefault" => profile(ProfileType::RuntimeDefault, String::new()),
        "Unconfined" => profile(ProfileType::Unconfined, String::new()),
        "Localhost" => {
            let name = stated.localhost_profile.ok_or(SpecError::AppArmorProfile)?;
            profile(ProfileType::Localhost, name)
        }
        other => return Err(SpecError::AppArmorType(other.to_owned())),
    };
    Ok(Some(found))
}

fn annotated_app_armor(pod: &Pod, container: &str) -> Option<AppArmorProfile> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let value = annotations.get(&format!("{APP_ARMOR_ANNOTATION}{container}"))?;
    let (kind, name) = match value.as_str() {
        "runtime/default" => ("RuntimeDefault", None),
        "unconfined" => ("Unconfined", None),
        value => ("Localhost", Some(value.strip_prefix("localhost/")?)),
    };
    Some(AppArmorProfile {
        type_: kind.to_owned(),
        localhost_profile: name.map(str::to_owned),
    })
}

/// Older runtimes read the profile from a field of its own.
#[expect(deprecated, reason = "containerd 1.x reads it")]
fn set_deprecated_app_armor(context: &mut LinuxContainerSecurityContext) {
    let Some(found) = &context.apparmor else {
        return;
    };
    context.apparmor_profile = match ProfileType::try_from(found.profile_type) {
        Ok(ProfileType::RuntimeDefault) => "runtime/default".to_owned(),
        Ok(ProfileType::Localhost) => format!("localhost/{}", found.localhost_ref),
        Ok(ProfileType::Unconfined) | Err(_) => "unconfined".to_owned(),
    };
}

#[cfg(test)]
mod tests;
