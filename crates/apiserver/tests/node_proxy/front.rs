//! The API server's side: passes requests to the connector, as its router would.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_apiserver::body::Body;
use plimsoll_apiserver::node_proxy::{NodeConnector, ProxyTarget};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, handshake::client};

use super::node::{Node, pod};

/// A server with one pod and one node.
#[derive(Clone, Copy)]
pub(crate) struct Front(SocketAddr);

impl Front {
    pub(crate) async fn of(node: &Node) -> Front {
        Front::start(node.connector.clone(), pod(), node.object.clone()).await
    }

    pub(crate) async fn start(connector: NodeConnector, pod: Value, node: Value) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new((connector, pod, node));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(request, Arc::clone(&state)));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(tcp), service);
                    let _ = connection.with_upgrades().await;
                });
            }
        });
        Front(address)
    }

    /// A connection that ends with the returned value.
    pub(crate) async fn connect(self) -> SendRequest<Full<Bytes>> {
        let tcp = TcpStream::connect(self.0).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tcp))
            .await
            .unwrap();
        tokio::spawn(async move { connection.with_upgrades().await });
        sender
    }

    pub(crate) async fn send(self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let mut sender = self.connect().await;
        let answer = timeout(Duration::from_secs(20), sender.send_request(request));
        answer.await.expect("an answer in time").unwrap()
    }

    /// The complete response to a GET.
    pub(crate) async fn get(self, path: &str) -> (u16, String) {
        read(self.send(get(path)).await).await
    }

    /// A WebSocket that offers these subprotocols, and the one that was chosen.
    pub(crate) async fn websocket(
        self,
        path: &str,
        protocols: &str,
    ) -> Result<(WebSocketStream<TcpStream>, String), Error> {
        let mut request = format!("ws://{}{path}", self.0).into_client_request()?;
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
        let tcp = TcpStream::connect(self.0).await?;
        let (socket, response): (_, client::Response) =
            tokio_tungstenite::client_async(request, tcp).await?;
        let chosen = &response.headers()["sec-websocket-protocol"];
        Ok((socket, chosen.to_str().unwrap().to_owned()))
    }
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(path).header("host", "localhost");
    request.body(Full::default()).unwrap()
}

pub(crate) async fn read(response: Response<Incoming>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<(NodeConnector, Value, Value)>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let (connector, pod, node) = &*state;
    let node = Some(node).filter(|node| !node.is_null());
    let path = request.uri().path().to_owned();
    let request = request.map(|body| body.map_err(std::io::Error::other).boxed_unsync());
    Ok(match path.as_str() {
        "/log" => connector.log(request, pod, node).await,
        "/exec" => connector.exec(request, pod, node).await,
        "/attach" => connector.attach(request, pod, node).await,
        "/portforward" => connector.port_forward(request, pod, node).await,
        _ => {
            let rest = path.strip_prefix("/nodes/").expect("a known path");
            let (target, rest) = rest.split_once("/proxy").expect("a known path");
            let target = ProxyTarget::parse(target, "node").unwrap();
            let node = node.expect("a node to proxy to");
            connector.node_proxy(request, node, &target, rest).await
        }
    })
}
