//! A node agent that echoes: enough of a kubelet to test the API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_apiserver::auth::authority::Authority;
use plimsoll_apiserver::node_proxy::NodeConnector;
use plimsoll_core::object::timestamp::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

type Body = BoxBody<Bytes, std::io::Error>;

/// What a node has received.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Streams that the API server has closed.
    pub(crate) ended: AtomicUsize,
    /// Bytes of endless logs that were read from the node.
    pub(crate) sent: AtomicUsize,
}

/// A node on this machine and a connector with its CA.
pub(crate) struct Node {
    pub(crate) connector: NodeConnector,
    pub(crate) object: Value,
    pub(crate) seen: Arc<Seen>,
    _directory: tempfile::TempDir,
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_secs(i64::try_from(since.unwrap().as_secs()).unwrap())
}

pub(crate) fn authority() -> (Authority, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Authority::open(directory.path(), now()).unwrap(), directory)
}

pub(crate) fn connector(authority: &Authority) -> NodeConnector {
    let client = authority.node_client("kube-apiserver-kubelet-client", &["system:masters"], now());
    NodeConnector::new(&client.unwrap(), &authority.kubelet_serving_ca_pem())
        .unwrap()
        .allowing_local_addresses()
}

pub(crate) fn object(port: u16) -> Value {
    json!({
        "metadata": {"name": "n1"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    })
}

pub(crate) fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "app"}]},
    })
}

impl Node {
    pub(crate) async fn start() -> Node {
        let (authority, directory) = authority();
        let connector = connector(&authority);
        let seen = Arc::new(Seen::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let object = object(listener.local_addr().unwrap().port());
        let acceptor = acceptor(&authority);
        let state = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else {
                        return;
                    };
                    let service = service_fn(|request| answer(request, Arc::clone(&state)));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(tls), service);
                    let _ = connection.with_upgrades().await;
                });
            }
        });
        Node {
            connector,
            object,
            seen,
            _directory: directory,
        }
    }

    /// Waits until the API server has ended that many streams.
    pub(crate) async fn wait_for_ends(&self, count: usize) {
        wait_until(|| self.seen.ended.load(Ordering::SeqCst) >= count).await;
    }
}

async fn wait_until(condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), poll).await;
    waited.expect("the condition holds in time");
}

/// Has a certificate of the CA and requires one.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    let own = authority
        .kubelet_serving("n1", &["127.0.0.1".to_owned()], now())
        .unwrap();
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authority.trusted_by_nodes_pem().as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let certificates = CertificateDer::pem_slice_iter(own.certificate_pem.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Seen>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let asked = request.uri().to_string();
    let path = request.uri().path().to_owned();
    let area = path.split('/').nth(1).unwrap_or_default();
    Ok(match area {
        "containerLogs" => logs(&asked, &seen),
        "exec" | "attach" if is(&request, header::UPGRADE, "websocket") => {
            echo_channels(request, seen)
        }
        "exec" | "attach" | "portForward" => echo_bytes(request, seen),
        "stats" => text(200, json!({"node": {"nodeName": "n1"}}).to_string()),
        "echo" => {
            let headers = request.headers();
            let head = format!(
                "{} {asked} host={:?} auth={:?} uri={:?}\n",
                request.method(),
                headers.get(header::HOST),
                headers.get(header::AUTHORIZATION),
                headers.get("x-forwarded-uri"),
            );
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut response = text(200, [head.as_bytes(), &body].concat());
            let headers = response.headers_mut();
            headers.insert("access-control-allow-origin", "*".parse().unwrap());
            headers.insert(header::LOCATION, "/elsewhere".parse().unwrap());
            headers.insert(header::CONNECTION, "close".parse().unwrap());
            response
        }
        _ => text(404, "404 page not found\n"),
    })
}

