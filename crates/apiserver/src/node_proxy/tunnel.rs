//! SPDY in the messages of a WebSocket.
//!
//! Matches v1.36 apiserver/pkg/util/proxy/streamtunnel.go and
//! client-go/tools/portforward/tunneling_connection.go.

use bytes::BytesMut;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use plimsoll_client::splice::{Activity, BUFFER_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::connector::{NodeConnector, Stream, Timeouts};
use super::error_response::{ErrorResponse, bad_request, unexpected};
use super::headers::{contains, is_websocket, offered_protocols, upgrade_headers};
use super::websocket;
use crate::body::{Body, empty};

const TUNNEL_PREFIX: &str = "SPDY/3.1+";
const PROTOCOL_SUFFIX: &str = ".k8s.io";
const SPDY: &str = "SPDY/3.1";
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

type Io = TokioIo<Upgraded>;

/// The protocols to use over SPDY, if the client requests a tunnel.
pub(super) fn spdy_protocols(headers: &HeaderMap) -> Option<Vec<String>> {
    if !is_websocket(headers) {
        return None;
    }
    let protocols: Vec<String> = offered_protocols(headers)
        .filter(|protocol| protocol.ends_with(PROTOCOL_SUFFIX))
        .filter_map(|protocol| protocol.strip_prefix(TUNNEL_PREFIX))
        .map(str::to_owned)
        .collect();
    Some(protocols).filter(|protocols| !protocols.is_empty())
}

impl NodeConnector {
    /// Requests SPDY from the node, and unwraps the client's messages when it accepts.
    pub(super) async fn tunnel(
        &self,
        mut request: Request<Body>,
        stream: Box<dyn Stream>,
        path: &str,
        protocols: &[String],
    ) -> Result<Response<Body>, ErrorResponse> {
        let client = hyper::upgrade::on(&mut request);
        let to_node = spdy_request(request.headers(), protocols)?;
        let (mut response, connection) = self.upgrade(stream, to_node, path).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return self.not_upgraded(response).await;
        }
        let has = |name, word| {
            response
                .headers()
                .get(name)
                .is_some_and(|v| contains(v, word))
        };
        if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "spdy/3.1") {
            let message = "unable to upgrade: missing upgrade headers in response";
            return Err(unexpected(message));
        }
        let chosen = response.headers().get(STREAM_PROTOCOL);
        let chosen = chosen.and_then(|value| value.to_str().ok()).map(str::trim);
        let chosen = chosen.filter(|chosen| !chosen.is_empty());
        let chosen = chosen.map(|chosen| format!("{TUNNEL_PREFIX}{chosen}"));
        let answer = websocket::accepted(request.headers(), chosen.as_deref())?;

        let node = hyper::upgrade::on(&mut response);
        let timeouts = self.timeouts;
        tokio::spawn(async move {
            let (Ok(client), Ok(node)) = tokio::join!(client, node) else {
                return;
            };
            unwrap(
                websocket::serve(client).await,
                TokioIo::new(node),
                &timeouts,
            )
            .await;
            drop(connection);
        });
        Ok(answer)
    }
}

fn spdy_request(headers: &HeaderMap, protocols: &[String]) -> Result<Request<Body>, ErrorResponse> {
    let mut headers = upgrade_headers(headers, HeaderValue::from_static(SPDY));
    for name in [
        header::SEC_WEBSOCKET_PROTOCOL,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_VERSION,
        header::SEC_WEBSOCKET_EXTENSIONS,
        STREAM_PROTOCOL,
    ] {
        headers.remove(name);
    }
    for protocol in protocols {
        let protocol = HeaderValue::from_str(protocol)
            .map_err(|_| bad_request("the subprotocol is not a header value"))?;
        headers.append(STREAM_PROTOCOL, protocol);
    }
    let mut request = Request::new(empty());
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Copies bytes between messages and the node until either side is done, then closes both.
async fn unwrap(socket: WebSocketStream<Io>, node: Io, timeouts: &Timeouts) {
    let (mut sink, mut messages) = socket.split();
    let (mut node_read, mut node_write) = tokio::io::split(node);
    let activity = Activity::default();
    tokio::select! {
        () = to_node(&mut messages, &mut node_write, &activity) => {}
        () = to_client(&mut node_read, &mut sink, &activity) => {}
        () = activity.stall(timeouts.idle) => {}
    }
    let normal = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    let farewell = async {
        let close = async {
            let _ = sink.send(Message::Close(Some(normal))).await;
            let _ = sink.close().await;
        };
        tokio::join!(close, node_write.shutdown())
    };
    let _ = timeout(timeouts.closing, farewell).await;
}

/// Ends with a close message, the end of the connection, or a message that is not binary.
async fn to_node(
    messages: &mut SplitStream<WebSocketStream<Io>>,
    node: &mut WriteHalf<Io>,
    activity: &Activity,
) {
    while let Some(Ok(message)) = messages.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            // The library responds.
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Text(_) | Message::Close(_) | Message::Frame(_) => return,
        };
        if node.write_all(&bytes).await.is_err() || node.flush().await.is_err() {
            return;
        }
        activity.note();
    }
}

async fn to_client(
    node: &mut ReadHalf<Io>,
    sink: &mut SplitSink<WebSocketStream<Io>, Message>,
    activity: &Activity,
) {
    loop {
        let mut buffer = BytesMut::with_capacity(BUFFER_BYTES);
        let Ok(1..) = node.read_buf(&mut buffer).await else {
            return;
        };
        if sink.send(Message::Binary(buffer.freeze())).await.is_err() {
            return;
        }
        activity.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tunnels_are_unwrapped() {
        let headers = |upgrade, protocols| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static(upgrade));
            let protocols = HeaderValue::from_static(protocols);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocols);
            headers
        };
        let tunnel = headers(
            "websocket",
            "SPDY/3.1+portforward.k8s.io, v4.channel.k8s.io",
        );
        assert_eq!(
            spdy_protocols(&tunnel),
            Some(vec!["portforward.k8s.io".to_owned()])
        );
        let direct = headers("websocket", "v4.channel.k8s.io");
        assert_eq!(spdy_protocols(&direct), None);
        let spdy = headers("SPDY/3.1", "SPDY/3.1+portforward.k8s.io");
        assert_eq!(spdy_protocols(&spdy), None);
    }
}
