//! A command in a running container.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::{Process as SpecProcess, Spec};
use libcontainer::syscall::syscall::SyscallType;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::ioctl_fionbio;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use super::super::cgroup::Machine;
use super::super::files;
use super::super::job::{ExecJob, Reply, Resize};
use super::super::layout::ContainerDir;
use super::super::stage::Stage;
use super::Control;
use super::causes::Causes;
use super::container::chain;
use super::entry::Entry;
use super::executor::Program;
use super::terminal::{ConsoleSocket, resize};

/// Runs a command to its end. It is killed when the agent closes the connection.
pub(super) fn run(
    job: &ExecJob,
    control: &mut Control,
    streams: Vec<OwnedFd>,
    machine: &Machine,
) -> Result<(), String> {
    let _ = rustix::thread::set_name(c"exec");
    let causes = Causes::keep().map_err(|error| error.to_string())?;
    let visit = machine.cgroup(&job.cgroup).visit_named_trees();
    let visit = visit.map_err(|error| format!("enter cgroup {}: {error}", job.cgroup))?;
    let process = start(job, streams).map_err(|message| causes.explain(message))?;
    control.send(&Reply::Started { pid: process.pid });
    visit.leave();
    let code = process
        .wait_for_exit(control)
        .map_err(|error| error.to_string())?;
    control.send(&Reply::Exited { code });
    Ok(())
}

/// A command that runs.
#[derive(Debug)]
struct Process {
    pid: i32,
    /// Readable once it has ended.
    end: OwnedFd,
    terminal: Option<Terminal>,
}

/// A terminal and the streams it is joined to.
#[derive(Debug)]
struct Terminal {
    master: File,
    /// Whether the command may still write to it.
    is_open: bool,
    input: Option<File>,
    /// Input that the terminal has not taken yet.
    pending: Vec<u8>,
    output: Option<File>,
}

