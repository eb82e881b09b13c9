//! The streams of a process over SPDY: one for each, named by its header.
//!
//! Matches v1.36 cri-streaming/pkg/streaming/remotecommand/httpstream.go.

use std::time::Duration;

use futures::stream::{BoxStream, unfold};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use plimsoll_runtime::TerminalSize;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::session::{Client, Outlet};
use super::sizes::Sizes;
use super::spdy::{Connection, Limits, Outflow, Role, Stream};
use super::status::Form;
use crate::server::command::Wanted;

/// A process has five streams; the rest is for mistakes.
const LIMITS: Limits = Limits {
    streams: 16,
    buffer: 256 * 1024,
};

/// A client's connection, and its streams that carry nothing from here.
pub(super) struct RemoteCommand {
    connection: Connection,
    inputs: Vec<Outflow>,
}

/// Why a client got no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OpenError {
    #[error("timed out waiting for client to create streams")]
    Late,
    #[error("the client disconnected before it created its streams")]
    Gone,
}

/// Waits until the client has opened all streams that it requested.
pub(super) async fn open(
    upgraded: Upgraded,
    protocol: &str,
    wanted: Wanted,
    patience: Duration,
) -> Result<(Client, RemoteCommand), OpenError> {
    let io = TokioIo::new(upgraded);
    let (connection, streams) = Connection::start(io, Role::Server, LIMITS);
    let (is_v3, is_v4) = (protocol.starts_with("v3"), protocol.starts_with("v4"));
    let has_resize = wanted.tty && (is_v3 || is_v4);
    let mut all = collect(streams, wanted, has_resize, patience).await?;

    let mut inputs = Vec::new();
    let mut input = |stream: Stream| {
        inputs.push(stream.output);
        stream.input
    };
    let stdin = all.stdin.take().map(&mut input);
    let resize = all.resize.take().map(input).map(sizes);
    let output = |stream: Stream| Outlet::Spdy(stream.output);
    let client = Client {
        stdin,
        stdout: all.stdout.map(output),
        stderr: all.stderr.map(output),
        error: Outlet::Spdy(all.error.ok_or(OpenError::Gone)?.output),
        form: if is_v4 { Form::Json } else { Form::Text },
        resize,
        link: std::sync::Arc::clone(&connection.link),
    };
    Ok((client, RemoteCommand { connection, inputs }))
}

impl RemoteCommand {
    /// Says goodbye.
    pub(super) async fn close(self, idle: Duration) {
        self.connection.close(&self.inputs, idle).await;
    }
}

#[derive(Default)]
struct Streams {
    error: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

/// Every expected stream, each accepted; what is not expected is not.
async fn collect(
    mut streams: mpsc::Receiver<Stream>,
    wanted: Wanted,
    has_resize: bool,
    patience: Duration,
) -> Result<Streams, OpenError> {
    let deadline = Instant::now() + patience;
    let expected = [wanted.stdin, wanted.stdout, wanted.stderr, has_resize];
    let expected = 1 + expected.into_iter().filter(|expected| *expected).count();
    let mut all = Streams::default();
    let mut received = 0;
    while received < expected {
        let stream = timeout_at(deadline, streams.recv()).await;
        let stream = stream.map_err(|_| OpenError::Late)?;
        let stream = stream.ok_or(OpenError::Gone)?;
        let place = match stream.headers.get("streamtype") {
            Some("error") => Some(&mut all.error),
            Some("stdin") if wanted.stdin => Some(&mut all.stdin),
            Some("stdout") if wanted.stdout => Some(&mut all.stdout),
            Some("stderr") if wanted.stderr => Some(&mut all.stderr),
            Some("resize") if has_resize => Some(&mut all.resize),
            _ => None,
        };
        match place {
            Some(place @ None) => {
                let accepted = stream.output.accept().await;
                accepted.map_err(|_| OpenError::Gone)?;
                *place = Some(stream);
                received += 1;
            }
            _ => stream.output.reset().await,
        }
    }
    Ok(all)
}

/// The changes of size that come in a stream.
fn sizes(input: DuplexStream) -> BoxStream<'static, TerminalSize> {
    let start = (input, Sizes::default());
    Box::pin(unfold(start, |(mut input, mut sizes)| async move {
        let mut piece = [0; 256];
        loop {
            let count = input.read(&mut piece).await.ok()?;
            if count == 0 {
                return None;
            }
            if let Some(size) = sizes.read(&piece[..count]) {
                return Some((size, (input, sizes)));
            }
        }
    }))
}
