//! What root tests need: cgroups of their own in the kernel, and processes.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::cgroup::{CgroupPath, Driver};

use super::Cgroups;

/// The kernel's cgroups below a parent of this test alone, which is removed in the end.
#[derive(Debug)]
pub struct KernelCgroups {
    cgroups: Cgroups,
    parent: CgroupPath,
}

impl Default for KernelCgroups {
    fn default() -> Self {
        KernelCgroups::new()
    }
}

impl KernelCgroups {
    /// Makes the parent.
    pub fn new() -> KernelCgroups {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let parent = format!("/plimsoll-test-{}-{count}", std::process::id());
        let parent = CgroupPath::parse(&parent).unwrap();
        let all = Cgroups::detect(Path::new("/"), Driver::Cgroupfs, "/").unwrap();
        all.create(&parent).unwrap();
        KernelCgroups {
            cgroups: Cgroups::detect(Path::new("/"), Driver::Cgroupfs, parent.as_str()).unwrap(),
            parent,
        }
    }

    /// The cgroups below the parent.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }
}

impl Drop for KernelCgroups {
    fn drop(&mut self) {
        let removed = self.cgroups.remove(&self.parent);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// A process that waits for a line before it runs the command.
#[derive(Debug)]
pub struct Waiting(Child);

impl Waiting {
    /// Starts the process, which waits.
    pub fn spawn(command: &str) -> Waiting {
        let script = format!("read line; {command}");
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Waiting(child.unwrap())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Writes the line.
    pub fn go(&mut self) {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Whether it has ended by now.
    pub fn has_ended(&mut self) -> bool {
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
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}
