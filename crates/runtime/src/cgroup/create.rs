//! Creates cgroups, parents first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupPath, Version};

use super::error::Error;
use super::layout::{USED_V2, read_controllers};
use super::tree::Cgroups;

impl Cgroups {
    /// Makes the cgroup and those above it, in every tree. What is there already stays as it is.
    pub fn create(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        for mount in self.layout.mount_points() {
            self.create_below(mount, cgroup)?;
        }
        Ok(())
    }

    fn create_below(&self, mount: &Path, cgroup: &CgroupPath) -> Result<(), Error> {
        let mut parent = mount.to_owned();
        let parts = cgroup.as_str().split('/').filter(|part| !part.is_empty());
        for part in parts {
            if self.version() == Version::V2 {
                self.delegate(&parent);
            }
            let directory = parent.join(part);
            match (self.directories.make)(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::Create {
                        cgroup: cgroup.clone(),
                        directory,
                        source: error,
                    });
                }
                _ => {}
            }
            if self.version() == Version::V1 {
                inherit(&parent, &directory).map_err(|source| Error::Create {
                    cgroup: cgroup.clone(),
                    directory: directory.clone(),
                    source,
                })?;
            }
            parent = directory;
        }
        Ok(())
    }

    /// Gives the children of a cgroup of cgroup v2 the controllers it has itself.
    ///
    /// Controllers that cannot be given are skipped: a setting that needs one fails when its file
    /// is written, and the error then names the file.
    fn delegate(&self, directory: &Path) {
        let available = read_controllers(directory).unwrap_or_default();
        let control = directory.join("cgroup.subtree_control");
        let given = fs::read_to_string(&control).unwrap_or_default();
        let is_given = |controller: &str| given.split_whitespace().any(|word| word == controller);
        let wanted: Vec<String> = USED_V2
            .into_iter()
            .chain(["io"])
            .filter(|name| available.contains(*name) && !is_given(name))
            .map(|name| format!("+{name}"))
            .collect();
        if wanted.is_empty() || write_existing(&control, &wanted.join(" ")).is_ok() {
            return;
        }
        for controller in wanted {
            let _ = write_existing(&control, &controller);
        }
    }
}

/// What a cgroup of cgroup v1 does not take over from the one above by itself: its cpus and memory
/// nodes, without which no process can enter, and, in old kernels, that children are counted in.
fn inherit(parent: &Path, directory: &Path) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let Some(own) = read_if_there(directory.join(file))? else {
            continue;
        };
        if own.trim().is_empty() {
            let inherited = fs::read_to_string(parent.join(file))?;
            write_existing(&directory.join(file), inherited.trim())?;
        }
    }
    let hierarchy = directory.join("memory.use_hierarchy");
    if let Some(text) = read_if_there(hierarchy.clone())?
        && text.trim() == "0"
    {
        write_existing(&hierarchy, "1")?;
    }
    Ok(())
}

fn read_if_there(path: PathBuf) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes in one call, as the kernel expects, and never creates a file: a missing one is an
/// error that names it.
pub(crate) fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}
