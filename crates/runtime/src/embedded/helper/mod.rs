//! The processes outside the agent's own.
//!
//! libcontainer must be driven from a process of one thread, and containers must outlive the agent.
//! So the agent starts its own binary again as a *helper* ([`helper_main`]), which does nothing
//! but fork: each task ([`Job`]) gets a process of its own that shares the helper's memory until it
//! writes to it. Starting one takes no `exec`, and ten of them cost little more than one.
//!
//! [`user_namespace`] makes users of a sandbox's own, [`stage`] what containers with them are made
//! from.
//!
//! Tasks: [`pause`] holds the namespaces of a sandbox, [`monitor`] runs a container and keeps its
//! log and exit code, [`exec`] runs a command in a container.

mod binary;
mod causes;
mod confine;
mod container;
mod entry;
mod exec;
mod executor;
mod fork;
mod log;
mod monitor;
mod mounts;
mod pause;
mod stage;
mod terminal;
mod user_namespace;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use plimsoll_core::cgroup::Driver;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{set_child_subreaper, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin, stdout};

use super::cgroup::Machine;
use super::job::{Job, Reply};
use super::transport;
use fork::{Children, fork, set_children};

/// How eagerly the kernel should kill the processes that hold containers: last of all.
const OOM_SCORE_ADJ: &str = "-998";

/// The helper process: forks a process per task until the agent is gone.
///
/// To be called by `main` before any thread is started, when the binary was called with the words
/// of [`Options::helper`](super::Options::helper). Standard input is the socket that tasks come
/// from, standard output the lock on the runtime's directory.
pub fn helper_main() -> ExitCode {
    binary::protect();
    // The agent does without; its containers are not to inherit that.
    crate::huge_pages::use_huge_pages(true);
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "runtime helper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let (jobs, lock) = (rustix::io::dup(stdin())?, rustix::io::dup(stdout())?);
    for file in [&jobs, &lock] {
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    // Signals for the agent's terminal are not for containers.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"runtime-helper");
    set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    set_children(Children::Forgotten);
    silence()?;
    // How pods' cgroups are named does not matter here: tasks bring paths.
    let machine = Machine::detect(Driver::Cgroupfs).map_err(io::Error::other)?;
    // In a forked process both are taken out, which leaves them as they are here.
    let (mut jobs, mut lock) = (Some(jobs), Some(lock));
    while let Some(socket) = &jobs {
        let Some((message, files)) = transport::receive(socket)? else {
            break;
        };
        let Ok(job) = serde_json::from_slice::<Job>(&message) else {
            continue;
        };
        fork(|| {
            drop(jobs.take());
            set_children(Children::Kept);
            let _ = setsid();
            run(job, files, Lock(lock.take()), &machine)
        })?;
    }
    Ok(())
}

/// Standard streams lead nowhere, so that nothing of the agent's stays open.
fn silence() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// The lock on the runtime's directory. It is held until the process can be found there, so that an
/// agent that starts meanwhile waits and then sees it.
#[derive(Debug)]
struct Lock(Option<OwnedFd>);

impl Lock {
    fn release(&mut self) {
        drop(self.0.take());
    }
}

/// Does a task in the process made for it.
fn run(job: Job, files: Vec<OwnedFd>, lock: Lock, machine: &Machine) -> i32 {
    let mut files = files.into_iter();
    let Some(control) = files.next() else {
        return 1;
    };
    let mut control = Control(Some(UnixStream::from(control)));
    let done = match job {
        Job::Pause(job) => pause::run(&job, &mut control, lock),
        Job::Monitor(job) => monitor::run(&job, &mut control, lock, machine),
        Job::Exec(job) => {
            drop(lock);
            exec::run(&job, &mut control, files.collect(), machine)
        }
    };
    match done {
        Ok(()) => 0,
        Err(message) => {
            control.send(&Reply::Failed { message });
            1
        }
    }
}

/// The connection to the agent, which may have ended.
#[derive(Debug)]
struct Control(Option<UnixStream>);

impl Control {
    fn send(&mut self, reply: &Reply) {
        if let (Some(socket), Ok(mut line)) = (&mut self.0, serde_json::to_vec(reply)) {
            line.push(b'\n');
            let _ = socket.write_all(&line);
        }
    }

    /// Closes the connection, so that the agent reads end of file.
    fn close(&mut self) {
        drop(self.0.take());
    }
}

/// Where the right to do so is missing, a process stays as likely to be killed as the agent.
fn protect_from_oom() {
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
}
