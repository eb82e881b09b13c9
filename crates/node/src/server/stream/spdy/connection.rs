//! Many streams over one connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::frame::{Decoder, Encoder, Frame, FrameError, ResetStatus};
use super::header::Headers;
use crate::server::stream::session::{Gone, Link};

/// Frames that wait for the other side to read.
const MAX_QUEUE: usize = 16;

/// How much is written at once.
const BURST: usize = 64 * 1024;

/// A window is granted again when so much of it is used.
const GRANT: u32 = 32 * 1024;

/// How often the other side is asked whether it is there. A client that is gone while its input is
/// stuck would else not be missed.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// How long the other side may take to accept a stream, or to say goodbye.
const CREATION: Duration = Duration::from_secs(30);
const FAREWELL: Duration = Duration::from_secs(5);

/// Who opens which streams: clients odd ones, servers even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Role {
    Client,
    Server,
}

/// How much the other side may ask for.
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
    /// What is said to it.
    pub(in crate::server) output: Outflow,
    /// Cancelled when the other side wants no more of it.
    pub(in crate::server) reset: CancellationToken,
}

/// The way out of a stream.
#[derive(Clone, Debug)]
pub(in crate::server) struct Outflow {
    id: u32,
    queue: mpsc::Sender<Frame>,
    /// While it is held, the stream counts as open.
    _life: Arc<()>,
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

    /// Nothing more will be said or heard.
    pub(in crate::server) async fn reset(&self) {
        let _ = self.send_frame(reset(self.id, ResetStatus::Cancel)).await;
    }

    async fn send_frame(&self, frame: Frame) -> Result<(), Gone> {
        self.queue.send(frame).await.map_err(|_| Gone)
    }
}

