//! The monitor process of one container: creates it, writes its log, serves its streams to clients
//! that attach, and records how it ended.
//!
//! It outlives the agent and does not depend on it. Its state is in the container's directory:
//! `monitor.json` before the container is made, `started.json` once it runs, `exit.json` when it has
//! ended. One loop around `poll`, no threads.

mod clients;
mod streams;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::super::cgroup::{Cgroup, Machine};
use super::super::files::{self, Durability};
use super::super::job::{MonitorJob, Reply};
use super::super::layout::{ContainerDir, short_socket_path};
use super::super::process_id::ProcessId;
use super::super::record::{ExitRecord, START_ERROR, START_ERROR_CODE, StartedRecord, now_nanos};
use super::container::{self, Running};
use super::fork::fork;
use super::log::LogFile;
use super::{Control, Lock, protect_from_oom};
use clients::Clients;
use streams::Streams;

const OOM_KILLED: &str = "OOMKilled";

/// How long the output of a container that has ended is waited for.
const DRAIN: Duration = Duration::from_secs(1);
/// How long its last processes may take to die.
const KILL: Duration = Duration::from_secs(10);

/// Runs a container to its end.
pub(super) fn run(
    job: &MonitorJob,
    control: &mut Control,
    mut lock: Lock,
    machine: &Machine,
) -> Result<(), String> {
    let _ = rustix::thread::set_name(c"monitor");
    let dir = ContainerDir::new(&job.dir);
    let pid = rustix::process::getpid().as_raw_pid();
    let note = ProcessId::of(pid)
        .and_then(|id| files::write_json(&dir.monitor(), &id, Durability::Process));
    note.map_err(|error| format!("write {}: {error}", dir.monitor().display()))?;
    lock.release();
    let cgroup = machine.cgroup(&job.cgroup);
    let visit = cgroup.visit_named_trees();
    let visit = visit.map_err(|error| format!("enter cgroup {}: {error}", job.cgroup))?;
    let started = start(job, &dir, &cgroup);
    if let Ok(monitor) = &started {
        control.send(&Reply::Started { pid: monitor.pid });
        control.close();
    }
    // libcontainer gives its own process the container's score on the way.
    protect_from_oom();
    visit.leave();
    let mut monitor = match started {
        Ok(monitor) => monitor,
        Err(message) => {
            note_exit(&dir, START_ERROR_CODE, START_ERROR, &message)?;
            clean_up(&dir, &cgroup);
            return Err(message);
        }
    };
    let code = monitor.watch().map_err(|error| error.to_string())?;
    if !job.has_pid_namespace {
        // What cannot be killed now is tried again when the cgroup is removed.
        let _ = cgroup.kill_all(KILL);
    }
    monitor.drain();
    let reason = match cgroup.oom_kills() {
        0 => "",
        _ => OOM_KILLED,
    };
    note_exit(&dir, code, reason, "")?;
    monitor.drain_clients();
    // The agent waits for the end of this process, not of what can be done later.
    let _ = fork(|| clean_up(&dir, &cgroup));
    Ok(())
}

fn note_exit(dir: &ContainerDir, code: i32, reason: &str, message: &str) -> Result<(), String> {
    let exit = ExitRecord {
        code,
        finished_at: now_nanos(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    files::write_json(&dir.exit(), &exit, Durability::Process)
        .map_err(|error| format!("write {}: {error}", dir.exit().display()))
}

/// Nothing of the container is left behind but its files, and how it ended is kept for good.
fn clean_up(dir: &ContainerDir, cgroup: &Cgroup) -> i32 {
    let _ = std::fs::remove_file(dir.socket());
    let removed = cgroup.remove(KILL).is_ok();
    let kept = File::open(dir.exit()).and_then(|file| file.sync_data());
    i32::from(!removed || kept.is_err())
}

fn start(job: &MonitorJob, dir: &ContainerDir, cgroup: &Cgroup) -> Result<Monitor, String> {
    let log = job.log_path.as_deref().map(LogFile::open).transpose();
    let log = log.map_err(|error| format!("open the log {:?}: {error}", job.log_path))?;
    let running = container::start(job)?;
    watch_over(job, dir, log, running).map_err(|error| {
        let _ = cgroup.kill_all(KILL);
        format!("watch over the container: {error}")
    })
}

fn watch_over(
    job: &MonitorJob,
    dir: &ContainerDir,
    log: Option<LogFile>,
    running: Running,
) -> io::Result<Monitor> {
    let pid = Pid::from_raw(running.pid).ok_or(io::ErrorKind::InvalidData)?;
    let started = StartedRecord {
        process: ProcessId::of(running.pid)?,
        started_at: now_nanos(),
    };
    let (_dir, short) = short_socket_path(&dir.socket())?;
    let listener = UnixListener::bind(short)?;
    listener.set_nonblocking(true)?;
    let monitor = Monitor {
        pid: running.pid,
        init: pidfd_open(pid, PidfdFlags::empty())?,
        listener,
        streams: Streams::new(running, log, job.stdin_once)?,
        clients: Clients::default(),
    };
    // Once this file exists, clients may connect.
    files::write_json(&dir.started(), &started, Durability::Process)?;
    Ok(monitor)
}

/// A container that runs.
#[derive(Debug)]
struct Monitor {
    pid: i32,
    /// Readable once the first process has ended.
    init: OwnedFd,
    listener: UnixListener,
    streams: Streams,
    clients: Clients,
}

impl Monitor {
    /// Serves all until the first process has ended; returns its exit code.
    fn watch(&mut self) -> io::Result<i32> {
        while !self.poll_once(None)? {}
        let status = waitid(WaitId::PidFd(self.init.as_fd()), WaitIdOptions::EXITED)?;
        Ok(status.map_or(255, |status| {
            let signal = status.terminating_signal().map(|signal| 128 + signal);
            status.exit_status().or(signal).unwrap_or(255)
        }))
    }

    /// Reads what is still in the pipes.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN;
        while self.streams.has_output() && Instant::now() < deadline {
            if self.poll_once(Some(Duration::from_millis(50))).is_err() {
                break;
            }
        }
        self.streams.finish();
    }

    /// Sends attached clients the rest of their output.
    fn drain_clients(&mut self) {
        let deadline = Instant::now() + DRAIN;
        while self.clients.have_pending() && Instant::now() < deadline {
            if self.poll_once(Some(Duration::from_millis(50))).is_err() {
                break;
            }
        }
    }

    /// Waits for something to happen and deals with it; returns whether the first process has
    /// ended.
    fn poll_once(&mut self, limit: Option<Duration>) -> io::Result<bool> {
        let limit = limit.or_else(|| self.clients.next_check());
        let may_read = !self.clients.are_behind();
        let mut polled = vec![
            PollFd::new(&self.init, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        let streams_at = polled.len();
        polled.extend(self.streams.polled(may_read));
        let clients_at = polled.len();
        polled.extend(self.clients.polled(self.streams.takes_input()));
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        let (own, rest) = events.split_at(streams_at);
        let (stream_events, client_events) = rest.split_at(clients_at - streams_at);
        self.streams.handle(stream_events, &mut self.clients);
        self.clients.handle(client_events, &mut self.streams);
        if !own[1].is_empty()
            && let Ok((socket, _)) = self.listener.accept()
        {
            self.clients.add(socket);
        }
        Ok(!own[0].is_empty())
    }
}
