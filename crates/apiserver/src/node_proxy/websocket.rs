//! WebSockets that the API server terminates.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use plimsoll_client::splice::BUFFER_BYTES;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use super::error_response::{ErrorResponse, bad_request};
use super::headers::set_upgrade;
use crate::body::{Body, empty};
use crate::status::Status;

/// The protocol in which a client can close its input.
pub(super) const V5: &str = "v5.channel.k8s.io";

/// The channel for the [`Status`] of the command.
const ERROR_CHANNEL: u8 = 3;

/// A client's message must fit into memory whole; kubectl's are a few kilobytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Accepts a WebSocket; 400 if the handshake is invalid.
pub(super) fn accepted(
    headers: &HeaderMap,
    protocol: Option<&str>,
) -> Result<Response<Body>, ErrorResponse> {
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        let message = "not a websocket handshake: 'Sec-WebSocket-Key' header is missing";
        return Err(bad_request(message));
    };
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
        .expect("base64 is a header value");
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    set_upgrade(headers, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_str(protocol)
            .map_err(|_| bad_request("the subprotocol is not a header value"))?;
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

/// The WebSocket of a client whose upgrade was accepted.
pub(super) async fn serve(client: Upgraded) -> WebSocketStream<TokioIo<Upgraded>> {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_MESSAGE_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    WebSocketStream::from_raw_socket(TokioIo::new(client), Role::Server, Some(config)).await
}

/// Accepts a command over [`V5`] only to report why it failed. `output` is the channel on
/// which the client waits for the connection.
pub(super) fn fail(
    mut request: Request<Body>,
    output: u8,
    status: &Status,
    patience: Duration,
) -> Result<Response<Body>, ErrorResponse> {
    let client = hyper::upgrade::on(&mut request);
    let response = accepted(request.headers(), Some(V5))?;
    let messages = [
        on_channel(output, b""),
        on_channel(ERROR_CHANNEL, &bare(status)),
    ];
    tokio::spawn(async move {
        let Ok(client) = client.await else {
            return;
        };
        let mut socket = serve(client).await;
        // A client that does not read is not waited for.
        let _ = timeout(patience, send_status(&mut socket, messages)).await;
    });
    Ok(response)
}

async fn send_status(
    socket: &mut WebSocketStream<TokioIo<Upgraded>>,
    messages: [Message; 2],
) -> tungstenite::Result<()> {
    for message in messages {
        socket.send(message).await?;
    }
    // A client that does not get a success status treats the end as an error, and prints that.
    let farewell = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    socket.close(Some(farewell)).await?;
    while let Some(message) = socket.next().await {
        message?;
    }
    Ok(())
}

fn on_channel(channel: u8, text: &[u8]) -> Message {
    let mut message = BytesMut::with_capacity(1 + text.len());
    message.put_u8(channel);
    message.put_slice(text);
    Message::Binary(message.freeze())
}

/// The status without `kind` and `apiVersion`, as upstream writes it to the channel.
fn bare(status: &Status) -> Bytes {
    let mut status = status.to_json();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    status.to_string().into()
}
