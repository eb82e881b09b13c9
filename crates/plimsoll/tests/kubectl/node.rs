//! A node agent for commands that reach through to one: logs, commands, usage.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{self, HeaderName};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_apiserver::auth::authority::Authority;
use plimsoll_core::object::timestamp::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::session::Session;

/// An agent that answers kubelet requests, and its Node object. It ends when dropped.
pub(crate) struct Agent {
    pub(crate) name: String,
    _runtime: Runtime,
}

impl Agent {
    /// Starts an agent and makes its node known, with one running pod `p` on it. `None` if the
    /// cluster is not ours: another cluster's authority does not sign for this test.
    pub(crate) fn start(s: &Session) -> Option<Agent> {
        let certificates = s.target.certificates()?;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let now = Timestamp::from_secs(i64::try_from(now.as_secs()).unwrap());
        // Agents of several tests sign at once, and what they sign is no business of the server's.
        let own_pki = tempfile::tempdir().unwrap();
        for name in ["ca", "client-ca", "kubelet-serving-ca"] {
            for file in [format!("{name}.crt"), format!("{name}.key")] {
                std::fs::copy(certificates.join(&file), own_pki.path().join(&file)).unwrap();
            }
        }
        let authority = Authority::open(own_pki.path(), now).unwrap();
        let names = ["127.0.0.1".to_owned()];
        let own = authority.kubelet_serving("agent", &names, now).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = acceptor(&own.certificate_pem, &own.key_pem);
        let namespace = s.namespace.clone();
        runtime.spawn(serve(listener, acceptor, namespace));

        let name = s.unique("agent");
        s.create(&format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"
        ));
        let status = json!({
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "capacity": {"cpu": "4", "memory": "8Gi"},
            "allocatable": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        });
        s.set_status(&format!("node/{name}"), &status.to_string());
        s.create(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{nodeName: {name}, \
              containers: [{{name: a, image: x}}, {{name: b, image: x}}]}}}}"
        ));
        s.set_status("pod/p", "{\"phase\":\"Running\"}");
        Some(Agent {
            name,
            _runtime: runtime,
        })
    }
}

fn acceptor(certificate_pem: &str, key_pem: &str) -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(certificate_pem.as_bytes());
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, namespace: String) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, namespace) = (acceptor.clone(), namespace.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else {
                return;
            };
            let service = service_fn(|request| {
                let answer = answer(request, &namespace);
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.with_upgrades().await;
        });
    }
}

fn text(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = code;
    response
}

fn answer(request: Request<Incoming>, namespace: &str) -> Response<Full<Bytes>> {
    let asked = request.uri().to_string();
    match request.uri().path().split('/').nth(1).unwrap_or_default() {
        "containerLogs" => text(StatusCode::OK, format!("{asked}\n")),
        "exec" => echo(request),
        "stats" => text(StatusCode::OK, summary(namespace)),
        "healthz" => text(StatusCode::OK, "ok".to_owned()),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
    }
}

/// A quarter of a core and 64 MiB, of which the pod has half.
fn summary(namespace: &str) -> String {
    let usage = |cores: u64, memory: u64| {
        json!({
            "cpu": {"time": "2026-01-01T00:00:00Z", "usageNanoCores": cores, "usageCoreNanoSeconds": cores},
            "memory": {"time": "2026-01-01T00:00:00Z", "workingSetBytes": memory},
        })
    };
    let mut container = usage(125_000_000, 32 << 20);
    container["name"] = json!("a");
    let mut node = usage(250_000_000, 64 << 20);
    node["nodeName"] = json!("agent");
    let pod = json!({"podRef": {"name": "p", "namespace": namespace}, "containers": [container]});
    json!({"node": node, "pods": [pod]}).to_string()
}

/// A command over a WebSocket: prints the request, repeats its input, and ends with it. One
/// that is called `false` fails.
fn echo(mut request: Request<Incoming>) -> Response<Full<Bytes>> {
    let asked = request.uri().to_string();
    let upgraded = hyper::upgrade::on(&mut request);
    let protocol = "v5.channel.k8s.io";
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY);
    let Some(accept) = key.map(|key| derive_accept_key(key.as_bytes())) else {
        return text(StatusCode::BAD_REQUEST, "only WebSockets".to_owned());
    };
    tokio::spawn(async move {
        let io = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        let query = asked.split('?').nth(1).unwrap_or_default();
        let hello = format!("\u{1}{query}\n");
        let _ = socket
            .send(Message::Binary(hello.into_bytes().into()))
            .await;
        while query.contains("input=1")
            && let Some(Ok(message)) = socket.next().await
        {
            match message {
                Message::Binary(bytes) if bytes[..] == [255, 0] => break,
                Message::Binary(bytes) if bytes.len() > 1 => {
                    let echo = [b"\x01", &bytes[1..]].concat();
                    let _ = socket.send(Message::Binary(echo.into())).await;
                }
                _ => {}
            }
        }
        let end = match query.contains("command=false") {
            true => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": "command terminated with non-zero exit code",
                "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
            }),
            false => json!({"metadata": {}, "status": "Success"}),
        };
        let end = format!("\u{3}{end}");
        let _ = socket.send(Message::Binary(end.into_bytes().into())).await;
        let normal = CloseFrame {
            code: CloseCode::Normal,
            reason: Utf8Bytes::default(),
        };
        let _ = socket.close(Some(normal)).await;
    });
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, String::new());
    let mut set = |name: HeaderName, value: &str| {
        response.headers_mut().insert(name, value.parse().unwrap());
    };
    set(header::CONNECTION, "Upgrade");
    set(header::UPGRADE, "websocket");
    set(header::SEC_WEBSOCKET_ACCEPT, &accept);
    set(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    response
}
