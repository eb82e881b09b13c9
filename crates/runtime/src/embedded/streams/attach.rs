//! Joining the first process of a container, through its monitor.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::super::Embedded;
use super::super::frame::{self, Kind, Request};
use super::super::layout::short_socket_path;
use super::super::table::Container;
use super::{BUFFER, resize};
use crate::wire::AttachRequest;
use crate::{Error, ProcessStreams, TerminalSize};

impl Embedded {
    /// Joins the streams of a container's first process.
    pub(in super::super) async fn join(
        &self,
        container: &Arc<Container>,
        request: &AttachRequest,
    ) -> Result<ProcessStreams, Error> {
        let has_stderr = request.stderr && !request.tty;
        let attach = Request::Attach {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: has_stderr,
        };
        container.running()?;
        let socket = connect(container, attach).await;
        let doing = || format!("attach to container {}", container.id);
        let socket = socket.map_err(|error| Error::failed(doing(), error))?;
        let (reader, writer) = socket.into_split();
        let stream = |is_wanted: bool| is_wanted.then(|| tokio::io::duplex(BUFFER)).unzip();
        let (stdin, from_caller) = stream(request.stdin);
        let (stdout, to_stdout) = stream(request.stdout);
        let (stderr, to_stderr) = stream(has_stderr);
        let (resize, sizes) = mpsc::channel(4);
        let (done, exit) = oneshot::channel();
        tokio::spawn(pass_input(writer, from_caller, sizes));
        tokio::spawn(pass_output(reader, to_stdout, to_stderr, done));
        Ok(ProcessStreams {
            stdin: stdin.map(|stream| Box::new(stream) as _),
            stdout: stdout.map(|stream| Box::new(stream) as _),
            stderr: stderr.map(|stream| Box::new(stream) as _),
            resize: request.tty.then_some(resize),
            exit: Box::pin(async move {
                let _ = exit.await;
                Ok(0)
            }),
        })
    }

    /// Has the monitor of a container reopen its log.
    pub(in super::super) async fn reopen_log(
        &self,
        container: &Arc<Container>,
    ) -> Result<(), Error> {
        container.running()?;
        let doing = || format!("reopen the log of container {}", container.id);
        match ask_to_reopen(container).await {
            Ok(message) if message.is_empty() => Ok(()),
            Ok(message) => Err(Error::failed(doing(), message)),
            Err(error) => Err(Error::failed(doing(), error)),
        }
    }
}

async fn ask_to_reopen(container: &Container) -> io::Result<String> {
    let mut socket = connect(container, Request::ReopenLog).await?;
    let mut reader = frame::Reader::default();
    let mut buffer = [0; 1024];
    loop {
        let next = reader.next().map_err(io::Error::other)?;
        if let Some((Kind::Done, message)) = next {
            return Ok(String::from_utf8_lossy(&message).into_owned());
        }
        match socket.read(&mut buffer).await? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            length => reader.push(&buffer[..length]),
        }
    }
}

/// Connects to a container's monitor and sends a request.
async fn connect(container: &Container, request: Request) -> io::Result<UnixStream> {
    let (_dir, path) = short_socket_path(&container.dir.socket())?;
    let mut socket = UnixStream::connect(path).await?;
    let mut bytes = Vec::new();
    frame::write(Kind::Request, &serde_json::to_vec(&request)?, &mut bytes);
    socket.write_all(&bytes).await?;
    Ok(socket)
}

/// Passes what the caller writes on to a monitor, and sizes.
async fn pass_input(
    mut writer: OwnedWriteHalf,
    mut input: Option<DuplexStream>,
    mut sizes: mpsc::Receiver<TerminalSize>,
) {
    let mut buffer = vec![0; 8 * 1024];
    let mut has_sizes = true;
    while input.is_some() || has_sizes {
        let has_input = input.is_some();
        let mut bytes = Vec::new();
        tokio::select! {
            length = read_some(&mut input, &mut buffer), if has_input => match length {
                Some(length) => frame::write(Kind::Stdin, &buffer[..length], &mut bytes),
                None => {
                    input = None;
                    frame::write(Kind::StdinEnd, &[], &mut bytes);
                }
            },
            size = sizes.recv(), if has_sizes => match size {
                Some(size) => {
                    let size = serde_json::to_vec(&resize(size)).unwrap_or_default();
                    frame::write(Kind::Resize, &size, &mut bytes);
                }
                None => has_sizes = false,
            },
        }
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // Output may continue; the connection ends when it does.
    writer.forget();
}

async fn read_some(input: &mut Option<DuplexStream>, buffer: &mut [u8]) -> Option<usize> {
    match input.as_mut()?.read(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(length) => Some(length),
    }
}

/// Passes output of a monitor on to the caller, until one of them closes the connection.
async fn pass_output(
    mut reader: OwnedReadHalf,
    mut stdout: Option<DuplexStream>,
    mut stderr: Option<DuplexStream>,
    mut done: oneshot::Sender<()>,
) {
    let mut frames = frame::Reader::default();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = tokio::select! {
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            () = done.closed() => return,
        };
        if length == 0 {
            break;
        }
        frames.push(&buffer[..length]);
        while let Ok(Some((kind, payload))) = frames.next() {
            let target = match kind {
                Kind::Stdout => &mut stdout,
                Kind::Stderr => &mut stderr,
                _ => continue,
            };
            if let Some(stream) = target
                && stream.write_all(&payload).await.is_err()
            {
                *target = None;
            }
        }
    }
    drop((stdout, stderr));
    let _ = done.send(());
}
