//! Two connections made one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::connector::Timeouts;

/// How much of one direction is under way at a time.
pub(super) const BUFFER_BYTES: usize = 32 * 1024;

/// Counts what has moved, so that a stream on which nothing moves can be given up.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU64);

impl Activity {
    pub(super) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends when nothing has moved for at least `idle`, and before twice as long.
    pub(super) async fn stall(&self, idle: Duration) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            sleep(idle).await;
            let now = self.0.load(Ordering::Relaxed);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}

/// Copies both ways until either side is done, then closes both. As upstream, a side that has
/// finished sending has finished altogether: the protocols spoken here close within themselves.
pub(super) async fn splice(
    one: impl AsyncRead + AsyncWrite,
    other: impl AsyncRead + AsyncWrite,
    timeouts: &Timeouts,
) {
    let (mut one_read, mut one_write) = tokio::io::split(one);
    let (mut other_read, mut other_write) = tokio::io::split(other);
    let activity = Activity::default();
    tokio::select! {
        _ = copy(&mut one_read, &mut other_write, &activity) => {}
        _ = copy(&mut other_read, &mut one_write, &activity) => {}
        () = activity.stall(timeouts.idle) => {}
    }
    let farewell = async { tokio::join!(one_write.shutdown(), other_write.shutdown()) };
    // Whoever does not take the last words is cut off.
    let _ = timeout(timeouts.closing, farewell).await;
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
        activity.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_go_both_ways_and_an_end_ends_both() {
        let (client, client_side) = tokio::io::duplex(16);
        let (node, node_side) = tokio::io::duplex(16);
        let spliced =
            tokio::spawn(async move { splice(client_side, node_side, &Timeouts::default()).await });
        let (mut client, mut node) = (client, node);
        client.write_all(b"to the node").await.unwrap();
        let mut read = [0; 11];
        node.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"to the node");
        node.write_all(b"to you").await.unwrap();
        drop(node);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"to you");
        spliced.await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_on_which_nothing_moves_is_given_up() {
        let (_client, client_side) = tokio::io::duplex(16);
        let (_node, node_side) = tokio::io::duplex(16);
        let impatient = Timeouts {
            idle: Duration::from_millis(10),
            ..Timeouts::default()
        };
        splice(client_side, node_side, &impatient).await;
    }
}