fn start(job: &ExecJob, streams: Vec<OwnedFd>) -> Result<Process, String> {
    let dir = ContainerDir::new(&job.dir);
    let in_words = |error: io::Error| error.to_string();
    let mut process = read_process(job, &dir)?;
    let (mut program, failures) = Program::of(&dir).map_err(in_words)?;
    let stage: Option<Stage> = files::read_json(&dir.stage()).map_err(in_words)?;
    if let Some(stage) = stage {
        program.enter(Entry::take(&stage, &mut process).map_err(in_words)?);
    }
    let process = write_process(&process)?;
    let mut builder = ContainerBuilder::new(job.id.clone(), SyscallType::default())
        .with_executor(program)
        .with_root_path(dir.oci())
        .map_err(|error| chain(&error))?;
    let mut console = None;
    let mut streams = streams.into_iter();
    let mut terminal_streams = (None, None);
    if job.terminal {
        let name = format!("console-{}.sock", std::process::id());
        let socket = ConsoleSocket::bind(&dir.path().join(name)).map_err(in_words)?;
        builder = builder.with_console_socket(Some(socket.path().to_owned()));
        console = Some(socket);
        terminal_streams = (streams.next(), streams.next());
    } else if let [Some(stdin), Some(stdout), Some(stderr)] =
        [streams.next(), streams.next(), streams.next()]
    {
        builder = builder
            .with_stdin(stdin)
            .with_stdout(stdout)
            .with_stderr(stderr);
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", process.as_raw_fd()));
    let pid = builder
        .as_tenant()
        .with_detach(true)
        .with_process(Some(path))
        .build()
        .map_err(|error| chain(&error))?
        .as_raw();
    let terminal = match console {
        Some(console) => {
            let master = console.receive().map_err(in_words)?;
            ioctl_fionbio(&master, true).map_err(|error| error.to_string())?;
            Some(Terminal {
                master: File::from(master),
                is_open: true,
                input: terminal_streams.0.map(File::from),
                pending: Vec::new(),
                output: terminal_streams.1.map(File::from),
            })
        }
        None => None,
    };
    if let Some(message) = failures.wait() {
        return Err(message);
    }
    let end = Pid::from_raw(pid).ok_or_else(|| "the command has no process".to_owned())?;
    let end = pidfd_open(end, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    Ok(Process { pid, end, terminal })
}

/// The container's own process with another command.
fn read_process(job: &ExecJob, dir: &ContainerDir) -> Result<SpecProcess, String> {
    let spec = Spec::load(dir.spec()).map_err(|error| chain(&error))?;
    let mut process = spec
        .process()
        .clone()
        .ok_or("the container has no process")?;
    process.set_args(Some(job.command.clone()));
    process.set_terminal(Some(job.terminal));
    Ok(process)
}

/// In a file that has no name.
fn write_process(process: &SpecProcess) -> Result<File, String> {
    let write = || {
        let mut file = File::from(memfd_create("process", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&process)?)?;
        file.rewind()?;
        io::Result::Ok(file)
    };
    write().map_err(|error| format!("write the process of the command: {error}"))
}

impl Process {
    /// Serves the command until it has ended; returns its exit code.
    fn wait_for_exit(mut self, control: &mut Control) -> io::Result<i32> {
        let mut words = String::new();
        while !self.poll_once(control, &mut words)? {}
        let status = waitid(WaitId::PidFd(self.end.as_fd()), WaitIdOptions::EXITED)?;
        if let Some(terminal) = &mut self.terminal {
            while terminal.pass_output() {}
        }
        Ok(status.map_or(255, |status| {
            let signal = status.terminating_signal().map(|signal| 128 + signal);
            status.exit_status().or(signal).unwrap_or(255)
        }))
    }

    /// Waits for events and handles them; returns whether the command has ended.
    fn poll_once(&mut self, control: &mut Control, words: &mut String) -> io::Result<bool> {
        let mut polled = vec![PollFd::new(&self.end, PollFlags::IN)];
        let socket = control.0.as_ref();
        polled.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let terminal_at = polled.len();
        if let Some(terminal) = &self.terminal {
            polled.extend(terminal.polled());
        }
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if let Some(socket) = socket
            && ready[1]
            && !self.read_resizes(socket, words)
        {
            // The agent has closed the connection.
            control.close();
            let _ = pidfd_send_signal(&self.end, Signal::KILL);
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.handle(&ready[terminal_at..]);
        }
        Ok(ready[0])
    }

    /// Applies terminal sizes that the agent sends; false once the agent has closed the connection.
    fn read_resizes(&self, mut socket: &UnixStream, words: &mut String) -> bool {
        let mut buffer = [0; 1024];
        match socket.read(&mut buffer) {
            Ok(0) => return false,
            Ok(length) => words.push_str(&String::from_utf8_lossy(&buffer[..length])),
            Err(error) => return error.kind() == ErrorKind::Interrupted,
        }
        while let Some((line, rest)) = words.split_once('\n') {
            if let (Ok(size), Some(terminal)) = (serde_json::from_str(line), &self.terminal) {
                let Resize { width, height } = size;
                resize(&terminal.master, width, height);
            }
            *words = rest.to_owned();
        }
        true
    }
}

impl Terminal {
    /// What to wait for: the input, then the terminal itself while it is open.
    fn polled(&self) -> Vec<PollFd<'_>> {
        let input = self.input.iter().map(|input| {
            let is_wanted = self.pending.is_empty();
            let events = if is_wanted {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            PollFd::new(input, events)
        });
        let master = self.is_open.then(|| {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, !self.pending.is_empty());
            PollFd::new(&self.master, events)
        });
        input.chain(master).collect()
    }

    fn handle(&mut self, ready: &[bool]) {
        let mut ready = ready.iter().copied();
        if self.input.is_some() && ready.next() == Some(true) && self.pending.is_empty() {
            self.read_input();
        }
        if ready.next() == Some(true) {
            self.pass_output();
        }
        self.write_input();
    }

    /// Passes on what the command has written; false if there was nothing.
    fn pass_output(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.master.read(&mut buffer) {
            Ok(length @ 1..) => {
                if let Some(output) = &mut self.output
                    && output.write_all(&buffer[..length]).is_err()
                {
                    self.output = None;
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            // A terminal fails with EIO, not end of file, once its other side is closed.
            _ => {
                self.is_open = false;
                false
            }
        }
    }

    fn read_input(&mut self) {
        let mut buffer = [0; 16 * 1024];
        match self.input.as_mut().map(|input| input.read(&mut buffer)) {
            Some(Ok(length @ 1..)) => self.pending.extend_from_slice(&buffer[..length]),
            // The end of the input is not the end of the terminal.
            _ => self.input = None,
        }
    }

    fn write_input(&mut self) {
        while !self.pending.is_empty() {
            match self.master.write(&self.pending) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.pending.clear(),
            }
        }
    }
}
