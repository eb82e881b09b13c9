//! Profiles that cannot be enforced are refused, not ignored. A pod that was admitted once stays.
//!
//! For AppArmor this matches v1.36 pkg/security/apparmor/validate.go. Upstream leaves SELinux to the
//! runtime, which ignores labels where the kernel has no SELinux; here a pod that asks to be confined
//! is refused instead.

use k8s_openapi::api::core::v1::{AppArmorProfile, Pod, SELinuxOptions};

use super::{Rejection, reject};
use crate::pod_fields;

/// Whether something that confines containers can be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Support {
    /// The kernel has it and the runtime uses it.
    Full,
    /// The kernel has it not, or not switched on.
    #[default]
    NotOnHost,
    /// The runtime does not use it.
    NotInRuntime,
}

/// What can be enforced on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// AppArmor profiles.
    pub app_armor: Support,
    /// SELinux labels.
    pub selinux: Support,
}

/// The label of containers that SELinux does not confine.
const UNCONFINED_TYPE: &str = "spc_t";

pub(super) fn admit(pod: &Pod, node: Confinement) -> Result<(), Rejection> {
    if !matches!(pod_fields::phase(pod), "" | "Pending") {
        return Ok(());
    }
    if wants_app_armor(pod) {
        require("AppArmor", node.app_armor)?;
    }
    if wants_selinux(pod) {
        require("SELinux", node.selinux)?;
    }
    Ok(())
}

fn require(name: &str, support: Support) -> Result<(), Rejection> {
    let why = match support {
        Support::Full => return Ok(()),
        Support::NotOnHost => format!("{name} is not enabled on the host"),
        Support::NotInRuntime => format!("the container runtime does not support {name}"),
    };
    reject(name, format!("Cannot enforce {name}: {why}"))
}

fn wants_app_armor(pod: &Pod) -> bool {
    let is_confined = |profile: &AppArmorProfile| profile.type_ != "Unconfined";
    let of_pod = pod_fields::spec(pod).and_then(|spec| {
        let security = spec.security_context.as_ref()?;
        security.app_armor_profile.as_ref()
    });
    of_pod.is_some_and(is_confined)
        || pod_fields::parts(pod).any(|part| {
            let security = part.container.security_context.as_ref();
            let own = security.and_then(|security| security.app_armor_profile.as_ref());
            own.is_some_and(is_confined)
        })
}

fn wants_selinux(pod: &Pod) -> bool {
    let of_pod = pod_fields::spec(pod).and_then(|spec| {
        let security = spec.security_context.as_ref()?;
        security.se_linux_options.as_ref()
    });
    of_pod.is_some_and(is_confined)
        || pod_fields::parts(pod).any(|part| {
            let security = part.container.security_context.as_ref();
            let own = security.and_then(|security| security.se_linux_options.as_ref());
            own.is_some_and(is_confined)
        })
}

/// Whether a label confines. An empty or unconfined one is granted without
/// SELinux too.
fn is_confined(options: &SELinuxOptions) -> bool {
    let fields = [&options.user, &options.role, &options.type_, &options.level];
    let asks = fields.into_iter().flatten().any(|text| !text.is_empty());
    asks && options.type_.as_deref() != Some(UNCONFINED_TYPE)
}
