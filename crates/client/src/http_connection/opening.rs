//! The first bytes of a connection.
//!
//! By the first 24 bytes, the length of HTTP/2's preface, the HTTP library decides which version a
//! client speaks, and it waits for them without a limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of HTTP/2's preface.
const DECISIVE: usize = 24;

/// How many of the first bytes have arrived; clones count for the same connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening(Arc<AtomicUsize>);

impl Opening {
    /// Whether the client has begun to speak HTTP.
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= DECISIVE
    }

    /// Ends it: a request has arrived, however short.
    pub(super) fn end(&self) {
        self.0.store(DECISIVE, Ordering::Relaxed);
    }

    /// The stream, counting what is read from it.
    pub(super) fn of<S>(&self, stream: S) -> Opened<S> {
        let opening = self.clone();
        Opened { stream, opening }
    }
}

/// A stream of which the first bytes are counted.
#[derive(Debug)]
pub(super) struct Opened<S> {
    stream: S,
    opening: Opening,
}

impl<S: AsyncRead + Unpin> AsyncRead for Opened<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if !self.opening.is_over() {
            let read = buffer.filled().len() - before;
            self.opening.0.fetch_add(read, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opened<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
