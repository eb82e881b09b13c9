//! The agent's side of the helper process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::open_files;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::job::{Job, Reply};
use super::layout::{ContainerDir, SandboxDir};
use super::transport;

/// How long a process may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Has processes forked by the helper.
#[derive(Debug)]
pub(super) struct Forker {
    command: Vec<OsString>,
    lock: File,
    helper: Mutex<Option<Helper>>,
}

#[derive(Debug)]
struct Helper {
    process: Child,
    socket: Option<OwnedFd>,
}

/// Why a process did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForkError {
    #[error("cannot start the helper {command:?}")]
    Helper {
        command: Vec<OsString>,
        #[source]
        source: io::Error,
    },
    #[error("cannot communicate with the helper")]
    Talk(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the process ended without reporting a result")]
    Silent,
}

impl Forker {
    /// The lock is held by the helper as well, and by processes that cannot be found on disk yet.
    pub(super) fn new(command: Vec<OsString>, lock: File) -> Result<Forker, ForkError> {
        let forker = Forker {
            command,
            lock,
            helper: Mutex::new(None),
        };
        let mut helper = forker.helper();
        *helper = Some(forker.spawn()?);
        drop(helper);
        Ok(forker)
    }

    fn helper(&self) -> MutexGuard<'_, Option<Helper>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self) -> Result<Helper, ForkError> {
        let failed = |source| ForkError::Helper {
            command: self.command.clone(),
            source,
        };
        let Some((program, args)) = self.command.split_first() else {
            return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
        };
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| failed(error.into()))?;
        let lock = self.lock.try_clone().map_err(failed)?;
        let process = Command::new(program)
            .args(args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(lock))
            .spawn()
            .map_err(failed)?;
        // Before it is given a task: what it forks are containers.
        open_files::restore_limit(process.id());
        Ok(Helper {
            process,
            socket: Some(ours),
        })
    }

    /// Has a process forked for the task; returns the socket over which it answers.
    pub(super) fn fork(
        &self,
        job: &Job,
        files: &[BorrowedFd<'_>],
    ) -> Result<UnixStream, ForkError> {
        let message = serde_json::to_vec(job).map_err(io::Error::from)?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut all = vec![theirs.as_fd()];
        all.extend_from_slice(files);
        let mut helper = self.helper();
        if let Some(Helper {
            socket: Some(socket),
            ..
        }) = &*helper
            && transport::send(socket, &message, &all).is_ok()
        {
            return Ok(ours);
        }
        // The helper is gone; the processes that it forked keep running.
        *helper = None;
        let started = helper.insert(self.spawn()?);
        if let Some(socket) = &started.socket {
            transport::send(socket, &message, &all)?;
        }
        Ok(ours)
    }

    /// Has a process forked and waits until it runs; returns its number.
    pub(super) fn start(&self, job: &Job) -> Result<i32, ForkError> {
        match self.try_start(job) {
            // The helper may have died with the task still unread.
            Err(ForkError::Silent) if !has_begun(job) => self.try_start(job),
            done => done,
        }
    }

    fn try_start(&self, job: &Job) -> Result<i32, ForkError> {
        let socket = self.fork(job, &[])?;
        socket.set_read_timeout(Some(START_TIMEOUT))?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line)?;
        match parse_reply(&line)? {
            Reply::Started { pid } => Ok(pid),
            Reply::Failed { message } => Err(ForkError::Refused(message)),
            Reply::Exited { .. } => Err(ForkError::Silent),
        }
    }
}

/// Whether a process has taken the task: the first thing it does is to leave a note of itself.
fn has_begun(job: &Job) -> bool {
    match job {
        Job::Pause(job) => SandboxDir::new(&job.dir).pause().exists(),
        Job::Monitor(job) => ContainerDir::new(&job.dir).monitor().exists(),
        Job::Exec(_) => true,
    }
}

/// One line of the conversation.
pub(super) fn parse_reply(line: &str) -> Result<Reply, ForkError> {
    if line.is_empty() {
        return Err(ForkError::Silent);
    }
    Ok(serde_json::from_str(line).map_err(io::Error::from)?)
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends when its socket does.
        drop(self.socket.take());
        let _ = self.process.wait();
    }
}
