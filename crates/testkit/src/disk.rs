//! Small file systems in files.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::mount::unmount_below;
use crate::vm::{Machine, slowness};

/// Options of `mkfs.ext4` for a file system with project quotas.
pub const WITH_PROJECTS: [&str; 4] = ["-O", "project,quota", "-E", "quotatype=prjquota"];

/// Emulated machines are slow.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Makes an ext4 file system of that size in a file and mounts it.
///
/// # Errors
///
/// If it cannot be created, or the kernel cannot mount a file system with these options.
pub fn mount_ext4(image: &Path, at: &Path, mebibytes: u64, options: &[&str]) -> Result<(), String> {
    let file = File::create(image).map_err(|error| format!("{}: {error}", image.display()))?;
    let sized = file.set_len(mebibytes << 20);
    let made = sized.and_then(|()| fs::create_dir_all(at));
    made.map_err(|error| format!("{}: {error}", at.display()))?;
    run(Command::new("mkfs.ext4").arg("-q").args(options).arg(image))?;
    run(Command::new("mount")
        .args(["-t", "ext4", "-o", "loop"])
        .arg(image)
        .arg(at))
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {output:?}")),
        Err(error) => Err(format!("cannot run {command:?}: {error}")),
    }
}

/// Whether this kernel mounts file systems that count projects.
fn counts_projects() -> bool {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let (image, at) = (folder.path().join("image"), folder.path().join("mounted"));
    let mounted = mount_ext4(&image, &at, 16, &WITH_PROJECTS);
    unmount_below(folder.path());
    if let Err(error) = &mounted {
        assert!(
            slowness() == 1,
            "the machine has no project quotas: {error}"
        );
    }
    mounted.is_ok()
}

/// Runs a case that needs file systems which count projects: here, or, where the kernel cannot mount
/// them, the test of that name again in a machine.
///
/// # Panics
///
/// If it fails in the machine.
pub fn where_projects_are_counted(
    test: &str,
    machine: impl FnOnce() -> Machine,
    case: impl FnOnce(),
) {
    if counts_projects() {
        return case();
    }
    let machine = machine().tool("mkfs.ext4");
    let done = machine.run_own_tests(&[test], LIMIT);
    assert_eq!(done, Ok(()), "{test} in a machine");
}
