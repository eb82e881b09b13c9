//! The streaming protocol that a client and the server agree on.
//!
//! Matches v1.36 streaming/pkg/httpstream (`Handshake`, spdy, wsstream) and
//! cri-streaming/pkg/streaming/remotecommand.

use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::server::answer::{self, Refusal};

/// Names the protocol within SPDY.
pub(super) const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED_PROTOCOLS: HeaderName =
    HeaderName::from_static("x-accepted-stream-protocol-versions");

/// The only version of SPDY.
pub(super) const SPDY: &str = "SPDY/3.1";

/// How a WebSocket carries channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Encoding {
    /// A byte for the channel, then the data.
    Binary,
    /// A digit for the channel, then the data in base64.
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
    /// Streams over SPDY.
    Spdy { protocol: &'static str },
}

impl Agreement {
    /// Whether it is more than runtimes speak.
    pub(in crate::server) fn is_beyond_runtimes(&self) -> bool {
        matches!(self, Agreement::WebSocket { protocol, .. } if *protocol == WEB_SOCKET[0].0)
    }
}

/// What the streams carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Spoken {
    /// The streams of a process.
    Command,
    /// Ports.
    PortForward,
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

/// Protocols within SPDY for the streams of a process.
const COMMAND: [&str; 4] = [
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
];

const PORT_FORWARD: [&str; 1] = ["portforward.k8s.io"];

/// What to speak, or the refusal.
pub(in crate::server) fn agree(headers: &HeaderMap, spoken: Spoken) -> Result<Agreement, Refusal> {
    require_upgrade(headers)?;
    if spoken == Spoken::Command && is_web_socket(headers) {
        return web_socket(headers);
    }
    let protocol = match spoken {
        Spoken::Command => stream_protocol(headers, &COMMAND)?,
        Spoken::PortForward => stream_protocol(headers, &PORT_FORWARD)?,
    };
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    let upgrade = upgrade.unwrap_or_default();
    if !upgrade.to_ascii_uppercase().contains(SPDY) {
        let text = format!(
            "unable to upgrade: missing upgrade headers in request: Upgrade is {upgrade:?}"
        );
        return Err(refusal(StatusCode::BAD_REQUEST, &text));
    }
    Ok(Agreement::Spdy { protocol })
}

/// Refuses a request without an upgrade.
pub(in crate::server) fn require_upgrade(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut values = headers.get_all(CONNECTION).iter();
    let is_upgrade = values.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.to_ascii_lowercase().contains("upgrade")
    });
    if is_upgrade {
        return Ok(());
    }
    let text = "Upgrade request required";
    Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, text))
}

fn refusal(code: StatusCode, text: &str) -> Refusal {
    Box::new(answer::error(code, text))
}

fn is_web_socket(headers: &HeaderMap) -> bool {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

fn web_socket(headers: &HeaderMap) -> Result<Agreement, Refusal> {
    let bare = |code| Box::new(answer::bare(code));
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| bare(StatusCode::BAD_REQUEST))?;
    let offered: Vec<&str> = listed(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    let protocol = web_socket_protocol(&offered);
    let (protocol, encoding) = protocol.ok_or_else(|| bare(StatusCode::FORBIDDEN))?;
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

/// The first of the client's protocols that is known here.
fn stream_protocol(
    headers: &HeaderMap,
    known: &'static [&'static str],
) -> Result<&'static str, Refusal> {
    if !headers.contains_key(&STREAM_PROTOCOL) {
        let text = format!(
            "unable to upgrade: header X-Stream-Protocol-Version does not exist in request \
             with {} headers",
            headers.keys_len()
        );
        return Err(refusal(StatusCode::BAD_REQUEST, &text));
    }
    let offered: Vec<&str> = listed(headers, &STREAM_PROTOCOL).collect();
    if offered.is_empty() {
        let text = "unable to upgrade: header X-Stream-Protocol-Version is empty";
        return Err(refusal(StatusCode::BAD_REQUEST, text));
    }
    let find = |offered: &&str| known.iter().find(|known| *known == offered);
    if let Some(protocol) = offered.iter().find_map(find) {
        return Ok(protocol);
    }
    let text = format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{}], \
         server accepts [{}]",
        offered.join(" "),
        known.join(" ")
    );
    let mut refusal = refusal(StatusCode::FORBIDDEN, &text);
    for protocol in known {
        let protocol = HeaderValue::from_static(protocol);
        refusal.headers_mut().append(ACCEPTED_PROTOCOLS, protocol);
    }
    Err(refusal)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(pairs: &[(&'static str, &'static str)], spoken: Spoken) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        match agree(&headers, spoken) {
            Ok(Agreement::Spdy { protocol }) => Ok(format!("spdy {protocol}")),
            Ok(Agreement::WebSocket {
                protocol, encoding, ..
            }) => Ok(format!("{encoding:?} {protocol}")),
            Err(refusal) => Err(refusal.status().as_u16()),
        }
    }

    #[test]
    fn the_protocol_is_upstreams_choice() {
        let spdy = |offered: &'static [&'static str], spoken| {
            let upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
            let offered = offered.iter().map(|o| ("x-stream-protocol-version", *o));
            agreed(
                &upgrade.into_iter().chain(offered).collect::<Vec<_>>(),
                spoken,
            )
        };
        let ok = |text: &str| Ok(text.to_owned());
        let command = Spoken::Command;
        let all = ["v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"].as_slice();
        let odd = ["v9.channel.k8s.io, v3.channel.k8s.io"].as_slice();
        assert_eq!(
            spdy(Box::leak(all.into()), command),
            ok("spdy v4.channel.k8s.io")
        );
        assert_eq!(
            spdy(Box::leak(odd.into()), command),
            ok("spdy v3.channel.k8s.io")
        );
        assert_eq!(spdy(&["v9.channel.k8s.io"], command), Err(403));
        assert_eq!(spdy(&[], command), Err(400));
        assert_eq!(
            spdy(&["portforward.k8s.io"], Spoken::PortForward),
            ok("spdy portforward.k8s.io")
        );
        assert_eq!(spdy(&["v4.channel.k8s.io"], Spoken::PortForward), Err(403));

        let socket = |offered: &'static str| {
            let pairs = [
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", "WebSocket"),
                ("sec-websocket-key", "x"),
                ("sec-websocket-protocol", offered),
            ];
            agreed(&pairs, command)
        };
        assert_eq!(
            socket("v4.channel.k8s.io, v5.channel.k8s.io"),
            ok("Binary v5.channel.k8s.io")
        );
        assert_eq!(
            socket("base64.channel.k8s.io,v4.channel.k8s.io"),
            ok("Base64 base64.channel.k8s.io")
        );
        assert_eq!(socket("other"), Err(403));
        assert_eq!(socket(""), ok("Binary "));
        assert_eq!(agreed(&[("upgrade", "websocket")], command), Err(500));
        let unknown = [
            ("connection", "Upgrade"),
            ("upgrade", "h2c"),
            ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ];
        assert_eq!(agreed(&unknown, command), Err(400));
    }
}
