//! The seccomp profile of a container.

use libcontainer::oci_spec::runtime::LinuxCapabilities;
use serde_json::Value;

use super::super::seccomp::{self, Confinement};
use super::SpecError;
use crate::wire::LinuxContainerSecurityContext;
use crate::wire::security_profile::ProfileType;

/// What keeps a container to its calls, if anything does. A process that can still gain rights has
/// them all until its filter is loaded, so its capabilities go from its specification to there.
pub(super) fn confinement(
    security: &LinuxContainerSecurityContext,
    process: &mut Value,
) -> Result<Option<Confinement>, SpecError> {
    let Some(profile_field) = &security.seccomp else {
        return Ok(None);
    };
    let kind = profile_field.profile_type();
    // As with containerd: a privileged container may make every call.
    if kind == ProfileType::Unconfined || security.privileged {
        return Ok(None);
    }
    if !seccomp::is_supported() {
        return Err(SpecError::NoSeccomp);
    }
    let unusable = |error: &dyn std::error::Error| SpecError::Seccomp(error.to_string());
    let capabilities = &process["capabilities"];
    let profile = if kind == ProfileType::Localhost {
        let path = profile_field.localhost_ref.as_str();
        let path = path.strip_prefix("localhost/").unwrap_or(path);
        seccomp::read_profile(path).map_err(|error| unusable(&error))?
    } else {
        let bounding = capabilities["bounding"].as_array();
        let bounding = bounding.into_iter().flatten().filter_map(Value::as_str);
        let bounding: Vec<&str> = bounding.collect();
        seccomp::default_profile(&bounding).map_err(|error| unusable(&error))?
    };
    let filter = seccomp::filter(&profile).map_err(|error| unusable(&error))?;
    let mut kept = None;
    if !security.no_new_privs {
        let all: LinuxCapabilities =
            serde_json::from_value(capabilities.clone()).map_err(|error| unusable(&error))?;
        kept = Some(all);
        if let Some(process) = process.as_object_mut() {
            process.remove("capabilities");
        }
    }
    Ok(Some(Confinement {
        filter,
        capabilities: kept,
    }))
}
