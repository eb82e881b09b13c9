//! The guest's disk: a folder of files that becomes an ext4 file system.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::INSTALL_HINT;

/// The path of Debian's `busybox-static`.
pub(super) const BUSYBOX: &str = "/bin/busybox";

const FOLDERS: [&str; 13] = [
    "bin", "dev", "etc", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin",
    "var/lib", "var/log",
];

/// The folder.
#[derive(Debug)]
pub(super) struct Root {
    folder: PathBuf,
}

impl Root {
    /// With busybox under all its names, and the files programs expect anywhere.
    pub(super) fn new(folder: PathBuf) -> Self {
        let root = Self { folder };
        for name in FOLDERS {
            fs::create_dir_all(root.folder.join(name)).expect("the folder is ours");
        }
        root.copy(Path::new(BUSYBOX), BUSYBOX);
        for applet in applets().lines().filter(|name| *name != "busybox") {
            symlink("busybox", root.folder.join("bin").join(applet)).expect("names differ");
        }
        // Where scripts begin with it.
        symlink(BUSYBOX, root.folder.join("usr/bin/env")).expect("the folder is ours");
        root.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
        root.write("/etc/group", "root:x:0:\n");
        root.write("/etc/hosts", "127.0.0.1 localhost\n");
        root.write("/etc/resolv.conf", "");
        root
    }

    pub(super) fn write(&self, guest: &str, text: &str) {
        let path = self.make_room(guest);
        fs::write(&path, text).expect("the folder is ours");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).expect("the file is ours");
    }

    pub(super) fn copy(&self, host: &Path, guest: &str) {
        let path = self.make_room(guest);
        fs::copy(host, path)
            .unwrap_or_else(|e| panic!("cannot copy {}: {e}\n{INSTALL_HINT}", host.display()));
    }

    pub(super) fn copy_folder(&self, host: &Path, guest: &str) {
        let entries = fs::read_dir(host);
        let entries = entries.unwrap_or_else(|e| panic!("cannot read {}: {e}", host.display()));
        for entry in entries.flatten() {
            let name = entry.file_name();
            let inside = format!("{guest}/{}", name.to_string_lossy());
            match entry.path().is_dir() {
                true => self.copy_folder(&entry.path(), &inside),
                false => self.copy(&entry.path(), &inside),
            }
        }
    }

    pub(super) fn copy_program(&self, host: &Path, guest: &str) {
        self.copy(host, guest);
        for library in libraries_of(host) {
            let inside = library.to_string_lossy().into_owned();
            if !self.folder.join(inside.trim_start_matches('/')).exists() {
                self.copy(&library, &inside);
            }
        }
    }

    fn make_room(&self, guest: &str) -> PathBuf {
        let path = self.folder.join(guest.trim_start_matches('/'));
        let parent = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).expect("the folder is ours");
        path
    }

    /// Makes a file system of that size with all of it.
    pub(super) fn fill(&self, disk: &Path, mib: u64) {
        let file = File::create(disk).expect("the folder is ours");
        file.set_len(mib * 1024 * 1024)
            .expect("a hole takes no room");
        let output = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", "lazy_itable_init=1,root_owner=0:0", "-d"])
            .arg(&self.folder)
            .arg(disk)
            .output()
            .unwrap_or_else(|e| panic!("cannot run mkfs.ext4: {e}\n{INSTALL_HINT}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "no disk for the machine: {stderr}");
    }
}

fn applets() -> String {
    let listing = Command::new(BUSYBOX)
        .arg("--list")
        .output()
        .unwrap_or_else(|e| panic!("cannot run {BUSYBOX}: {e}\n{INSTALL_HINT}"));
    String::from_utf8(listing.stdout).expect("applets have plain names")
}

/// The shared libraries of a program, the loader among them; none if it is static.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let listing = Command::new("ldd").arg(program).output();
    let listing = listing.expect("ldd comes with the C library");
    libraries_in(&String::from_utf8_lossy(&listing.stdout))
}

/// Lines are `libm.so.6 => /lib/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn libraries_in(listing: &str) -> Vec<PathBuf> {
    let paths = listing.lines().filter_map(|line| {
        let words = line.split_whitespace();
        words.into_iter().find(|word| word.starts_with('/'))
    });
    paths.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_output_of_ldd() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f0a)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f0b)\n";
        let paths = [
            "/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries_in(listing), paths.map(PathBuf::from));
        assert_eq!(
            libraries_in("\tstatically linked\n"),
            [""; 0].map(PathBuf::from)
        );
    }

    #[test]
    fn folder_is_copied_with_its_contents() {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir(host.path().join("below")).unwrap();
        let script = host.path().join("below/script");
        fs::write(&script, "exit").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let guest = tempfile::tempdir().unwrap();
        let root = Root {
            folder: guest.path().to_owned(),
        };
        root.copy_folder(host.path(), "/some/where");
        let copied = fs::metadata(guest.path().join("some/where/below/script")).unwrap();
        assert_eq!(copied.permissions().mode() & 0o777, 0o755);
    }
}
