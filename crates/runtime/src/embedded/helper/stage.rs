//! Prepares the root directory of a container in a user namespace; see `super::super::stage`.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::layout::ContainerDir;
use super::super::stage::{Source, Stage};
use crate::mapped_mount::{self, attach, detach};
use crate::mount_table::MountTable;

/// Devices that libcontainer takes from the stage for each container. They are made again: those of
/// the machine may be closed to ordinary users.
const DEVICES: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/zero", 1, 5),
    ("/dev/full", 1, 7),
    ("/dev/random", 1, 8),
    ("/dev/urandom", 1, 9),
    ("/dev/tty", 5, 0),
];

/// A process on a stage, until it leaves it.
#[derive(Debug)]
pub(super) struct OnStage {
    home: File,
}

/// Something that is mounted on a stage.
struct Prop {
    mount: OwnedFd,
    is_directory: bool,
    staged: PathBuf,
    follows: bool,
}

/// Enters the stage of a container.
pub(super) fn enter(stage: &Stage, dir: &ContainerDir) -> Result<OnStage, String> {
    let in_words = |error: io::Error| format!("prepare the mounts of the container: {error}");
    let home = File::open("/proc/self/ns/mnt").map_err(in_words)?;
    mapped_mount::leave_mounts().map_err(in_words)?;
    let on_stage = OnStage { home };
    let laid_out =
        collect(stage, dir).and_then(|props| lay_out(stage, dir, props).map_err(in_words));
    match laid_out {
        Ok(()) => Ok(on_stage),
        Err(message) => {
            on_stage.leave()?;
            Err(message)
        }
    }
}

impl OnStage {
    /// Goes back to the machine's mounts. The stage goes with the last process on it.
    pub(super) fn leave(self) -> Result<(), String> {
        let kind = Some(LinkNameSpaceType::Mount);
        move_into_link_name_space(self.home.as_fd(), kind)
            .map_err(|error| format!("leave the container's stage: {error}"))
    }
}

/// Copies all mounts of the stage, before anything hides them.
fn collect(stage: &Stage, dir: &ContainerDir) -> Result<Vec<Prop>, String> {
    let prop = |path: &Path, staged: &Path, is_recursive: bool| {
        let copy = || {
            io::Result::Ok(Prop {
                is_directory: path.metadata()?.is_dir(),
                mount: detach(path, is_recursive)?,
                staged: staged.to_owned(),
                follows: true,
            })
        };
        copy().map_err(|error| format!("prepare {}: {error}", path.display()))
    };
    let mut props = Vec::new();
    for path in ["/proc", "/sys"] {
        props.push(prop(Path::new(path), Path::new(path), true)?);
    }
    props.push(prop(&stage.rootfs, &stage.rootfs, true)?);
    props.push(prop(dir.path(), dir.path(), false)?);
    for (path, staged) in stage.devices.iter().chain(&stage.namespaces) {
        props.push(prop(path, staged, false)?);
    }
    let user_namespace = File::open(&stage.user_namespace)
        .map_err(|error| format!("open {}: {error}", stage.user_namespace.display()))?;
    for source in &stage.sources {
        let mut prop = prop(&source.path, &source.staged, true)?;
        prop.follows = source.follows;
        if source.is_mapped {
            mapped_mount::map(&prop.mount, user_namespace.as_fd())
                .map_err(|error| refusal(source, &error))?;
        }
        props.push(prop);
    }
    Ok(props)
}

/// Why a volume cannot be the container's.
fn refusal(source: &Source, error: &io::Error) -> String {
    let (path, target) = (source.path.display(), source.target.display());
    let table = MountTable::read().unwrap_or_default();
    let holding = table.holding(&source.path);
    let file_system = holding.map_or("its file system", |entry| entry.fs_type.as_str());
    if mapped_mount::is_refusal(error) {
        return format!(
            "mount {path} at {target} in the pod's user namespace: {file_system} has no idmapped \
             mounts on this kernel"
        );
    }
    format!("mount {path} at {target} in the pod's user namespace, from {file_system}: {error}")
}

/// Makes the stage the root directory.
fn lay_out(stage: &Stage, dir: &ContainerDir, props: Vec<Prop>) -> io::Result<()> {
    let root = dir.stage_root();
    fs::create_dir_all(&root)?;
    mount("stage", &root, "tmpfs", MountFlags::NOSUID, c"mode=755")?;
    for prop in props {
        let place = prop.staged.strip_prefix("/").unwrap_or(&prop.staged);
        let parent = place.parent().unwrap_or(place);
        make_directories(&root, parent)?;
        if prop.is_directory {
            make_directories(&root, place)?;
        } else {
            File::create(root.join(place))?;
        }
        let path = root.join(place);
        attach(&prop.mount, &path)?;
        if !prop.follows {
            let alone = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change(&path, alone)?;
        }
    }
    let given = |path: &str| {
        stage
            .devices
            .iter()
            .any(|(_, staged)| staged == Path::new(path))
    };
    for (path, major, minor) in DEVICES.into_iter().filter(|(path, ..)| !given(path)) {
        let place = Path::new(path.trim_start_matches('/'));
        make_directories(&root, place.parent().unwrap_or(place))?;
        let (node, mode) = (root.join(place), Mode::from_raw_mode(0o666));
        let device = rustix::fs::makedev(major, minor);
        rustix::fs::mknodat(CWD, &node, FileType::CharacterDevice, mode, device)?;
        std::os::unix::fs::chown(&node, Some(stage.root), Some(stage.root))?;
        // Whatever the umask of the process is.
        fs::set_permissions(&node, Permissions::from_mode(0o666))?;
    }
    chdir(&root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// Makes directories that every user may pass through.
fn make_directories(root: &Path, path: &Path) -> io::Result<()> {
    let mut made = root.to_owned();
    for part in path.components() {
        made.push(part);
        if !made.exists() {
            fs::create_dir(&made)?;
            fs::set_permissions(&made, Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}
