//! Observes the machine for the preflight checks.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use plimsoll_client::holder::{self, Holder};
use plimsoll_core::cgroup::Version;
use plimsoll_runtime::cgroup::{Layout, Refusal};

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The directory below which /proc and /sys are looked for: the root, but for tests.
    pub system_root: PathBuf,
    /// Directories that the agent writes to.
    pub directories: Vec<PathBuf>,
    /// Addresses that it listens on, by what they are for.
    pub listens: Vec<(&'static str, SocketAddr)>,
    /// The socket of the runtime; `None` for the embedded one.
    pub runtime_socket: Option<PathBuf>,
}

/// The cgroups of the machine.
#[derive(Debug)]
pub enum CgroupState {
    /// They can be used.
    Usable {
        /// Version 1 or 2.
        version: Version,
        /// Controllers that pods do without if they are missing.
        missing_optional: Vec<&'static str>,
    },
    /// They cannot.
    Unusable(Refusal),
}

/// The runtime of the machine.
#[derive(Debug)]
pub enum RuntimeState {
    /// The agent's own.
    Embedded {
        /// Whether the kernel has overlayfs.
        has_overlay: bool,
        /// Namespaces that the kernel lacks.
        missing_namespaces: Vec<&'static str>,
    },
    /// It answers on its socket.
    Reachable(PathBuf),
    /// It does not.
    Unreachable(PathBuf, io::Error),
}

/// What was seen.
#[derive(Debug)]
pub struct Observed {
    /// Whether the agent would run as root.
    pub is_root: bool,
    /// Cgroups.
    pub cgroups: CgroupState,
    /// Swap devices and files.
    pub swaps: Vec<String>,
    /// Whether the kernel reports pressure (PSI).
    pub has_pressure: bool,
    /// The runtime.
    pub runtime: RuntimeState,
    /// Directories that cannot be written to.
    pub unwritable: Vec<(PathBuf, io::Error)>,
    /// Addresses that cannot be listened on.
    pub taken: Vec<Taken>,
}

/// An address that cannot be listened on.
#[derive(Debug)]
pub struct Taken {
    /// What it is for.
    pub what: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub error: io::Error,
    /// The process that listens there.
    pub holder: Option<Holder>,
}

/// Looks at this machine. Changes nothing but for directories that are made and ports that are
/// opened for an instant.
pub fn observe(subject: &Subject) -> Observed {
    Observed {
        is_root: rustix::process::geteuid().is_root(),
        cgroups: observe_cgroups(&subject.system_root),
        swaps: parse_swaps(&std::fs::read_to_string("/proc/swaps").unwrap_or_default()),
        has_pressure: Path::new("/proc/pressure/memory").exists(),
        runtime: match &subject.runtime_socket {
            None => observe_embedded(),
            Some(socket) => observe_socket(socket),
        },
        unwritable: (subject.directories.iter())
            .filter_map(|directory| Some((directory.clone(), try_write(directory).err()?)))
            .collect(),
        taken: (subject.listens.iter())
            .filter_map(|(what, address)| try_listen(what, *address))
            .collect(),
    }
}

fn try_listen(what: &'static str, address: SocketAddr) -> Option<Taken> {
    let error = TcpListener::bind(address).err()?;
    Some(Taken {
        what,
        address,
        error,
        holder: holder::of_port(address),
    })
}

fn observe_cgroups(mount: &Path) -> CgroupState {
    match Layout::detect(mount) {
        Ok(layout) => CgroupState::Usable {
            version: layout.version(),
            missing_optional: (["hugetlb", "pids", "cpuset"].into_iter())
                .filter(|controller| !layout.has(controller))
                .collect(),
        },
        Err(refusal) => CgroupState::Unusable(refusal),
    }
}

fn observe_embedded() -> RuntimeState {
    let file_systems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let namespaces = ["ipc", "mnt", "net", "pid", "uts"];
    let is_missing = |name: &&str| !Path::new("/proc/self/ns").join(name).exists();
    RuntimeState::Embedded {
        has_overlay: has_file_system(&file_systems, "overlay"),
        missing_namespaces: namespaces.into_iter().filter(is_missing).collect(),
    }
}

fn observe_socket(socket: &Path) -> RuntimeState {
    match std::os::unix::net::UnixStream::connect(socket) {
        Ok(_) => RuntimeState::Reachable(socket.to_owned()),
        Err(error) => RuntimeState::Unreachable(socket.to_owned(), error),
    }
}

fn has_file_system(file_systems: &str, name: &str) -> bool {
    let mut lines = file_systems.lines();
    lines.any(|line| line.split_whitespace().next_back() == Some(name))
}

/// Everything but the header.
fn parse_swaps(swaps: &str) -> Vec<String> {
    let names = swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Writes to the directory, or to what it would be created in. Leaves nothing behind.
fn try_write(directory: &Path) -> io::Result<()> {
    let mut ancestors = directory.ancestors();
    let existing = ancestors.find(|ancestor| ancestor.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let probe = existing.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_missing_is_not_created() {
        let parent = tempfile::tempdir().unwrap();
        try_write(&parent.path().join("a/b")).unwrap();
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        std::fs::write(parent.path().join("file"), b"").unwrap();
        assert!(try_write(&parent.path().join("file/b")).is_err());
    }

    #[test]
    fn swap_areas_are_the_lines_below_the_header() {
        let header = "Filename\t\t\tType\t\tSize\n";
        assert_eq!(parse_swaps(header), Vec::<String>::new());
        let one = format!("{header}/dev/sda2  partition\t100\n");
        assert_eq!(parse_swaps(&one), ["/dev/sda2"]);
    }

    #[test]
    fn overlay_is_looked_for_as_a_whole_word() {
        assert!(has_file_system("nodev\toverlay\n\text4\n", "overlay"));
        assert!(!has_file_system("nodev\toverlayish\n", "overlay"));
    }

    #[test]
    fn a_directory_below_a_file_cannot_be_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert!(try_write(directory.path()).is_ok());
        assert!(try_write(&file.join("below")).is_err());
    }
}
