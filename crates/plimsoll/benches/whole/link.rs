//! Connections of the administrator that cost the client little: no parsing, no copies.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::ConfigExt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::configuration;

/// The address and the user of a connection.
pub(crate) struct Cluster {
    address: SocketAddr,
    config: ClientConfig,
}

impl Cluster {
    /// With the credentials in a file that is about to be written.
    pub(crate) async fn of(kubeconfig: &Path) -> Result<Cluster> {
        let config = configuration(kubeconfig).await?;
        let address = config.cluster_url.authority();
        let address = address.map_or("", |address| address.as_str()).parse();
        let tls = config.rustls_client_config()?;
        Ok(Cluster {
            address: address.context("the kubeconfig's server has no address")?,
            config: tls,
        })
    }

    async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        let mut config = self.config.clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let tcp = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        tcp.set_nodelay(true).expect("no delay");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, tcp)
            .await;
        stream.expect("a handshake")
    }

    /// One request at a time.
    pub(crate) async fn own(&self) -> Own {
        let io = TokioIo::new(self.connect(b"http/1.1").await);
        let (sender, connection) = http1::handshake(io).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        Own(sender)
    }

    /// Many requests at once, with the windows that Go's client gives.
    pub(crate) async fn shared(&self) -> Shared {
        let io = TokioIo::new(self.connect(b"h2").await);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_connection_window_size(64 * 1024 * 1024)
            .initial_stream_window_size(4 * 1024 * 1024)
            .handshake(io)
            .await
            .expect("HTTP/2");
        tokio::spawn(connection);
        Shared(sender)
    }
}

pub(crate) struct Own(http1::SendRequest<Full<Bytes>>);

#[derive(Clone)]
pub(crate) struct Shared(http2::SendRequest<Full<Bytes>>);

impl Own {
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.0.ready().await.expect("an open connection");
        self.0.send_request(request).await.expect("an answer")
    }
}

impl Shared {
    pub(crate) async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Response<Incoming> {
        let uri = format!("https://127.0.0.1{}", request.uri());
        *request.uri_mut() = uri.parse().expect("an address");
        self.0.ready().await.expect("an open connection");
        self.0.send_request(request).await.expect("an answer")
    }
}

/// A request with a body of JSON, or none.
pub(crate) fn request(
    method: &str,
    path: &str,
    media_type: &str,
    body: String,
) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1")
        .header("user-agent", "bench/1")
        .header("content-type", media_type)
        .body(Full::new(body.into()))
        .expect("a request")
}