fn is(request: &Request<Incoming>, name: header::HeaderName, value: &str) -> bool {
    let found = request.headers().get(name).and_then(|v| v.to_str().ok());
    found.is_some_and(|found| found.eq_ignore_ascii_case(value))
}

/// The request; if followed, a line again and again until the reader is gone.
fn logs(asked: &str, seen: &Arc<Seen>) -> Response<Body> {
    if asked.contains("tailLines=404") {
        return text(404, "pod does not exist");
    }
    if asked.contains("tailLines=400") {
        return text(400, "container \"app\" in pod \"web\" is waiting to start");
    }
    if !asked.contains("follow=true") {
        return text(200, format!("{asked}\n"));
    }
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        let line = Bytes::from(vec![b'x'; 64 * 1024]);
        while sender.send(line.clone()).await.is_ok() {
            seen.sent.fetch_add(line.len(), Ordering::SeqCst);
        }
        seen.ended.fetch_add(1, Ordering::SeqCst);
    });
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let line = receiver.recv().await?;
        Some((Ok(Frame::data(line)), receiver))
    });
    Response::new(BodyExt::boxed(StreamBody::new(frames)))
}

fn switching(upgrade: &'static str) -> Response<Body> {
    let mut response = text(101, "");
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, "Upgrade".parse().unwrap());
    headers.insert(header::UPGRADE, upgrade.parse().unwrap());
    response
}

/// Like a kubelet over a WebSocket: data on channel 0 is echoed on channel 1; the end of the
/// input ends the command.
fn echo_channels(mut request: Request<Incoming>, seen: Arc<Seen>) -> Response<Body> {
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let offered: Vec<&str> = offered
        .iter()
        .flat_map(|list| list.to_str().unwrap().split(", "))
        .collect();
    let known = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
    let Some(protocol) = known.into_iter().find(|known| offered.contains(known)) else {
        return text(403, "no such protocol");
    };
    let key = &request.headers()[header::SEC_WEBSOCKET_KEY];
    let accept = derive_accept_key(key.as_bytes());
    let asked = request.uri().to_string();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let io = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        let hello = [b"\x01", asked.as_bytes()].concat();
        let _ = socket.send(Message::Binary(hello.into())).await;
        while let Some(Ok(message)) = socket.next().await {
            let Message::Binary(bytes) = message else {
                continue;
            };
            if bytes[..] == [255, 0] {
                let done = b"\x03{\"metadata\":{},\"status\":\"Success\"}";
                let _ = socket.send(Message::Binary(done.to_vec().into())).await;
                let _ = socket.close(None).await;
                continue;
            }
            let echo = [b"\x01", &bytes[1..]].concat();
            if socket.send(Message::Binary(echo.into())).await.is_err() {
                break;
            }
        }
        seen.ended.fetch_add(1, Ordering::SeqCst);
    });
    let mut response = switching("websocket");
    let headers = response.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().unwrap());
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol.parse().unwrap());
    response
}

/// Like a kubelet over SPDY, without interpreting frames. `quit` ends it.
fn echo_bytes(mut request: Request<Incoming>, seen: Arc<Seen>) -> Response<Body> {
    if !is(&request, header::UPGRADE, "SPDY/3.1") {
        return text(400, "you must specify at least 1 of stdin, stdout, stderr");
    }
    let version = request.headers().get("x-stream-protocol-version").cloned();
    let asked = format!("{} {}\n", request.method(), request.uri());
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut io = TokioIo::new(upgraded.await.unwrap());
        io.write_all(asked.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = io.read(&mut buffer).await {
            if &buffer[..count] == b"quit" || io.write_all(&buffer[..count]).await.is_err() {
                break;
            }
            let _ = io.flush().await;
        }
        let _ = io.shutdown().await;
        seen.ended.fetch_add(1, Ordering::SeqCst);
    });
    let mut response = switching("SPDY/3.1");
    if let Some(version) = version {
        response
            .headers_mut()
            .insert("x-stream-protocol-version", version);
    }
    response
}
