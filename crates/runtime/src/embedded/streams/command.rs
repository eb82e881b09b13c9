//! Commands in containers.
//!
//! Each runs under a helper process of its own, which has the streams of the command directly; the
//! agent only holds the other ends. Hanging up on the helper kills the command.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::sync::{mpsc, oneshot};

use super::super::forker::{ForkError, parse_reply};
use super::super::job::{ExecJob, Job, Reply};
use super::super::table::{Container, lock};
use super::super::{Embedded, blocking};
use super::resize;
use crate::wire::{ExecRequest, ExecSyncResponse};
use crate::{Error, ProcessStreams, TerminalSize};

/// Most output of a command that is kept, per stream.
const MAX_OUTPUT: usize = 16 << 20;
/// How long output is waited for once the command itself has ended: its children may hold the
/// streams open forever.
const DRAIN: Duration = Duration::from_secs(1);

/// A command that runs.
struct Command {
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    replies: Replies,
    /// Closing this ends the connection.
    words: OwnedWriteHalf,
}

/// Which streams a command has.
#[derive(Clone, Copy)]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    terminal: bool,
}

impl Embedded {
    /// Runs a command to its end.
    pub(in super::super) async fn run_command(
        &self,
        container: &Arc<Container>,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecSyncResponse, Error> {
        let wanted = Wanted {
            stdin: false,
            stdout: true,
            stderr: true,
            terminal: false,
        };
        let work = async {
            let mut command = self.start_command(container, command, wanted).await?;
            let stdout = Collector::new(command.stdout.take());
            let stderr = Collector::new(command.stderr.take());
            let exit_code = command.replies.exit_code().await?;
            Ok(ExecSyncResponse {
                stdout: stdout.finish().await,
                stderr: stderr.finish().await,
                exit_code,
            })
        };
        if timeout.is_zero() {
            return work.await;
        }
        // Dropping the future closes the connection.
        match tokio::time::timeout(timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::TimedOut {
                verb: "exec",
                after: timeout,
            }),
        }
    }

    /// Runs a command with live streams.
    pub(in super::super) async fn stream_command(
        &self,
        container: &Arc<Container>,
        request: &ExecRequest,
    ) -> Result<ProcessStreams, Error> {
        let wanted = Wanted {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr && !request.tty,
            terminal: request.tty,
        };
        let command = self.start_command(container, &request.cmd, wanted).await?;
        let (resize, sizes) = mpsc::channel(4);
        let (done, exit) = oneshot::channel();
        tokio::spawn(wait_and_resize(command.replies, command.words, sizes, done));
        let id = container.id.clone();
        Ok(ProcessStreams {
            stdin: command.stdin.map(|pipe| Box::new(Closing(Some(pipe))) as _),
            stdout: command.stdout.map(|pipe| Box::new(pipe) as _),
            stderr: command.stderr.map(|pipe| Box::new(pipe) as _),
            resize: request.tty.then_some(resize),
            exit: Box::pin(async move {
                let exit = exit.await;
                exit.unwrap_or_else(|_| Err(failed(&id, ForkError::Silent)))
            }),
        })
    }

    async fn start_command(
        &self,
        container: &Arc<Container>,
        command: &[String],
        wanted: Wanted,
    ) -> Result<Command, Error> {
        container.running()?;
        let job = ExecJob {
            id: container.id.clone(),
            dir: container.dir.path().to_owned(),
            cgroup: container.record.cgroup.clone(),
            command: command.to_vec(),
            terminal: wanted.terminal,
        };
        let runtime = self.clone();
        let started = blocking("run a command", move || {
            let id = job.id.clone();
            runtime
                .fork_command(job, wanted)
                .map_err(|error| failed(&id, error))
        });
        let mut command = started.await?;
        match command.replies.next().await? {
            Reply::Started { .. } => Ok(command),
            Reply::Failed { message } => Err(failed(&container.id, ForkError::Refused(message))),
            Reply::Exited { .. } => Err(failed(&container.id, ForkError::Silent)),
        }
    }

