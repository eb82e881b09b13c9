//! Creates and starts a container with libcontainer.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use rustix::fs::{Gid, Uid, fchown};
use rustix::pipe::{PipeFlags, pipe_with};

use super::super::files;
use super::super::job::MonitorJob;
use super::super::layout::ContainerDir;
use super::super::stage::Stage;
use super::causes::Causes;
use super::executor::{Failures, Program};
use super::log::Stream;
use super::terminal::ConsoleSocket;
use super::{mounts, stage};

/// A container that runs, and our ends of its streams.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) pid: i32,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) outputs: Vec<(Stream, OwnedFd)>,
    /// The terminal, if it has one.
    pub(super) terminal: Option<OwnedFd>,
}

/// Makes and starts a container.
pub(super) fn start(job: &MonitorJob) -> Result<Running, String> {
    let causes = Causes::keep().map_err(|error| error.to_string())?;
    start_noting_causes(job).map_err(|message| causes.explain(message))
}

fn start_noting_causes(job: &MonitorJob) -> Result<Running, String> {
    let dir = ContainerDir::new(&job.dir);
    let stage: Option<Stage> = files::read_json(&dir.stage()).map_err(|error| error.to_string())?;
    let Some(stage) = stage else {
        let (container, running, failures) = make(job, &dir, None)?;
        return run(job, container, running, failures);
    };
    let on_stage = stage::enter(&stage, &dir)?;
    let made = make(job, &dir, Some(&stage));
    on_stage.leave()?;
    let (container, running, failures) = made?;
    run(job, container, running, failures)
}

/// Creates a container; its first process waits to become its program.
fn make(
    job: &MonitorJob,
    dir: &ContainerDir,
    stage: Option<&Stage>,
) -> Result<(Container, Running, Failures), String> {
    let in_words = |error: io::Error| error.to_string();
    let stream = || {
        let ends = stream().map_err(in_words)?;
        // A program may open its streams by name.
        if let Some(stage) = stage {
            let (uid, gid) = (Uid::from_raw(stage.user), Gid::from_raw(stage.group));
            fchown(&ends.0, Some(uid), Some(gid)).map_err(|error| in_words(error.into()))?;
        }
        Ok::<_, String>(ends)
    };
    let (program, failures) = Program::of(dir).map_err(in_words)?;
    let mut builder = ContainerBuilder::new(job.id.clone(), SyscallType::default())
        .with_executor(program)
        .with_root_path(dir.oci())
        .map_err(|error| chain(&error))?;
    let (mut stdin, mut outputs, mut console) = (None, Vec::new(), None);
    if job.terminal {
        let socket = ConsoleSocket::bind(&dir.console_socket()).map_err(in_words)?;
        builder = builder.with_console_socket(Some(socket.path().to_owned()));
        console = Some(socket);
    } else {
        let (out_reader, out_writer) = stream()?;
        let (err_reader, err_writer) = stream()?;
        outputs = vec![(Stream::Stdout, out_reader), (Stream::Stderr, err_reader)];
        builder = builder.with_stdout(out_writer).with_stderr(err_writer);
        if job.stdin {
            let (reader, writer) = stream()?;
            stdin = Some(writer);
            builder = builder.with_stdin(reader);
        } else {
            let null = File::open("/dev/null").map_err(in_words)?;
            builder = builder.with_stdin(OwnedFd::from(null));
        }
    }
    let container = builder
        .as_init(&job.dir)
        .with_systemd(false)
        .with_detach(true)
        .build()
        .map_err(|error| chain(&error))?;
    let pid = container.pid().map(|pid| pid.as_raw());
    let pid = pid.ok_or_else(|| "the container has no process".to_owned())?;
    let mut terminal = None;
    if let Some(console) = console {
        let master = console.receive().map_err(in_words)?;
        let copy = || master.try_clone().map_err(in_words);
        outputs = vec![(Stream::Stdout, copy()?)];
        stdin = job.stdin.then(copy).transpose()?;
        terminal = Some(master);
    }
    let running = Running {
        pid,
        stdin,
        outputs,
        terminal,
    };
    Ok((container, running, failures))
}

/// Starts a created container.
fn run(
    job: &MonitorJob,
    mut container: Container,
    running: Running,
    failures: Failures,
) -> Result<Running, String> {
    mounts::finish(running.pid, &job.narrowed, &job.read_only)?;
    container.start().map_err(|error| chain(&error))?;
    match failures.wait() {
        Some(message) => Err(message),
        None => Ok(running),
    }
}

fn stream() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// An error with all its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Transparent errors repeat the message of their cause.
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}
