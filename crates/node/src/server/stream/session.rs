//! A process and a client joined, whatever the client speaks.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use plimsoll_client::splice::Activity;
use plimsoll_runtime::{Error, Input, Output, ProcessStreams, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::status::{Form, Status};
use super::{spdy, websocket};

/// How much of an output is sent at a time.
const PIECE: usize = 32 * 1024;

/// How long the other side may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a client's process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum Kind {
    /// A command of the client.
    Exec(Vec<String>),
    /// The first process of a container.
    Attach,
}

/// A client that has opened its streams.
pub(super) struct Client {
    pub(super) stdin: Option<DuplexStream>,
    pub(super) stdout: Option<Outlet>,
    pub(super) stderr: Option<Outlet>,
    /// Where the exit status of the process is written.
    pub(super) error: Outlet,
    pub(super) form: Form,
    /// Changes of the terminal's size.
    pub(super) resize: Option<BoxStream<'static, TerminalSize>>,
    pub(super) link: Arc<Link>,
}

/// The connection under a client's streams.
#[derive(Debug, Default)]
pub(in crate::server) struct Link {
    /// Cancelled by the task that finds the client gone.
    pub(in crate::server) gone: CancellationToken,
    pub(super) activity: Activity,
}

impl Link {
    /// Waits until all that was said has been `taken`, which may last as long as something moves;
    /// then a little for the other side to say goodbye.
    pub(in crate::server) async fn part(&self, taken: impl Future<Output = ()>, idle: Duration) {
        tokio::select! {
            () = taken => {}
            () = self.gone.cancelled() => {}
            () = self.activity.stall(idle) => return,
        }
        let _ = timeout(FAREWELL, self.gone.cancelled()).await;
    }
}

/// One of the streams towards a client.
pub(super) enum Outlet {
    WebSocket(websocket::Channel),
    Spdy(spdy::Outflow),
}

/// The client does not listen any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct Gone;

impl Outlet {
    pub(super) async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        match self {
            Outlet::WebSocket(channel) => channel.send(bytes).await,
            Outlet::Spdy(stream) => stream.send(bytes).await,
        }
    }

    /// Nothing more will come. Not every protocol can express that.
    pub(super) async fn finish(&self) {
        match self {
            Outlet::WebSocket(_) => {}
            Outlet::Spdy(stream) => stream.finish().await,
        }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Outlet").finish_non_exhaustive()
    }
}

/// Joins them until the process has ended and its status is sent, or the client has gone.
/// Then the process is given up, which ends it if it was the client's.
pub(super) async fn serve(
    process: Result<Box<ProcessStreams>, Error>,
    client: Client,
    kind: &Kind,
    idle: Duration,
) {
    let Client {
        stdin,
        stdout,
        stderr,
        error,
        form,
        resize,
        link,
    } = client;
    let ended = async {
        let process = *process?;
        let input = async {
            tokio::join!(
                copy_in(stdin, process.stdin),
                hand_on(resize, process.resize)
            );
            // The end of the input is not the end of the process.
            std::future::pending::<Infallible>().await
        };
        let output = async {
            let (exit, (), ()) = tokio::join!(
                process.exit,
                copy_out(process.stdout, stdout),
                copy_out(process.stderr, stderr),
            );
            exit
        };
        tokio::select! {
            exit = output => exit,
            never = input => match never {},
        }
    };
    let reported = async {
        let status = Status::of(kind, &ended.await);
        if let Some(status) = status.encode(form) {
            let _ = error.send(status).await;
        }
        error.finish().await;
    };
    tokio::select! {
        () = reported => {}
        () = link.gone.cancelled() => {}
        () = link.activity.stall(idle) => {}
    }
}

/// What the client says, until it says no more. When the process does not listen any more, the
/// client may send more: its input is still read.
async fn copy_in(from: Option<DuplexStream>, to: Option<Input>) {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return;
    };
    let mut piece = BytesMut::with_capacity(PIECE);
    let mut is_listening = true;
    while let Ok(1..) = from.read_buf(&mut piece).await {
        if is_listening {
            is_listening = to.write_all(&piece).await.is_ok() && to.flush().await.is_ok();
        }
        piece.clear();
    }
    let _ = to.shutdown().await;
}

/// What the process says. It is read to its end even if the client does not want it, so that the
/// process does not wait forever.
async fn copy_out(from: Option<Output>, to: Option<Outlet>) {
    let Some(mut from) = from else {
        return;
    };
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        match from.read_buf(&mut piece).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        if let Some(to) = &to {
            let _ = to.send(piece.freeze()).await;
        }
    }
    if let Some(to) = to {
        to.finish().await;
    }
}

async fn hand_on(
    from: Option<BoxStream<'static, TerminalSize>>,
    to: Option<mpsc::Sender<TerminalSize>>,
) {
    let (Some(mut from), Some(to)) = (from, to) else {
        return;
    };
    while let Some(size) = from.next().await {
        if to.send(size).await.is_err() {
            return;
        }
    }
}
