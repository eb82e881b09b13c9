//! Linux capabilities of a process.

use serde_json::{Value, json};

use super::super::rights::Rights;
use super::SpecError;
use crate::wire::LinuxContainerSecurityContext;

/// All that the kernel knows, in its order, without `CAP_`.
const ALL: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The default capabilities of a container, as with containerd.
const DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// The sets of capabilities of a container's processes. What the agent does not have it cannot
/// give; that is left out.
pub(super) fn capabilities(
    security: &LinuxContainerSecurityContext,
    rights: &Rights,
) -> Result<Value, SpecError> {
    let change = security.capabilities.clone().unwrap_or_default();
    let mut set: Vec<&str> = if security.privileged {
        ALL.to_vec()
    } else {
        DEFAULT.to_vec()
    };
    let is_all = |name: &&String| name.eq_ignore_ascii_case("ALL");
    if change.add_capabilities.iter().any(|name| is_all(&name)) {
        set = ALL.to_vec();
    }
    if change.drop_capabilities.iter().any(|name| is_all(&name)) {
        set.clear();
    }
    for name in change.add_capabilities.iter().filter(|name| !is_all(name)) {
        let known = known(name)?;
        if !set.contains(&known) {
            set.push(known);
        }
    }
    for name in change.drop_capabilities.iter().filter(|name| !is_all(name)) {
        let known = known(name)?;
        set.retain(|other| *other != known);
    }
    let ambient = change
        .add_ambient_capabilities
        .iter()
        .map(|name| known(name));
    let ambient = ambient.collect::<Result<Vec<&str>, SpecError>>()?;
    let given = |names: &[&str]| -> Vec<String> {
        let is_ours = |name: &&&str| {
            let place = ALL.iter().position(|known| known == *name);
            place.is_some_and(|place| rights.has(place))
        };
        names
            .iter()
            .filter(is_ours)
            .map(|name| format!("CAP_{name}"))
            .collect()
    };
    let (set, ambient) = (given(&set), given(&ambient));
    Ok(json!({
        "bounding": set,
        "effective": set,
        "permitted": set,
        // Only what is inherited can be kept across a change of programs.
        "inheritable": ambient,
        "ambient": ambient,
    }))
}

fn known(name: &str) -> Result<&'static str, SpecError> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
    let found = ALL.iter().find(|known| **known == bare);
    found
        .copied()
        .ok_or_else(|| SpecError::UnknownCapability(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Capability;

    fn bounding(privileged: bool, add: &[&str], drop: &[&str]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let security = LinuxContainerSecurityContext {
            privileged,
            capabilities: Some(Capability {
                add_capabilities: owned(add),
                drop_capabilities: owned(drop),
                add_ambient_capabilities: Vec::new(),
            }),
            ..Default::default()
        };
        let sets = capabilities(&security, &Rights::all()).unwrap();
        assert_eq!(sets["bounding"], sets["effective"]);
        let set = sets["bounding"].as_array().unwrap();
        set.iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn sets_are_changed_as_containerd_does() {
        assert_eq!(bounding(false, &[], &[]).len(), 14);
        assert_eq!(bounding(true, &[], &[]).len(), 41);
        assert_eq!(bounding(false, &[], &["ALL"]), [""; 0]);
        assert_eq!(bounding(false, &["NET_ADMIN"], &["all"]), ["CAP_NET_ADMIN"]);
        assert_eq!(bounding(false, &["ALL"], &["CAP_KILL"]).len(), 40);
        assert_eq!(bounding(false, &["cap_kill"], &[]).len(), 14);
    }

    #[test]
    fn unknown_names_are_refused() {
        let security = LinuxContainerSecurityContext {
            capabilities: Some(Capability {
                add_capabilities: vec!["FLY".to_owned()],
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(
            capabilities(&security, &Rights::all()),
            Err(SpecError::UnknownCapability("FLY".to_owned()))
        );
    }
}
