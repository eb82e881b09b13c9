//! The agent's side of the process that walks.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::scan::Scope;
use super::wire::{Request, Step, Taken};

/// How long to wait for a step beyond its time. A file system that does not answer in that time
/// keeps the process waiting, perhaps forever.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many processes may wait for such file systems. Beyond, nothing is walked over.
const MOST_STUCK: usize = 4;
/// How long another process is not started after one has ended by itself: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// Accounts a process, by its id, to what walks may take.
pub type Account = Arc<dyn Fn(u32) + Send + Sync>;

/// The process, which is started when there is something to walk over, and again when it has ended.
pub(super) struct Process {
    command: Vec<OsString>,
    account: Account,
    state: Mutex<State>,
    next_walk: AtomicU64,
    forgotten: Mutex<Vec<u64>>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// Processes that do not answer. They end when they can be.
    stuck: Vec<Child>,
    /// How long to wait after the next end, and until when after the last.
    pause: Duration,
    not_before: Option<Instant>,
}

struct Running {
    child: Child,
    socket: BufReader<UnixStream>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.command).finish()
    }
}

/// A walk that the process does; it is forgotten there when this is dropped.
#[derive(Debug)]
pub(super) struct Handle {
    process: Arc<Process>,
    walk: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let forgotten = self.process.forgotten.lock();
        let mut forgotten = forgotten.unwrap_or_else(PoisonError::into_inner);
        forgotten.push(self.walk);
    }
}

impl Handle {
    /// Has a step taken. The error is that nothing is known of the directory: the process has ended,
    /// or waits.
    pub(super) fn advance(&self, path: &Path, scope: Scope, step: Step) -> io::Result<Taken> {
        let forgotten = self.process.forgotten.lock();
        let forgotten = std::mem::take(&mut *forgotten.unwrap_or_else(PoisonError::into_inner));
        self.process.ask(&Request {
            walk: self.walk,
            path: path.as_os_str().as_bytes().to_owned(),
            scope,
            step,
            forgotten,
        })
    }
}

impl Process {
    pub(super) fn new(command: Vec<OsString>, account: Account) -> Process {
        Process {
            command,
            account,
            state: Mutex::default(),
            next_walk: AtomicU64::default(),
            forgotten: Mutex::default(),
        }
    }

    pub(super) fn begin(self: &Arc<Process>) -> Handle {
        Handle {
            walk: self.next_walk.fetch_add(1, Ordering::Relaxed),
            process: Arc::clone(self),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, request: &Request) -> io::Result<Taken> {
        let mut state = self.state();
        let mut running = match state.running.take() {
            Some(running) => running,
            None => self.start(&mut state)?,
        };
        let patience = PATIENCE + Duration::from_millis(request.step.millis);
        match running.ask(request, patience) {
            Ok(taken) => {
                state.running = Some(running);
                state.pause = PAUSES.0;
                Ok(taken)
            }
            Err(error) => {
                let Running { mut child, socket } = running;
                drop(socket);
                // What waits for a file system ends when that answers, and is waited for then.
                let _ = child.kill();
                let is_waiting = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                );
                let process = child.id();
                if !is_waiting {
                    let pause = state.pause.max(PAUSES.0);
                    state.not_before = Some(Instant::now() + pause);
                    state.pause = (pause * 2).min(PAUSES.1);
                }
                state.stuck.push(child);
                tracing::warn!(process, %error, "disk walker ended");
                match is_waiting {
                    true => Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "file system not responding",
                    )),
                    false => Err(error),
                }
            }
        }
    }

    fn start(&self, state: &mut State) -> io::Result<Running> {
        // One that has ended is waited for, so that it is gone.
        state
            .stuck
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if state.stuck.len() >= MOST_STUCK {
            let error = "too many file systems do not answer";
            return Err(io::Error::new(io::ErrorKind::TimedOut, error));
        }
        if state.not_before.is_some_and(|at| Instant::now() < at) {
            let error = "the process that walks over directories ended a moment ago";
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, error));
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()?;
        // Before the first request.
        (self.account)(child.id());
        Ok(Running {
            child,
            socket: BufReader::new(ours),
        })
    }
}

impl Running {
    fn ask(&mut self, request: &Request, patience: Duration) -> io::Result<Taken> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let socket = self.socket.get_mut();
        socket.set_write_timeout(Some(patience))?;
        socket.set_read_timeout(Some(patience))?;
        socket.write_all(&line)?;
        line.clear();
        self.socket.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { mut child, socket }) = state.running.take() {
            // The process ends when the socket is closed.
            drop(socket);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
