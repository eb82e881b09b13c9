//! HTTP/1.1 and HTTP/2 on an accepted connection, with or without TLS.
//!
//! Every step that waits for a client has a limit: the TLS handshake, the headers of a request, an
//! idle connection. How many connections there are at once is up to [`accept`], how they end to the
//! caller.
//!
//! [`accept`]: crate::accept_loop::accept

mod opening;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use opening::Opening;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How often a silent HTTP/2 client is pinged, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(15);

/// Requests on one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 250;

/// Limits that differ between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a client may take to begin, and how long the headers of an HTTP/1.1 request may
    /// take, and the next request of a kept connection.
    pub header_timeout: Duration,
    /// The headers of one request together; `None` for the limit of the HTTP library.
    pub header_bytes: Option<u32>,
}

/// For small requests. Upstream allows 1 MiB of headers, which no client needs.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header_timeout: Duration::from_secs(90),
            header_bytes: Some(64 * 1024),
        }
    }
}

/// The TLS session of a connection; `None` if the client fails the handshake or is too slow.
pub async fn handshake(
    acceptor: &TlsAcceptor,
    socket: TcpStream,
    address: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    let accepted = tokio::time::timeout(HANDSHAKE, acceptor.accept(socket)).await;
    match accepted {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%address, "TLS handshake timed out");
            None
        }
    }
}

/// Answers the requests of a connection until the client ends it.
///
/// Once `drain` is done, no further request is read, and the connection ends when the open ones are
/// answered. Once `close` is done, it ends at once.
pub async fn serve<S, F, A, B>(
    stream: S,
    address: SocketAddr,
    limits: Limits,
    drain: impl Future<Output = ()>,
    close: impl Future<Output = ()>,
    answer: F,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let opening = Opening::default();
    let opened = opening.clone();
    let service = service_fn(move |request| {
        opened.end();
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let builder = builder(limits);
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(opening.of(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let (mut drain, mut close) = (std::pin::pin!(drain), std::pin::pin!(close));
    let mut begun = std::pin::pin!(tokio::time::sleep(limits.header_timeout));
    let (mut has_begun, mut is_draining) = (false, false);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = close.as_mut() => return,
            () = begun.as_mut(), if !has_begun => match opening.is_over() {
                true => has_begun = true,
                false => return,
            },
            () = drain.as_mut(), if !is_draining => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, error, "connection ended");
    }
}

fn builder(limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout);
    if let Some(bytes) = limits.header_bytes {
        http1.max_buf_size(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER);
    if let Some(bytes) = limits.header_bytes {
        http2.max_header_list_size(bytes);
    }
    builder
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use http_body_util::Full;
    use hyper::body::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    struct Connection {
        client: DuplexStream,
        drain: CancellationToken,
        close: CancellationToken,
        /// Cancelled to have requests answered.
        go: CancellationToken,
        serving: JoinHandle<()>,
    }

    fn connection() -> Connection {
        let (client, server) = duplex(1 << 20);
        let [drain, close, go] = std::array::from_fn(|_| CancellationToken::new());
        let (until, end, begin) = (drain.clone(), close.clone(), go.clone());
        let answer = move |_| {
            let begin = begin.clone();
            async move {
                begin.cancelled().await;
                Response::new(Full::new(Bytes::from("answer")))
            }
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let limits = Limits::default();
        let serving = tokio::spawn(async move {
            let (drain, close) = (until.cancelled(), end.cancelled());
            serve(server, address, limits, drain, close, answer).await;
        });
        Connection {
            client,
            drain,
            close,
            go,
            serving,
        }
    }

    impl Connection {
        async fn read_to_end(&mut self) -> String {
            let mut text = Vec::new();
            let _ = self.client.read_to_end(&mut text).await;
            String::from_utf8_lossy(&text).into_owned()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_clients_are_disconnected() {
        for sent in [
            &b""[..],
            b"PRI * HTTP/2.0",
            b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        ] {
            let mut connection = connection();
            let begun = tokio::time::Instant::now();
            connection.client.write_all(sent).await.unwrap();
            connection.read_to_end().await;
            let took = begun.elapsed();
            let limit = Limits::default().header_timeout;
            assert!(took >= limit && took < limit * 2, "{took:?}");
            connection.serving.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_answer_to_a_short_request_is_not_cut() {
        let mut connection = connection();
        connection
            .client
            .write_all(b"GET / HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        tokio::time::sleep(Limits::default().header_timeout * 3).await;
        connection.go.cancel();
        let text = connection.read_to_end().await;
        assert!(text.contains("answer"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn kept_connection_without_a_further_request_is_closed() {
        let mut connection = connection();
        connection.go.cancel();
        connection.client.write_all(REQUEST).await.unwrap();
        let text = connection.read_to_end().await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        connection.serving.await.unwrap();
    }

    #[tokio::test]
    async fn headers_beyond_the_limit_are_refused() {
        let mut connection = connection();
        let header = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}",
            "x".repeat(70_000)
        );
        connection
            .client
            .write_all(header.as_bytes())
            .await
            .unwrap();
        let text = connection.read_to_end().await;
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    }

    #[tokio::test]
    async fn open_request_is_answered_while_draining() {
        let mut connection = connection();
        connection.client.write_all(REQUEST).await.unwrap();
        tokio::task::yield_now().await;
        connection.drain.cancel();
        tokio::task::yield_now().await;
        assert!(!connection.serving.is_finished());
        connection.go.cancel();
        let text = connection.read_to_end().await;
        assert!(text.ends_with("answer"), "{text}");
        connection.serving.await.unwrap();
    }

    #[tokio::test]
    async fn idle_connection_ends_when_draining_and_any_when_closing() {
        let mut idle = connection();
        tokio::task::yield_now().await;
        idle.drain.cancel();
        assert_eq!(idle.read_to_end().await, "");
        let mut busy = connection();
        busy.client.write_all(REQUEST).await.unwrap();
        tokio::task::yield_now().await;
        busy.drain.cancel();
        busy.close.cancel();
        assert_eq!(busy.read_to_end().await, "");
        let _: () = busy.serving.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silent_tls_client_fails_the_handshake() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (socket, address) = listener.accept().await.unwrap();
        let config = rustls::ServerConfig::builder_with_provider(
            rustls::crypto::ring::default_provider().into(),
        );
        let config = config.with_safe_default_protocol_versions().unwrap();
        let resolver = rustls::server::ResolvesServerCertUsingSni::new();
        let config = config
            .with_no_client_auth()
            .with_cert_resolver(std::sync::Arc::new(resolver));
        let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
        tokio::select! {
            session = handshake(&acceptor, socket, address) => assert!(session.is_none()),
            () = pending() => {}
        }
        drop(client);
    }
}
