//! Connections that come in, until there are to be no more.

use std::borrow::Borrow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long the server waits after a failed accept before it tries again.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Takes connections until `stop` is done, never more than `max` at once. Then those that are there
/// have `grace` to end.
pub async fn accept<F, C>(
    listener: impl Borrow<TcpListener>,
    max: usize,
    stop: impl Future<Output = ()>,
    grace: Duration,
    serve: F,
) where
    F: Fn(TcpStream, SocketAddr) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(max));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.borrow().accept() => accepted,
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: others have to close first.
                tracing::warn!(%error, "failed to accept connection");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(%address, "too many connections, closed connection");
            continue;
        };
        // Small answers must not wait for more to come.
        let _ = socket.set_nodelay(true);
        let connection = serve(socket, address);
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        connections.abort_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::sync::CancellationToken;

    /// Greets and waits for a line. Returns its address, and how to stop it.
    async fn greeter(
        max: usize,
        grace: Duration,
    ) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let until = stop.clone();
        let serving = tokio::spawn(async move {
            let greet = |mut socket: TcpStream, _| async move {
                let _ = socket.write_all(b"!").await;
                let _ = socket.read_u8().await;
                let _ = socket.write_all(b".").await;
            };
            accept(listener, max, until.cancelled_owned(), grace, greet).await;
        });
        (address, stop, serving)
    }

    async fn greeted(address: SocketAddr) -> Option<TcpStream> {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.read_u8().await.ok().map(|_| socket)
    }

    #[tokio::test]
    async fn connections_above_the_limit_are_closed_until_another_ends() {
        let (address, _stop, _serving) = greeter(1, Duration::ZERO).await;
        let mut first = greeted(address).await.unwrap();
        assert!(greeted(address).await.is_none());
        first.write_all(b"x").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'.');
        let mut next = greeted(address).await;
        while next.is_none() {
            next = greeted(address).await;
        }
    }

    #[tokio::test]
    async fn open_requests_may_finish_within_the_grace_period() {
        let (address, stop, serving) = greeter(9, Duration::from_secs(60)).await;
        let mut first = greeted(address).await.unwrap();
        stop.cancel();
        first.write_all(b"x").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'.');
        serving.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());

        let (address, stop, serving) = greeter(9, Duration::ZERO).await;
        let mut silent = greeted(address).await.unwrap();
        stop.cancel();
        serving.await.unwrap();
        assert!(silent.read_u8().await.is_err());
    }
}
