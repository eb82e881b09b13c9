//! Cgroups of a test's own, gone when dropped with all that runs in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const MOUNT: &str = "/sys/fs/cgroup";

/// The trees of v1 that runtimes use. Where the machine has v2, there is one tree for all.
const CONTROLLERS: [&str; 10] = [
    "blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids", "systemd",
    // Hybrid machines have a tree of v2 beside the others, without controllers.
    "unified",
];

/// How long killed processes may take to leave.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks at whether they have left.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether this machine has one tree for all controllers (cgroup v2).
pub fn is_unified() -> bool {
    Path::new(MOUNT).join("cgroup.controllers").exists()
}

/// A cgroup with a unique name, in every controller.
#[derive(Debug)]
pub struct Tree {
    path: String,
}

impl Tree {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// If this process may not.
    pub fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let tree = Self {
            path: format!("/plimsoll-test-{}-{serial}", process::id()),
        };
        if is_unified() {
            delegate_controllers(Path::new(MOUNT));
        }
        tree.make("");
        tree
    }

    /// Its path below the mount point of a controller.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Makes a cgroup inside it, with those in between; returns its path below the mount point.
    ///
    /// # Panics
    ///
    /// If this process may not.
    pub fn make(&self, below: &str) -> String {
        let path = join(&self.path, below);
        for root in roots() {
            let folder = under(&root, &path);
            fs::create_dir_all(&folder)
                .unwrap_or_else(|e| panic!("cannot make cgroup {}: {e}", folder.display()));
            for ancestor in ancestors(&root, &path) {
                open_for_children(&root, &ancestor);
            }
        }
        path
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for root in roots() {
            remove(&under(&root, &self.path));
        }
    }
}

/// Reads a file of a cgroup, of any path below the mount point. The controller matters with v1.
///
/// # Panics
///
/// If there is no such file.
pub fn read(controller: &str, path: &str, file: &str) -> String {
    let root = match is_unified() {
        true => PathBuf::from(MOUNT),
        false => Path::new(MOUNT).join(controller),
    };
    let file = under(&root, path).join(file);
    let text = fs::read_to_string(&file);
    let text = text.unwrap_or_else(|e| panic!("cannot read {}: {e}", file.display()));
    text.trim_end().to_owned()
}

/// Whether there is such a cgroup, by any controller.
pub fn exists(path: &str) -> bool {
    roots().iter().any(|root| under(root, path).is_dir())
}

/// All cgroups below one, of every controller: their folders.
pub fn below(path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders: Vec<PathBuf> = roots().iter().map(|root| under(root, path)).collect();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let children = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        for child in children {
            found.insert(child.display().to_string());
            folders.push(child);
        }
    }
    found
}

/// The processes in a cgroup; none if it does not exist.
pub fn processes(path: &str) -> Vec<u32> {
    let root = roots().into_iter().find(|root| under(root, path).is_dir());
    root.map_or_else(Vec::new, |root| processes_in(&under(&root, path)))
}

fn roots() -> Vec<PathBuf> {
    let mount = Path::new(MOUNT);
    if is_unified() {
        return vec![mount.to_owned()];
    }
    let all = CONTROLLERS.iter().map(|controller| mount.join(controller));
    all.filter(|root| root.is_dir()).collect()
}

fn join(path: &str, below: &str) -> String {
    let below = below.trim_matches('/');
    match below {
        "" => path.to_owned(),
        _ => format!("{path}/{below}"),
    }
}

fn under(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// The folders along a path, outermost first, itself included.
fn ancestors(root: &Path, path: &str) -> Vec<PathBuf> {
    let parts = path.trim_matches('/').split('/');
    let folders = parts.scan(root.to_owned(), |folder, part| {
        folder.push(part);
        Some(folder.clone())
    });
    folders.collect()
}

/// A new cgroup takes no processes until it has cpus (v1) or controllers for its children (v2).
fn open_for_children(root: &Path, folder: &Path) {
    if root == Path::new(MOUNT) {
        delegate_controllers(folder);
        return;
    }
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = folder.join(file);
        let is_empty = fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty());
        let above = folder.parent().map(|above| above.join(file));
        let Some(inherited) = above.and_then(|above| fs::read_to_string(above).ok()) else {
            continue;
        };
        if is_empty {
            fs::write(&own, inherited).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
        }
    }
}

fn delegate_controllers(folder: &Path) {
    let listed = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    for controller in listed.split_whitespace() {
        // One by one: some refuse, such as cpu while there are real-time processes.
        let _ = fs::write(
            folder.join("cgroup.subtree_control"),
            format!("+{controller}"),
        );
    }
}

/// Kills all processes in a cgroup and below, then removes it.
fn remove(folder: &Path) {
    let deadline = Instant::now() + EMPTY_WITHIN;
    while folder.is_dir() && Instant::now() < deadline {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        for child in below.filter(|entry| entry.path().is_dir()) {
            remove(&child.path());
        }
        for id in processes_in(folder) {
            kill(id);
        }
        if fs::remove_dir(folder).is_err() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn processes_in(folder: &Path) -> Vec<u32> {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    listed
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

/// Kills one process by its id; one that is gone already is fine.
pub fn kill(id: u32) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, Signal::KILL);
    }
}
