//! A runtime inside the agent's own binary: nothing to install.
//!
//! A sandbox is a set of namespaces held by a small process; a container is made by libcontainer and
//! watched over by a monitor, a process of its own that outlives the agent. Both are forked by a
//! helper (`helper_main`), because libcontainer must run in a process of one thread. All that
//! matters is on disk, so that an agent that comes back, even after `kill -9`, finds everything as
//! it is: see `layout` for what lies where, `recover` for how it is read, and `remains` for a look at it
//! from outside.
//!
//! Reading order: `images` (where root file systems come from), `job` and `helper` (what runs
//! outside), `spec` (from CRI's configuration to OCI's), `users` and `stage` (containers in a user
//! namespace), `cgroup`, `network`, then the verbs
//! in `sandbox`, `container` and `streams`.

mod cgroup;
mod container;
mod files;
mod forker;
mod frame;
mod helper;
mod images;
mod job;
mod layout;
mod network;
mod ports;
mod process_id;
mod record;
mod recover;
mod remains;
mod report;
mod resources;
mod rights;
mod rootfs;
mod sandbox;
mod seccomp;
mod signal;
mod spec;
mod stage;
mod stats;
mod streams;
mod table;
mod transport;
mod users;
mod verbs;
mod watcher;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cgroup::{
    CgroupName, CgroupPath, Driver, Runtime as CgroupNaming, container_path,
};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;

pub use helper::helper_main;
pub use images::{ImageConfig, Images, RootOwner};
pub use network::{
    NetworkOptions, cards_on, has_bridge, has_card, is_translating, remove_bridge, remove_card,
    stop_translating, table_name,
};
pub use remains::{Remains, SandboxRemains, lock_file, remains};

use cgroup::Machine;
use forker::Forker;
use layout::Layout;
use network::Network;
use rights::Rights;
use table::Table;

use super::Error;

/// The name of the runtime, which also begins container ids in pod statuses.
pub const NAME: &str = "plimsoll";

/// What the runtime needs to know.
#[derive(Debug)]
pub struct Options {
    /// Where it keeps what it has. One runtime at a time may use a directory.
    pub root: PathBuf,
    /// The command that runs [`helper_main`]: usually the agent's own binary and a hidden argument.
    pub helper: Vec<OsString>,
    /// Where images come from.
    pub images: Arc<dyn Images>,
    /// How the agent names cgroups.
    pub cgroup_driver: Driver,
    /// How sandboxes get their network.
    pub network: NetworkOptions,
}

/// The embedded runtime.
#[derive(Clone, Debug)]
pub struct Embedded {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    layout: Layout,
    images: Arc<dyn Images>,
    cgroup_driver: Driver,
    machine: Machine,
    rights: Rights,
    network: Network,
    table: Table,
    forker: Forker,
    /// Counts what has ended by itself.
    changes: watch::Sender<u64>,
}

/// How long an earlier agent's helper may take to release the directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Embedded {
    /// Starts the runtime and takes over all that an earlier one has left running.
    pub async fn new(options: Options) -> Result<Embedded, Error> {
        let Options {
            root,
            helper,
            images,
            cgroup_driver,
            network,
        } = options;
        let doing = || format!("use {} as the runtime's directory", root.display());
        let layout = Layout::new(&root);
        layout
            .create()
            .map_err(|error| Error::failed(doing(), error))?;
        let lock = take_lock(&layout.lock())
            .await
            .map_err(|error| Error::failed(doing(), error))?;
        let machine = Machine::detect(cgroup_driver)
            .map_err(|error| Error::failed("find the machine's cgroups", error))?;
        let rights = Rights::read()
            .map_err(|error| Error::failed("read capabilities of the agent", error))?;
        let network = Network::new(network, layout.clone())?;
        let forker = Forker::new(helper, lock)
            .map_err(|error| Error::failed("start the runtime's helper", error))?;
        let inner = Inner {
            layout,
            images,
            cgroup_driver,
            machine,
            rights,
            network,
            table: Table::default(),
            forker,
            changes: watch::Sender::new(0),
        };
        let runtime = Embedded {
            inner: Arc::new(inner),
        };
        runtime.recover().await?;
        Ok(runtime)
    }
}

impl Embedded {
    /// Changes whenever a container or the process of a sandbox has ended, so that callers
    /// need not poll.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }
}

impl Inner {
    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The cgroup in which a sandbox and its containers have theirs.
    fn parent_cgroup(&self, text: &str) -> CgroupPath {
        CgroupName::parse(text, self.cgroup_driver).to_path(self.cgroup_driver)
    }

    fn cgroup_path(&self, parent: &CgroupPath, id: &str) -> CgroupPath {
        container_path(parent, self.cgroup_driver, CgroupNaming::Containerd, id)
    }
}

/// Takes the directory for this process alone.
async fn take_lock(path: &Path) -> io::Result<File> {
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another process uses it"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A new id, as long and as random as other runtimes' ids.
fn new_id() -> Result<String, Error> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::failed("generate an id", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Runs work that waits for the disk or for processes, away from the agent's other tasks.
async fn blocking<T: Send + 'static>(
    doing: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::failed(doing, error)),
    }
}
