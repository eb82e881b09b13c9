//! Many streams over one connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::frame::{Decoder, Encoder, Frame, ResetStatus};
use super::header::Headers;
use super::reader::{Inflow, Reader};
use super::writer::Writer;
use crate::server::stream::session::{Gone, Link};

/// Frames that wait for the other side to read.
const MAX_QUEUE: usize = 16;

/// How long the other side may take to accept a stream.
const CREATION: Duration = Duration::from_secs(30);

/// Which side opens which streams: clients odd ones, servers even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Role {
    Client,
    Server,
}

/// How much the other side may request.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct Limits {
    /// Streams at once.
    pub(in crate::server) streams: usize,
    /// Bytes of one stream that have not been taken yet.
    pub(in crate::server) buffer: usize,
}

/// A stream that the other side has opened, or that it has accepted.
#[derive(Debug)]
pub(in crate::server) struct Stream {
    pub(in crate::server) id: u32,
    pub(in crate::server) headers: Headers,
    /// What the other side says.
    pub(in crate::server) input: DuplexStream,
    /// Commands for it.
    pub(in crate::server) output: Outflow,
    /// Cancelled when the other side resets the stream.
    pub(in crate::server) reset: CancellationToken,
}

/// The way out of a stream.
#[derive(Clone, Debug)]
pub(in crate::server) struct Outflow {
    pub(super) id: u32,
    pub(super) queue: mpsc::Sender<Frame>,
    /// While it is held, the stream counts as open.
    pub(super) _life: Arc<()>,
}

impl Outflow {
    /// Accepts a stream that the other side has opened.
    pub(in crate::server) async fn accept(&self) -> Result<(), Gone> {
        let headers = Headers::default();
        let (id, fin) = (self.id, false);
        self.send_frame(Frame::SynReply { id, headers, fin }).await
    }

    pub(in crate::server) async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        let (id, fin) = (self.id, false);
        self.send_frame(Frame::Data { id, bytes, fin }).await
    }

    /// Nothing more will be said.
    pub(in crate::server) async fn finish(&self) {
        let (id, bytes, fin) = (self.id, Bytes::new(), true);
        let _ = self.send_frame(Frame::Data { id, bytes, fin }).await;
    }

    /// Nothing more will be sent or received.
    pub(in crate::server) async fn reset(&self) {
        let _ = self.send_frame(reset(self.id, ResetStatus::Cancel)).await;
    }

    async fn send_frame(&self, frame: Frame) -> Result<(), Gone> {
        self.queue.send(frame).await.map_err(|_| Gone)
    }
}

pub(super) fn reset(id: u32, status: ResetStatus) -> Frame {
    let status = status as u32;
    Frame::Reset { id, status }
}

/// A connection and the tasks that move it along. It ends with this value.
#[derive(Debug)]
pub(in crate::server) struct Connection {
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    queue: mpsc::Sender<Frame>,
    opened: mpsc::Sender<(u32, Inflow)>,
    next: u32,
    limits: Limits,
    /// The last stream that the other side opened.
    last: Arc<AtomicU32>,
    pub(in crate::server) link: Arc<Link>,
}

impl Connection {
    /// Speaks over `io`. The streams that the other side opens come out of the receiver; each must
    /// be accepted or reset.
    pub(in crate::server) fn start<I>(
        io: I,
        role: Role,
        limits: Limits,
    ) -> (Connection, mpsc::Receiver<Stream>)
    where
        I: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, write) = tokio::io::split(io);
        let link = Arc::new(Link::default());
        let last = Arc::new(AtomicU32::new(0));
        let (queue, outgoing) = mpsc::channel(MAX_QUEUE);
        let (new, streams) = mpsc::channel(1);
        let (opened, registrations) = mpsc::channel(1);
        let reader = Reader {
            io: read,
            come: BytesMut::new(),
            decoder: Decoder::new(),
            role,
            limits,
            inflows: HashMap::new(),
            used: 0,
            last: Arc::clone(&last),
            queue: queue.clone(),
            new,
            registrations,
            link: Arc::clone(&link),
        };
        let writer = Writer {
            io: write,
            encoder: Encoder::new(),
            outgoing,
            ping: if role == Role::Client { 1 } else { 2 },
            link: Arc::clone(&link),
        };
        let connection = Connection {
            reader: tokio::spawn(reader.run()),
            writer: tokio::spawn(writer.run()),
            queue,
            opened,
            next: if role == Role::Client { 1 } else { 2 },
            limits,
            last,
            link,
        };
        (connection, streams)
    }

    /// Opens a stream and waits until the other side accepts it.
    pub(in crate::server) async fn open(&mut self, headers: Headers) -> Result<Stream, Gone> {
        let id = self.next;
        self.next += 2;
        let (input, pipe) = tokio::io::duplex(self.limits.buffer);
        let (accepted, acceptance) = oneshot::channel();
        let reset = CancellationToken::new();
        let life = Arc::new(());
        let inflow = Inflow {
            pipe: Some(pipe),
            used: 0,
            reset: reset.clone(),
            life: Arc::downgrade(&life),
            accepted: Some(accepted),
        };
        self.opened.send((id, inflow)).await.map_err(|_| Gone)?;
        let output = Outflow {
            id,
            queue: self.queue.clone(),
            _life: life,
        };
        let syn = Frame::SynStream {
            id,
            headers: headers.clone(),
            fin: false,
        };
        output.send_frame(syn).await?;
        let accepted = timeout(CREATION, acceptance).await;
        accepted.map_err(|_| Gone)?.map_err(|_| Gone)?;
        Ok(Stream {
            id,
            headers,
            input,
            output,
            reset,
        })
    }

    /// Says goodbye when all that was said before has been taken, which may last as long as
    /// something moves; then waits a little for the other side to do so. `unfinished` are streams
    /// on which nothing was said.
    pub(in crate::server) async fn close(mut self, unfinished: &[Outflow], idle: Duration) {
        let last = self.last.load(Ordering::Relaxed);
        let taken = async {
            for stream in unfinished {
                stream.reset().await;
            }
            let _ = self.queue.send(Frame::GoAway { last }).await;
            let _ = (&mut self.writer).await;
        };
        self.link.part(taken, idle).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}
