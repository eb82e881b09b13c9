//! The way in of a connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::connection::{Limits, Outflow, Role, Stream, reset};
use super::frame::{Decoder, Frame, FrameError, ResetStatus};
use super::header::Headers;
use crate::server::stream::session::{Gone, Link};

/// How much is read at once.
const BURST: usize = 64 * 1024;

/// A window is granted again when so much of it is used.
const GRANT: u32 = 32 * 1024;

/// The way in of a stream.
#[derive(Debug)]
pub(super) struct Inflow {
    /// `None` when the stream is not read any more.
    pub(super) pipe: Option<DuplexStream>,
    /// Bytes for which no window has been granted again.
    pub(super) used: u32,
    pub(super) reset: CancellationToken,
    /// Whether the outgoing half of the stream is still held.
    pub(super) life: Weak<()>,
    /// Waits for the other side to accept it.
    pub(super) accepted: Option<oneshot::Sender<()>>,
}

/// Hands on what the other side says.
pub(super) struct Reader<I> {
    pub(super) io: ReadHalf<I>,
    pub(super) come: BytesMut,
    pub(super) decoder: Decoder,
    pub(super) role: Role,
    pub(super) limits: Limits,
    pub(super) inflows: HashMap<u32, Inflow>,
    /// As in [`Inflow`], for the connection.
    pub(super) used: u32,
    pub(super) last: Arc<AtomicU32>,
    pub(super) queue: mpsc::Sender<Frame>,
    pub(super) new: mpsc::Sender<Stream>,
    pub(super) registrations: mpsc::Receiver<(u32, Inflow)>,
    pub(super) link: Arc<Link>,
}

impl<I: AsyncRead> Reader<I> {
    /// Hands on what the other side says until it is gone.
    pub(super) async fn run(mut self) {
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
                    tracing::debug!(%error, "SPDY protocol violation by client");
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
                self.data(id, &bytes).await;
                self.ended(id, fin);
            }
            Frame::Headers { id, fin } => self.ended(id, fin),
            Frame::Reset { id, .. } => {
                if let Some(inflow) = self.inflows.remove(&id) {
                    inflow.reset.cancel();
                }
            }
            Frame::Ping(id) if is_answer(id) => {}
            Frame::Ping(id) => {
                let _ = self.say(Frame::Ping(id)).await;
            }
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
            // The connection accepts no more streams.
            self.inflows.remove(&id);
            return self.say(reset(id, ResetStatus::RefusedStream)).await;
        }
        Ok(())
    }

    /// Waits until there is room: what is not taken is not read.
    async fn data(&mut self, id: u32, bytes: &[u8]) {
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
        if self.role == Role::Client {
            // Runtimes keep no windows. If one closes while a grant is in flight to it, the
            // kernel discards what it sent last, the status of the process among it.
            return;
        }
        for (id, delta) in grants.into_iter().flatten() {
            // A peer that reads nothing any more may have sent data before that is still to be read.
            let _ = self.say(Frame::WindowUpdate { id, delta }).await;
        }
    }

    /// On a stream that has ended the other side sends no more, but it may still receive.
    fn ended(&mut self, id: u32, fin: bool) {
        if fin && let Some(inflow) = self.inflows.get_mut(&id) {
            inflow.pipe = None;
        }
    }
}
