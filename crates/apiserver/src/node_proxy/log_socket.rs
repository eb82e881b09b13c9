//! Logs in the messages of a WebSocket.
//!
//! Matches v1.36 apiserver/pkg/util/wsstream/stream.go: pieces of the log are messages, after one that
//! is empty; what the client sends is ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::connector::Timeouts;
use super::error_response::ErrorResponse;
use super::headers::{is_websocket, offered_protocols};
use super::websocket::{accepted, serve};
use crate::body::Body;
use crate::status::Status;

type Io = TokioIo<Upgraded>;

/// A client that requests a log over a WebSocket.
pub(super) struct LogSocket {
    client: OnUpgrade,
    encoding: Encoding,
    answer: Response<Body>,
}

/// How pieces of the log are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Binary,
    Base64,
}

/// The subprotocols; a client that names none gets binary messages.
const PROTOCOLS: [(&str, Encoding); 2] = [
    ("binary.k8s.io", Encoding::Binary),
    ("base64.binary.k8s.io", Encoding::Base64),
];

impl LogSocket {
    /// Takes the client of a request; `None` if it requests no WebSocket.
    pub(super) fn take(request: &mut Request<Body>) -> Result<Option<LogSocket>, ErrorResponse> {
        if !is_websocket(request.headers()) {
            return Ok(None);
        }
        let client = hyper::upgrade::on(&mut *request);
        let headers = request.headers();
        let offered: Vec<&str> = offered_protocols(headers)
            .filter(|one| !one.is_empty())
            .collect();
        let find = |offered: &&str| PROTOCOLS.iter().find(|(name, _)| name == offered);
        let (protocol, encoding) = match offered.iter().find_map(find) {
            Some((name, encoding)) => (Some(*name), *encoding),
            None if offered.is_empty() => (None, Encoding::Binary),
            None => {
                let message = format!(
                    "requested protocol(s) are not supported: {offered:?}; supports {:?}",
                    PROTOCOLS.map(|(name, _)| name)
                );
                return Err(Box::new(Status::new(403, "Forbidden", message)));
            }
        };
        Ok(Some(LogSocket {
            client,
            encoding,
            answer: accepted(headers, protocol)?,
        }))
    }

    /// Accepts the client, and sends it the log until either ends.
    pub(super) fn send(self, log: Body, timeouts: Timeouts) -> Response<Body> {
        let LogSocket {
            client,
            encoding,
            answer,
        } = self;
        tokio::spawn(async move {
            let Ok(client) = client.await else {
                return;
            };
            let (mut sink, mut messages) = serve(client).await.split();
            tokio::select! {
                () = send_log(&mut sink, log, encoding) => {}
                () = ended(&mut messages) => {}
            }
            let farewell = async {
                let _ = sink.send(Message::Close(None)).await;
                let _ = sink.close().await;
            };
            let _ = timeout(timeouts.closing, farewell).await;
        });
        answer
    }
}

impl Encoding {
    fn message(self, piece: Bytes) -> Message {
        match self {
            Encoding::Binary => Message::Binary(piece),
            Encoding::Base64 => Message::text(STANDARD.encode(piece)),
        }
    }
}

async fn send_log(
    sink: &mut SplitSink<WebSocketStream<Io>, Message>,
    mut log: Body,
    encoding: Encoding,
) {
    let mut piece = Bytes::new();
    while sink.send(encoding.message(piece)).await.is_ok() {
        piece = loop {
            let Some(Ok(frame)) = log.frame().await else {
                return;
            };
            match frame.into_data() {
                Ok(data) if !data.is_empty() => break data,
                _ => {}
            }
        };
    }
}

/// Waits until the client closes the connection.
async fn ended(messages: &mut SplitStream<WebSocketStream<Io>>) {
    while let Some(Ok(message)) = messages.next().await {
        if message.is_close() {
            return;
        }
    }
}
