//! What a client and the face will speak.
//!
//! Matches v1.36 streaming/pkg/httpstream (`Handshake`, wsstream) and
//! cri-streaming/pkg/streaming/remotecommand.

use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, StatusCode};

use crate::server::answer::{self, Refusal};

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// How a WebSocket carries channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Encoding {
    /// A byte for the channel, then what is said.
    Binary,
    /// A digit for the channel, then what is said in base64.
    Base64,
}

/// What is spoken after an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum Agreement {
    /// A WebSocket with channels.
    WebSocket {
        /// The subprotocol; empty if the client offered none.
        protocol: &'static str,
        encoding: Encoding,
        /// The client's key, which the answer must match.
        key: Vec<u8>,
    },
}

/// WebSocket subprotocols. The first is taken wherever it is offered, for it alone can close a
/// stream; of the others the client's order decides.
const WEB_SOCKET: [(&str, Encoding); 6] = [
    ("v5.channel.k8s.io", Encoding::Binary),
    ("v4.channel.k8s.io", Encoding::Binary),
    ("v4.base64.channel.k8s.io", Encoding::Base64),
    ("channel.k8s.io", Encoding::Binary),
    ("base64.channel.k8s.io", Encoding::Base64),
    ("", Encoding::Binary),
];

/// What to speak with the streams of a process, or the refusal.
pub(in crate::server) fn agree(headers: &HeaderMap) -> Result<Agreement, Refusal> {
    if !is_upgrade(headers) {
        let text = "Upgrade request required";
        let refusal = answer::error(StatusCode::INTERNAL_SERVER_ERROR, text);
        return Err(Box::new(refusal));
    }
    if !is_web_socket(headers) {
        let text =
            format!("unable to upgrade: missing upgrade headers in request: {STREAM_PROTOCOL}");
        return Err(Box::new(answer::error(StatusCode::BAD_REQUEST, &text)));
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return Err(Box::new(answer::bare(StatusCode::BAD_REQUEST)));
    };
    let offered: Vec<&str> = listed(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    let (protocol, encoding) = web_socket_protocol(&offered)
        .ok_or_else(|| Box::new(answer::bare(StatusCode::FORBIDDEN)))?;
    Ok(Agreement::WebSocket {
        protocol,
        encoding,
        key: key.as_bytes().to_vec(),
    })
}

fn web_socket_protocol(offered: &[&str]) -> Option<(&'static str, Encoding)> {
    let known = |name: &str| WEB_SOCKET.into_iter().find(|(known, _)| *known == name);
    if offered.is_empty() {
        return known("");
    }
    if offered.contains(&WEB_SOCKET[0].0) {
        return Some(WEB_SOCKET[0]);
    }
    offered.iter().find_map(|name| known(name))
}

/// Whether the caller wants to speak something else than HTTP on this connection.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONNECTION).iter();
    values.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.to_ascii_lowercase().contains("upgrade")
    })
}

fn is_web_socket(headers: &HeaderMap) -> bool {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

/// The members of all headers of that name.
fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty())
}
