//! The layout of the runtime's directory.
//!
//! ```text
//! lock                      held by the agent and its helper
//! sandboxes/<id>/           config (CRI's message), sandbox.json, pause.json, resolv.conf, ...
//! containers/<id>/          config (CRI's message), container.json, config.json (OCI),
//!                           confinement.json, stage.json, monitor.json, started.json, exit.json, monitor.sock, oci/ (libcontainer)
//! addresses/                one file per allocated address
//! ```

use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The whole directory.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: PathBuf,
}

/// The directory of a sandbox.
#[derive(Clone, Debug)]
pub(super) struct SandboxDir(PathBuf);

/// The directory of a container.
#[derive(Clone, Debug)]
pub(super) struct ContainerDir(PathBuf);

impl Layout {
    pub(super) fn new(root: &Path) -> Layout {
        Layout {
            root: root.to_owned(),
        }
    }

    /// Makes the directories that hold all others. They are closed to users: configurations hold
    /// the values of secrets.
    pub(super) fn create(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.root)?;
        for dir in [self.sandboxes(), self.containers()] {
            std::fs::create_dir_all(&dir)?;
            std::fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }
    pub(super) fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }
    pub(super) fn containers(&self) -> PathBuf {
        self.root.join("containers")
    }
    pub(super) fn addresses(&self) -> PathBuf {
        self.root.join("addresses")
    }
    pub(super) fn sandbox(&self, id: &str) -> SandboxDir {
        SandboxDir(self.sandboxes().join(id))
    }
    pub(super) fn container(&self, id: &str) -> ContainerDir {
        ContainerDir(self.containers().join(id))
    }
}

impl SandboxDir {
    pub(super) fn new(path: &Path) -> SandboxDir {
        SandboxDir(path.to_owned())
    }
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
    /// CRI's configuration.
    pub(super) fn config(&self) -> PathBuf {
        self.0.join("config")
    }
    /// What the runtime knows of it; there once it is ready.
    pub(super) fn record(&self) -> PathBuf {
        self.0.join("sandbox.json")
    }
    /// The process that holds the namespaces.
    pub(super) fn pause(&self) -> PathBuf {
        self.0.join("pause.json")
    }
    /// The root directory of that process.
    pub(super) fn empty(&self) -> PathBuf {
        self.0.join("empty")
    }
    /// What CNI plugins have done for it.
    pub(super) fn cni(&self) -> PathBuf {
        self.0.join("cni.json")
    }
    pub(super) fn resolv_conf(&self) -> PathBuf {
        self.0.join("resolv.conf")
    }
    pub(super) fn hostname(&self) -> PathBuf {
        self.0.join("hostname")
    }
    pub(super) fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }
    /// `/dev/shm` of all its containers.
    pub(super) fn shm(&self) -> PathBuf {
        self.0.join("shm")
    }
}

impl ContainerDir {
    pub(super) fn new(path: &Path) -> ContainerDir {
        ContainerDir(path.to_owned())
    }
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
    /// CRI's configuration.
    pub(super) fn config(&self) -> PathBuf {
        self.0.join("config")
    }
    /// What the runtime knows of it; there once it is created.
    pub(super) fn record(&self) -> PathBuf {
        self.0.join("container.json")
    }
    /// The OCI configuration.
    pub(super) fn spec(&self) -> PathBuf {
        self.0.join("config.json")
    }
    /// What its processes give up besides; there if they do.
    pub(super) fn confinement(&self) -> PathBuf {
        self.0.join("confinement.json")
    }
    /// What it is made from if it has users of its own; there if it has.
    pub(super) fn stage(&self) -> PathBuf {
        self.0.join("stage.json")
    }
    /// Where that is laid out, while it is made.
    pub(super) fn stage_root(&self) -> PathBuf {
        self.0.join("stage")
    }
    /// The process that watches over it.
    pub(super) fn monitor(&self) -> PathBuf {
        self.0.join("monitor.json")
    }
    /// Its first process.
    pub(super) fn started(&self) -> PathBuf {
        self.0.join("started.json")
    }
    /// How it ended.
    pub(super) fn exit(&self) -> PathBuf {
        self.0.join("exit.json")
    }
    /// The directory of libcontainer.
    pub(super) fn oci(&self) -> PathBuf {
        self.0.join("oci")
    }
    /// The socket over which terminals are passed.
    pub(super) fn console_socket(&self) -> PathBuf {
        self.0.join("console.sock")
    }
    /// Where the monitor listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join("monitor.sock")
    }
}

/// A short name for a socket with a path that may be longer than the kernel accepts. It holds as
/// long as the directory is open.
pub(super) fn short_socket_path(path: &Path) -> io::Result<(std::fs::File, PathBuf)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let dir = std::fs::File::open(dir)?;
    let short = Path::new("/proc/self/fd")
        .join(dir.as_raw_fd().to_string())
        .join(name);
    Ok((dir, short))
}
