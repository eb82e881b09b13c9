//! Watches for the exit of processes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Embedded;
use super::files::{self, Durability};
use super::process_id::ProcessId;
use super::record::{ExitRecord, START_ERROR, START_ERROR_CODE, StartedRecord, now_nanos};
use super::table::{Container, Phase, Sandbox};

/// What containerd reports for containers whose exit code is unknown.
const UNKNOWN_CODE: i32 = 255;
const UNKNOWN: &str = "Unknown";

/// How long the processes of a container that lost its monitor may take to die.
const KILL: Duration = Duration::from_secs(10);

/// Waits until a process has ended.
async fn ended(process: &ProcessId) -> io::Result<()> {
    if let Some(fd) = process.open()? {
        let _ = register(fd)?.readable().await?;
    }
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "the safe ways to wait for a descriptor are deprecated"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open and the same until it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

impl Embedded {
    /// Notes when the process of a sandbox ends.
    pub(super) fn watch_sandbox(&self, sandbox: &Arc<Sandbox>) {
        let (runtime, sandbox) = (Arc::downgrade(&self.inner), Arc::clone(sandbox));
        tokio::spawn(async move {
            let pause = sandbox.record().pause;
            if let Err(error) = ended(&pause).await {
                tracing::error!(sandbox = sandbox.id, %error, "failed to watch sandbox process");
            }
            sandbox.is_ready.send_replace(false);
            if let Some(runtime) = runtime.upgrade() {
                runtime.note_change();
            }
        });
    }

    /// Records the exit of a container when its monitor exits.
    pub(super) fn watch_container(&self, container: &Arc<Container>, monitor: ProcessId) {
        // The task must not keep a runtime alive that is no longer used.
        let (runtime, container) = (Arc::downgrade(&self.inner), Arc::clone(container));
        tokio::spawn(async move {
            if let Err(error) = ended(&monitor).await {
                tracing::error!(container = container.id, %error, "failed to watch container monitor");
            }
            let Some(inner) = runtime.upgrade() else {
                return;
            };
            let runtime = Embedded { inner };
            let noter = runtime.clone();
            let recorded = tokio::task::spawn_blocking(move || noter.note_end(&container));
            if let Ok(Err(error)) = recorded.await {
                tracing::error!(%error, "failed to record container exit");
            }
            runtime.inner.note_change();
        });
    }

    /// Reads how a container ended after its monitor exited. If the monitor recorded nothing, kills
    /// the container.
    pub(super) fn note_end(&self, container: &Container) -> io::Result<()> {
        let started: Option<StartedRecord> = files::read_json(&container.dir.started())?;
        let exit = match files::read_json(&container.dir.exit())? {
            Some(exit) => exit,
            None => self.end_lost(container)?,
        };
        container.phase.send_replace(Phase::Exited {
            started_at: started.map_or(0, |started| started.started_at),
            exit,
        });
        Ok(())
    }

    /// Records that a container could not be started, with its monitor's message if any.
    pub(super) fn note_start_failure(&self, container: &Container, why: &str) -> io::Result<()> {
        if let Some(monitor) = files::read_json::<ProcessId>(&container.dir.monitor())? {
            monitor.signal(Signal::KILL)?;
        }
        if files::read_json::<ExitRecord>(&container.dir.exit())?.is_none() {
            let exit = ExitRecord {
                code: START_ERROR_CODE,
                finished_at: now_nanos(),
                reason: START_ERROR.to_owned(),
                message: why.to_owned(),
            };
            files::write_json(&container.dir.exit(), &exit, Durability::Process)?;
        }
        let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
        cgroup.remove(KILL).map_err(io::Error::other)?;
        self.note_end(container)
    }

    fn end_lost(&self, container: &Container) -> io::Result<ExitRecord> {
        tracing::warn!(
            container = container.id,
            "container monitor ended without recording an exit code"
        );
        let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
        cgroup.remove(KILL).map_err(io::Error::other)?;
        let exit = ExitRecord {
            code: UNKNOWN_CODE,
            finished_at: now_nanos(),
            reason: UNKNOWN.to_owned(),
            message: String::new(),
        };
        files::write_json(&container.dir.exit(), &exit, Durability::Machine)?;
        Ok(exit)
    }
}
