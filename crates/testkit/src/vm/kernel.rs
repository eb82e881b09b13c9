//! Debian's kernel for virtual machines, unpacked without being installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::cache;

/// Always depends on the newest kernel of the release.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// A kernel and its modules.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    /// The path of each module, by its name.
    modules: BTreeMap<String, PathBuf>,
}

impl Kernel {
    /// The one that was fetched before, else the newest.
    pub(super) fn get() -> Self {
        // Two tests of one process must not fetch into the same folder.
        static FETCHING: Mutex<()> = Mutex::new(());
        let _alone = FETCHING.lock().unwrap_or_else(|broken| broken.into_inner());
        let folder = cache().join("kernel");
        if !folder.is_dir() {
            fetch(&folder);
        }
        let boot = folder.join("boot");
        let entries = fs::read_dir(&boot).into_iter().flatten().flatten();
        let mut images = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("vmlinuz")
        });
        let image = images.next();
        let image = image.unwrap_or_else(|| panic!("no kernel in {}", boot.display()));
        let mut modules = BTreeMap::new();
        find_modules(&folder.join("lib/modules"), &mut modules);
        Self { image, modules }
    }

    /// Modules with all that they depend on, in the order in which they can be loaded.
    pub(super) fn modules(&self, names: &[&str]) -> Vec<(String, Vec<u8>)> {
        let mut ordered = Vec::new();
        for name in names {
            self.add_module(name, &mut ordered);
        }
        ordered
    }

    fn add_module(&self, name: &str, ordered: &mut Vec<(String, Vec<u8>)>) {
        if ordered.iter().any(|(known, _)| known == name) {
            return;
        }
        // A name that is not a module is built in.
        let Some(path) = self.modules.get(name) else {
            return;
        };
        let content = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for dependency in dependencies_in(&content) {
            self.add_module(&dependency, ordered);
        }
        ordered.push((name.to_owned(), content));
    }
}

/// Downloads and unpacks; the folder appears only when it is complete.
fn fetch(folder: &Path) {
    fs::create_dir_all(cache()).expect("the build folder is ours");
    let work = tempfile::tempdir_in(cache()).expect("the build folder is ours");
    let package = newest_package();
    run(Command::new("apt-get")
        .args(["download", "-qq", &package])
        .current_dir(&work));
    let entries = fs::read_dir(work.path()).expect("the folder is ours");
    let archive = entries.flatten().map(|entry| entry.path()).next();
    let archive = archive.unwrap_or_else(|| panic!("apt-get left no package {package}"));
    let unpacked = work.path().join("unpacked");
    run(Command::new("dpkg").arg("-x").arg(archive).arg(&unpacked));
    // Another process may have been quicker.
    let renamed = fs::rename(&unpacked, folder);
    assert!(renamed.is_ok() || folder.is_dir(), "{renamed:?}");
}

fn newest_package() -> String {
    let listing = run(Command::new("apt-cache").args(["depends", PACKAGE]));
    let depends = listing
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "));
    depends.map(str::to_owned).unwrap_or_else(|| {
        panic!("the distribution has no package {PACKAGE}\nhint: apt-get update")
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} failed: {stderr}\nhint: the kernel is fetched from the distribution; apt-get update"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn find_modules(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_modules(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            found.insert(name.replace('-', "_"), path);
        }
    }
}

/// A module's own list: `depends=` with names up to a zero byte.
fn dependencies_in(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let found = module.windows(KEY.len()).position(|window| window == KEY);
    let list = found.map_or(&[][..], |at| &module[at + KEY.len()..]);
    let list = list.split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(list);
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_module_itself() {
        let module = b"\x7fELF\0license=GPL\0depends=stp,ipv6,virtio-ring\0name=bridge\0";
        assert_eq!(dependencies_in(module), ["stp", "ipv6", "virtio_ring"]);
        assert_eq!(dependencies_in(b"\0depends=\0"), [""; 0]);
        assert_eq!(dependencies_in(b"none"), [""; 0]);
    }
}
