//! What the checks run on.

use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver, Version};
use plimsoll_core::object::pod::PodView;
use serde_json::{Value, json};

use crate::cgroup::Cgroups;
use crate::cgroup::fake::FakeMachine;
use crate::cgroup::testing::KernelCgroups;

/// Cgroups to try things on.
pub(super) struct Machine {
    pub(super) cgroups: Cgroups,
    source: Source,
}

/// Their owner; removed when dropped.
#[expect(dead_code, reason = "held for its end")]
enum Source {
    Folder(FakeMachine),
    Kernel(KernelCgroups),
}

impl Machine {
    pub(super) fn folder(version: Version) -> Machine {
        let fake = FakeMachine::new(version);
        Machine {
            cgroups: fake.cgroups(Driver::Cgroupfs),
            source: Source::Folder(fake),
        }
    }

    pub(super) fn kernel() -> Machine {
        let kernel = KernelCgroups::new();
        Machine {
            cgroups: kernel.cgroups().clone(),
            source: Source::Kernel(kernel),
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        matches!(self.source, Source::Kernel(_))
    }

    /// The value for this machine's generation.
    pub(super) fn by_version<T>(&self, v1: T, v2: T) -> T {
        match self.cgroups.version() {
            Version::V1 => v1,
            Version::V2 => v2,
        }
    }

    pub(super) fn read(&self, name: &CgroupName, file: &str) -> String {
        self.cgroups.read(&self.cgroups.path(name), file).unwrap()
    }

    /// Moves a process; a folder only notes its number.
    pub(super) fn enter(&self, cgroup: &CgroupPath, pid: u32) {
        self.cgroups.enter(cgroup, pid).unwrap();
    }
}

/// Runs a check on a folder as cgroup v1, one as v2, and as root on the kernel.
macro_rules! on_every_machine {
    ($($(#[$doc:meta])* fn $name:ident($machine:ident: &Machine) $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports, reason = "what the check needs")]
            use super::*;

            $(#[$doc])*
            fn check($machine: &Machine) $body

            #[test]
            fn on_a_folder_as_v1() {
                check(&Machine::folder(plimsoll_core::cgroup::Version::V1));
            }

            #[test]
            fn on_a_folder_as_v2() {
                check(&Machine::folder(plimsoll_core::cgroup::Version::V2));
            }

            #[test]
            #[ignore = "tier: root"]
            fn on_the_kernel() {
                check(&Machine::kernel());
            }
        }
    )+};
}
pub(super) use on_every_machine;

/// A pod with one container per entry.
pub(super) fn pod(uid: &str, resources: &[Value]) -> PodView {
    let containers: Vec<Value> = resources
        .iter()
        .enumerate()
        .map(|(index, resources)| json!({"name": format!("c{index}"), "resources": resources}))
        .collect();
    let api = json!({
        "metadata": {"name": "p", "namespace": "d", "uid": uid},
        "spec": {"containers": containers},
    });
    PodView::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}
