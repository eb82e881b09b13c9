//! What the checks run on.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver, Version};
use plimsoll_core::object::pod::PodView;
use serde_json::{Value, json};

use crate::cgroup::Cgroups;
use crate::cgroup::fake::FakeMachine;

/// Cgroups to try things on: a folder's or the kernel's.
pub(super) struct Machine {
    pub(super) cgroups: Cgroups,
    fake: Option<FakeMachine>,
    parent: Option<CgroupPath>,
}

impl Machine {
    pub(super) fn folder(version: Version) -> Machine {
        let fake = FakeMachine::new(version);
        Machine {
            cgroups: fake.cgroups(Driver::Cgroupfs),
            fake: Some(fake),
            parent: None,
        }
    }

    /// The kernel's cgroups below a parent of this test alone.
    pub(super) fn kernel() -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let parent = format!("/plimsoll-test-{}-{count}", std::process::id());
        let parent = CgroupPath::parse(&parent).unwrap();
        let all = Cgroups::detect(Path::new("/"), Driver::Cgroupfs, "/").unwrap();
        all.create(&parent).unwrap();
        // The last level has controllers only once something below it is made.
        let cgroups = Cgroups::detect(Path::new("/"), Driver::Cgroupfs, parent.as_str()).unwrap();
        Machine {
            cgroups,
            fake: None,
            parent: Some(parent),
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.fake.is_none()
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

    /// Moves a process, in every tree; a folder only notes its number.
    pub(super) fn enter(&self, cgroup: &CgroupPath, pid: u32) {
        for directory in self.cgroups.layout().directories(cgroup) {
            std::fs::write(directory.join("cgroup.procs"), format!("{pid}\n")).unwrap();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(parent) = &self.parent {
            let removed = self.cgroups.remove(parent);
            assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
        }
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

/// A process that waits for a line before it runs the command.
pub(super) struct Waiting(Child);

impl Waiting {
    pub(super) fn spawn(command: &str) -> Waiting {
        let script = format!("read line; {command}");
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Waiting(child.unwrap())
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn go(&mut self) {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Whether it has ended by now.
    pub(super) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until it is so, for at most ten seconds.
pub(super) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}
