//! The way out of a connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::frame::{Encoder, Frame};
use crate::server::stream::session::Link;

/// How much is written at once.
const BURST: usize = 64 * 1024;

/// How often the other side is pinged. A client that is gone while its input is
/// stuck would else not be missed.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Writes what is queued.
pub(super) struct Writer<I> {
    pub(super) io: WriteHalf<I>,
    pub(super) encoder: Encoder,
    pub(super) outgoing: mpsc::Receiver<Frame>,
    pub(super) ping: u32,
    pub(super) link: Arc<Link>,
}

impl<I: AsyncWrite> Writer<I> {
    /// Writes until the queue is closed or the connection fails.
    pub(super) async fn run(mut self) {
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
                    tracing::debug!(%error, "failed to write SPDY frame");
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