    fn fork_command(&self, job: ExecJob, wanted: Wanted) -> Result<Command, ForkError> {
        let id = job.id.clone();
        let (theirs_in, ours_in) = stream(wanted.stdin)?;
        let (ours_out, theirs_out) = stream(wanted.stdout)?;
        let (ours_err, theirs_err) = stream(wanted.stderr)?;
        let files = [theirs_in.as_fd(), theirs_out.as_fd(), theirs_err.as_fd()];
        let control = self.inner.forker.fork(&Job::Exec(job), &files)?;
        control.set_nonblocking(true)?;
        let (replies, words) = UnixStream::from_std(control)?.into_split();
        let receiver = |is_wanted: bool, fd| is_wanted.then(|| pipe::Receiver::from_owned_fd(fd));
        let sender = wanted.stdin.then(|| pipe::Sender::from_owned_fd(ours_in));
        Ok(Command {
            stdin: sender.transpose()?,
            stdout: receiver(wanted.stdout, ours_out).transpose()?,
            stderr: receiver(wanted.stderr, ours_err).transpose()?,
            replies: Replies {
                reader: BufReader::new(replies),
                container: id,
            },
            words,
        })
    }
}

/// The reading and the writing end of a stream; both lead nowhere if it is not wanted.
fn stream(is_wanted: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    if is_wanted {
        return Ok(pipe_with(PipeFlags::CLOEXEC)?);
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    Ok((null.try_clone()?.into(), null.into()))
}

fn failed(container: &str, error: ForkError) -> Error {
    Error::failed(format!("exec in container {container}"), error)
}

/// The replies of the helper.
struct Replies {
    reader: BufReader<OwnedReadHalf>,
    container: String,
}

impl Replies {
    async fn next(&mut self) -> Result<Reply, Error> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).await;
        let reply = read
            .map_err(ForkError::from)
            .and_then(|_| parse_reply(&line));
        reply.map_err(|error| failed(&self.container, error))
    }

    /// How the command has ended.
    async fn exit_code(&mut self) -> Result<i32, Error> {
        match self.next().await? {
            Reply::Exited { code } => Ok(code),
            Reply::Failed { message } => Err(failed(&self.container, ForkError::Refused(message))),
            Reply::Started { .. } => Err(failed(&self.container, ForkError::Silent)),
        }
    }
}

/// Passes terminal sizes on to a command and reports its exit code. If the caller no longer waits,
/// returns and so closes the connection.
async fn wait_and_resize(
    mut replies: Replies,
    mut words: OwnedWriteHalf,
    mut sizes: mpsc::Receiver<TerminalSize>,
    mut done: oneshot::Sender<Result<i32, Error>>,
) {
    let mut code = Box::pin(replies.exit_code());
    let mut has_sizes = true;
    let result = loop {
        tokio::select! {
            result = &mut code => break result,
            () = done.closed() => return,
            size = sizes.recv(), if has_sizes => match size {
                Some(size) => {
                    let mut line = serde_json::to_vec(&resize(size)).unwrap_or_default();
                    line.push(b'\n');
                    // If the helper is gone, the read of its reply fails.
                    let _ = words.write_all(&line).await;
                }
                None => has_sizes = false,
            },
        }
    };
    let _ = done.send(result);
}

/// The writing end of a pipe that is closed when it is shut down, not only when it is dropped.
struct Closing(Option<pipe::Sender>);

impl AsyncWrite for Closing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(pipe) => Pin::new(pipe).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

/// Reads a stream in the background.
struct Collector {
    task: Option<tokio::task::JoinHandle<()>>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn new(pipe: Option<pipe::Receiver>) -> Collector {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let task = pipe.map(|mut pipe| {
            let bytes = Arc::clone(&bytes);
            tokio::spawn(async move {
                let mut buffer = vec![0; 16 * 1024];
                while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
                    let mut bytes = lock(&bytes);
                    // Output beyond the limit is read and dropped, so that the command does not
                    // block.
                    let room = MAX_OUTPUT.saturating_sub(bytes.len()).min(length);
                    bytes.extend_from_slice(&buffer[..room]);
                }
            })
        });
        Collector { task, bytes }
    }

    async fn finish(mut self) -> Vec<u8> {
        if let Some(task) = &mut self.task {
            let _ = tokio::time::timeout(DRAIN, task).await;
        }
        std::mem::take(&mut *lock(&self.bytes))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
