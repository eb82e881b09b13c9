//! Two connections made one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

/// How much of one direction is under way at a time.
pub const BUFFER_BYTES: usize = 32 * 1024;

/// Counts the bytes moved, so that an idle connection can be given up.
#[derive(Debug, Default)]
pub struct Activity(AtomicU64);

impl Activity {
    /// Something has moved.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends when nothing has moved for at least `idle`, and before twice as long.
    pub async fn stall(&self, idle: Duration) {
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

/// Timeouts of two spliced connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// While nothing moves either way.
    pub idle: Duration,
    /// While one side does not read the last bytes.
    pub closing: Duration,
}

/// Copies both ways until either side ends its stream, then closes both. As upstream, a side that
/// has finished sending has finished altogether: the protocols used here close in-band.
pub async fn splice(
    one: impl AsyncRead + AsyncWrite,
    other: impl AsyncRead + AsyncWrite,
    timeouts: Timeouts,
) {
    let (mut one_read, mut one_write) = tokio::io::split(one);
    let (mut other_read, mut other_write) = tokio::io::split(other);
    let activity = Activity::default();
    tokio::select! {
        () = copy(&mut one_read, &mut other_write, &activity) => {}
        () = copy(&mut other_read, &mut one_write, &activity) => {}
        () = activity.stall(timeouts.idle) => {}
    }
    let farewell = async { tokio::join!(one_write.shutdown(), other_write.shutdown()) };
    // A side that does not read the last bytes is cut off.
    let _ = timeout(timeouts.closing, farewell).await;
}

/// Copies until `from` ends. When `to` no longer reads, its last bytes may still be in flight in
/// the other direction, so that is not the end.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_listening = true;
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if is_listening {
            let written = to.write_all(&buffer[..count]).await;
            is_listening = written.is_ok() && to.flush().await.is_ok();
        }
        activity.note();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        idle: Duration::from_secs(3600),
        closing: Duration::from_secs(5),
    };

    #[tokio::test(start_paused = true)]
    async fn stalls_only_without_traffic() {
        let activity = Activity::default();
        let start = Instant::now();
        let moving = async {
            for _ in 0..5 {
                sleep(Duration::from_secs(8)).await;
                activity.note();
            }
        };
        tokio::join!(moving, activity.stall(Duration::from_secs(10)));
        assert!(start.elapsed() >= Duration::from_secs(50));
        assert!(start.elapsed() <= Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_flow_both_ways_and_a_close_ends_both() {
        let (mut client, client_side) = tokio::io::duplex(16);
        let (mut node, node_side) = tokio::io::duplex(16);
        let spliced = tokio::spawn(splice(client_side, node_side, TIMEOUTS));
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

    #[tokio::test(start_paused = true)]
    async fn last_bytes_of_half_closed_side_are_delivered() {
        let (mut client, near) = tokio::io::duplex(8);
        // Over two pipes, so that one direction can end without the other.
        let ((said, mut runtime), (heard, ear)) = (tokio::io::duplex(8), tokio::io::duplex(8));
        drop(ear);
        let spliced = tokio::spawn(splice(near, tokio::io::join(said, heard), TIMEOUTS));
        client.write_all(b"more input").await.unwrap();
        runtime.write_all(b"the command has ended").await.unwrap();
        drop(runtime);
        let mut last = String::new();
        client.read_to_string(&mut last).await.unwrap();
        assert_eq!(last, "the command has ended");
        spliced.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn idle_stream_is_closed() {
        let (_client, client_side) = tokio::io::duplex(16);
        let (_node, node_side) = tokio::io::duplex(16);
        splice(client_side, node_side, TIMEOUTS).await;
    }
}
