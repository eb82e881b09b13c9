//! The users of a sandbox: the machine's, or its own in a user namespace.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::spec::SpecError;
use crate::mapped_mount;
use crate::wire::{IdMapping, NamespaceMode, NamespaceOption};

/// Users and groups of a sandbox's own: id 0 inside is `first` on the machine, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Users {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Users {
    /// The users that a CRI request names; `None` for the node's.
    pub(super) fn of(options: &NamespaceOption) -> Result<Option<Users>, SpecError> {
        let Some(requested) = &options.userns_options else {
            return Ok(None);
        };
        match requested.mode() {
            NamespaceMode::Node => return Ok(None),
            NamespaceMode::Pod => {}
            NamespaceMode::Container | NamespaceMode::Target => {
                return Err(SpecError::UserNamespaceMode);
            }
        }
        let modes = [options.network(), options.ipc(), options.pid()];
        if modes.contains(&NamespaceMode::Node) {
            return Err(SpecError::UsersBesideTheMachine);
        }
        match (&requested.uids[..], &requested.gids[..]) {
            ([uids], [gids]) if uids == gids && is_usable(*uids) => Ok(Some(Users {
                first: uids.host_id,
                count: uids.length,
            })),
            _ => Err(SpecError::IdMappings),
        }
    }

    /// The node's id of one inside the namespace; `None` if it is not mapped.
    pub(super) fn on_machine(self, id: u32) -> Option<u32> {
        (id < self.count).then(|| self.first + id)
    }
}

/// The kernel's overflow id and that of the sandbox's process. A range must hold both.
const FEWEST: u32 = 65_536;

/// Root inside must not be the machine's root.
fn is_usable(mapping: IdMapping) -> bool {
    let end = u64::from(mapping.host_id) + u64::from(mapping.length);
    mapping.container_id == 0
        && mapping.host_id > 0
        && mapping.length >= FEWEST
        && end <= u64::from(u32::MAX) + 1
}

/// What the kernel lacks for sandboxes with users of their own, if anything.
pub(super) fn lacking() -> Option<&'static str> {
    if !Path::new("/proc/self/ns/user").exists() {
        return Some("the kernel has no user namespaces");
    }
    let most = std::fs::read_to_string("/proc/sys/user/max_user_namespaces");
    if most.is_ok_and(|most| most.trim() == "0") {
        return Some("sysctl user.max_user_namespaces is 0");
    }
    if !mapped_mount::is_supported() {
        return Some("the kernel has no idmapped mounts, which Linux has since 5.12");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::UserNamespace;

    fn ids(host_id: u32, container_id: u32, length: u32) -> Vec<IdMapping> {
        vec![IdMapping {
            host_id,
            container_id,
            length,
        }]
    }

    fn options_of(
        mode: NamespaceMode,
        uids: Vec<IdMapping>,
        gids: Vec<IdMapping>,
    ) -> NamespaceOption {
        NamespaceOption {
            pid: NamespaceMode::Container.into(),
            userns_options: Some(UserNamespace {
                mode: mode.into(),
                uids,
                gids,
            }),
            ..NamespaceOption::default()
        }
    }

    #[test]
    fn users_are_one_range_that_leaves_the_machines_root_out() {
        use NamespaceMode::{Container, Node, Pod, Target};
        let good = || ids(65_536, 0, 65_536);
        let own = Users {
            first: 65_536,
            count: 65_536,
        };
        assert_eq!(Users::of(&NamespaceOption::default()), Ok(None));
        assert_eq!(Users::of(&options_of(Node, vec![], vec![])), Ok(None));
        assert_eq!(Users::of(&options_of(Pod, good(), good())), Ok(Some(own)));
        assert_eq!(own.on_machine(0), Some(65_536));
        assert_eq!(own.on_machine(65_535), Some(131_071));
        assert_eq!(own.on_machine(65_536), None);
        let mut two = good();
        two.extend(ids(1_000_000, 65_536, 1));
        for (uids, gids) in [
            (vec![], vec![]),
            (good(), vec![]),
            (good(), ids(131_072, 0, 65_536)),
            (two.clone(), two),
            (ids(65_536, 1, 65_536), ids(65_536, 1, 65_536)),
            (ids(0, 0, 65_536), ids(0, 0, 65_536)),
            (ids(65_536, 0, 65_535), ids(65_536, 0, 65_535)),
            (ids(u32::MAX, 0, 65_536), ids(u32::MAX, 0, 65_536)),
        ] {
            let refused = Users::of(&options_of(Pod, uids, gids));
            assert_eq!(refused, Err(SpecError::IdMappings));
        }
        for mode in [Container, Target] {
            let refused = Users::of(&options_of(mode, good(), good()));
            assert_eq!(refused, Err(SpecError::UserNamespaceMode));
        }
    }

    #[test]
    fn user_namespace_excludes_host_namespaces() {
        let good = || ids(65_536, 0, 65_536);
        for change in [
            (|options| options.network = NamespaceMode::Node.into()) as fn(&mut NamespaceOption),
            |options| options.ipc = NamespaceMode::Node.into(),
            |options| options.pid = NamespaceMode::Node.into(),
        ] {
            let mut options = options_of(NamespaceMode::Pod, good(), good());
            change(&mut options);
            let refused = Users::of(&options);
            assert_eq!(refused, Err(SpecError::UsersBesideTheMachine));
        }
    }
}