fn reset(id: u32, status: ResetStatus) -> Frame {
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

/// The way in of a stream.
#[derive(Debug)]
struct Inflow {
    /// `None` when nobody listens any more.
    pipe: Option<DuplexStream>,
    /// Bytes for which no window has been granted again.
    used: u32,
    reset: CancellationToken,
    /// Whether anybody still holds the way out.
    life: Weak<()>,
    /// Waits for the other side to accept it.
    accepted: Option<oneshot::Sender<()>>,
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

    /// Says goodbye and waits a little for the other side to do so.
    pub(in crate::server) async fn close(mut self) {
        let last = self.last.load(Ordering::Relaxed);
        let farewell = async {
            let _ = self.queue.send(Frame::GoAway { last }).await;
            self.link.gone.cancelled().await;
            let _ = (&mut self.writer).await;
        };
        let _ = timeout(FAREWELL, farewell).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}

struct Writer<I> {
    io: WriteHalf<I>,
    encoder: Encoder,
    outgoing: mpsc::Receiver<Frame>,
    ping: u32,
    link: Arc<Link>,
}

impl<I: AsyncWrite> Writer<I> {
    /// Writes until there is nothing more to say or nobody to say it to.
    async fn run(mut self) {
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        let mut burst = BytesMut::new();
        loop {
            let next = tokio::select! {
                next = self.outgoing.recv() => next,
                _ = heartbeat.tick() => Some(Frame::Ping(self.ping)),
            };
            let Some(mut frame) = next else {
                return;
            };
            let is_last = loop {
                if frame != Frame::Ping(self.ping) {
                    self.link.activity.note();
                }
                let is_last = matches!(frame, Frame::GoAway { .. });
                if let Err(error) = self.encoder.encode(&frame, &mut burst) {
                    tracing::debug!(%error, "a frame could not be written");
                    self.link.gone.cancel();
                    return;
                }
                if is_last || burst.len() >= BURST {
                    break is_last;
                }
                match self.outgoing.try_recv() {
                    Ok(next) => frame = next,
                    Err(_) => break false,
                }
            };
            let written = async {
                self.io.write_all(&burst).await?;
                self.io.flush().await
            };
            if written.await.is_err() {
                self.link.gone.cancel();
                return;
            }
            burst.clear();
            if is_last {
                let _ = self.io.shutdown().await;
                return;
            }
        }
    }
}

struct Reader<I> {
    io: ReadHalf<I>,
    come: BytesMut,
    decoder: Decoder,
    role: Role,
    limits: Limits,
    inflows: HashMap<u32, Inflow>,
    /// As in [`Inflow`], for the connection.
    used: u32,
    last: Arc<AtomicU32>,
    queue: mpsc::Sender<Frame>,
    new: mpsc::Sender<Stream>,
    registrations: mpsc::Receiver<(u32, Inflow)>,
    link: Arc<Link>,
}

impl<I: AsyncRead> Reader<I> {
    /// Hands on what the other side says until it is gone.
    async fn run(mut self) {
        let link = Arc::clone(&self.link);
        loop {
            match self.next().await {
                Ok(Some(frame)) => {
                    if self.take(frame).await.is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "the other side does not keep to the protocol");
                    break;
                }
            }
        }
        link.gone.cancel();
    }

    /// The next frame; `None` when the other side is gone.
    async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.come)? {
                // An answer to an opening comes after it was made known here.
                while let Ok((id, inflow)) = self.registrations.try_recv() {
                    self.inflows.insert(id, inflow);
                }
                return Ok(Some(frame));
            }
            self.come.reserve(BURST);
            tokio::select! {
                read = self.io.read_buf(&mut self.come) => match read {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return Ok(None),
                },
                Some((id, inflow)) = self.registrations.recv() => {
                    self.inflows.insert(id, inflow);
                }
            }
        }
    }

    /// Takes one frame. [`Gone`] ends the connection.
    async fn take(&mut self, frame: Frame) -> Result<(), Gone> {
        let is_answer = |id: u32| (id % 2 == 1) == (self.role == Role::Client);
        if !matches!(frame, Frame::Ping(id) if is_answer(id)) {
            self.link.activity.note();
        }
        match frame {
            Frame::SynStream { id, headers, fin } => self.opened(id, headers, fin).await?,
            Frame::SynReply { id, fin, .. } => {
                if let Some(inflow) = self.inflows.get_mut(&id)
                    && let Some(accepted) = inflow.accepted.take()
                {
                    let _ = accepted.send(());
                }
                self.ended(id, fin);
            }
            Frame::Data { id, bytes, fin } => {
                self.data(id, &bytes).await?;
                self.ended(id, fin);
            }
            Frame::Headers { id, fin } => self.ended(id, fin),
            Frame::Reset { id, .. } => {
                if let Some(inflow) = self.inflows.remove(&id) {
                    inflow.reset.cancel();
                }
            }
            Frame::Ping(id) if is_answer(id) => {}
            Frame::Ping(id) => self.say(Frame::Ping(id)).await?,
            Frame::GoAway { .. } => return Err(Gone),
            Frame::WindowUpdate { .. } | Frame::Other => {}
        }
        Ok(())
    }

    async fn say(&mut self, frame: Frame) -> Result<(), Gone> {
        self.queue.send(frame).await.map_err(|_| Gone)
    }

    async fn opened(&mut self, id: u32, headers: Headers, fin: bool) -> Result<(), Gone> {
        let is_theirs = (id % 2 == 1) == (self.role == Role::Server);
        if !is_theirs || id <= self.last.load(Ordering::Relaxed) {
            return self.say(reset(id, ResetStatus::ProtocolError)).await;
        }
        self.last.store(id, Ordering::Relaxed);
        self.inflows
            .retain(|_, inflow| inflow.life.strong_count() > 0);
        if self.inflows.len() >= self.limits.streams {
            return self.say(reset(id, ResetStatus::RefusedStream)).await;
        }
        let (input, pipe) = tokio::io::duplex(self.limits.buffer);
        let token = CancellationToken::new();
        let life = Arc::new(());
        let inflow = Inflow {
            pipe: (!fin).then_some(pipe),
            used: 0,
            reset: token.clone(),
            life: Arc::downgrade(&life),
            accepted: None,
        };
        self.inflows.insert(id, inflow);
        let stream = Stream {
            id,
            headers,
            input,
            output: Outflow {
                id,
                queue: self.queue.clone(),
                _life: life,
            },
            reset: token,
        };
        if self.new.send(stream).await.is_err() {
            // Nobody wants more streams.
            self.inflows.remove(&id);
            return self.say(reset(id, ResetStatus::RefusedStream)).await;
        }
        Ok(())
    }

    /// Waits until there is room: what is not taken is not read.
    async fn data(&mut self, id: u32, bytes: &[u8]) -> Result<(), Gone> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut grants = [None, None];
        self.used += length;
        if self.used >= GRANT {
            grants[0] = Some((0, std::mem::take(&mut self.used)));
        }
        if let Some(inflow) = self.inflows.get_mut(&id) {
            if let Some(pipe) = &mut inflow.pipe
                && pipe.write_all(bytes).await.is_err()
            {
                inflow.pipe = None;
            }
            inflow.used += length;
            if inflow.used >= GRANT {
                grants[1] = Some((id, std::mem::take(&mut inflow.used)));
            }
        }
        for (id, delta) in grants.into_iter().flatten() {
            self.say(Frame::WindowUpdate { id, delta }).await?;
        }
        Ok(())
    }

    /// On a stream that has ended the other side says no more, but it may still hear.
    fn ended(&mut self, id: u32, fin: bool) {
        if fin && let Some(inflow) = self.inflows.get_mut(&id) {
            inflow.pipe = None;
        }
    }
}
