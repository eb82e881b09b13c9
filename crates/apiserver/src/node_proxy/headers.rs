//! Headers that are not forwarded.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_PROTOCOL, TE, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Hop-by-hop headers. Matches Go's net/http/httputil/reverseproxy.go.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Carries a token in the handshake of a WebSocket, where browsers cannot set other headers.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Whether the client requests an upgrade of this connection.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONNECTION).iter();
    values.any(|value| contains(value, "upgrade"))
}

/// Whether the client requests a WebSocket.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    is_upgrade(headers) && wanted.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

/// Whether the value contains the word, ignoring case.
pub(super) fn contains(value: &HeaderValue, word: &str) -> bool {
    value
        .to_str()
        .is_ok_and(|text| text.to_ascii_lowercase().contains(word))
}

/// The subprotocols that a WebSocket client offers, in its order.
pub(super) fn offered_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(',').map(str::trim))
}

/// Removes hop-by-hop headers.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let takes_trailers = headers
        .get_all(TE)
        .iter()
        .any(|te| contains(te, "trailers"));
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes the caller's credentials: a node authenticates only the API server.
pub(super) fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    let impersonation: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("impersonate-"))
        .cloned()
        .collect();
    for name in impersonation {
        headers.remove(name);
    }
    if offered_protocols(headers).any(|protocol| protocol.starts_with(BEARER_PROTOCOL)) {
        let kept: Vec<&str> = offered_protocols(headers)
            .filter(|protocol| !protocol.starts_with(BEARER_PROTOCOL))
            .collect();
        let kept = HeaderValue::from_str(&kept.join(", "))
            .expect("a part of a header value is a header value");
        headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
    }
}

/// The headers of an upgrade request to a node, of the client's or another protocol.
/// Such a request has no body.
pub(super) fn upgrade_headers(client: &HeaderMap, protocol: HeaderValue) -> HeaderMap {
    let mut headers = client.clone();
    remove_credentials(&mut headers);
    remove_hop_by_hop(&mut headers);
    headers.remove(CONTENT_LENGTH);
    set_upgrade(&mut headers, protocol);
    headers
}

/// Requests an upgrade of this connection, or accepts one.
pub(super) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)));
        pairs.collect()
    }

    #[test]
    fn headers_named_by_connection_are_removed() {
        let mut map = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ]);
        remove_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("te", "trailers"), ("accept", "*/*")]));
    }

    #[test]
    fn credentials_stay_with_the_api_server() {
        let mut map = headers(&[
            ("authorization", "Bearer x"),
            ("impersonate-user", "root"),
            ("impersonate-extra-a", "b"),
            (
                "sec-websocket-protocol",
                "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.eHg",
            ),
        ]);
        remove_credentials(&mut map);
        let left = headers(&[("sec-websocket-protocol", "v4.channel.k8s.io")]);
        assert_eq!(map, left);
    }

    #[test]
    fn upgrade_is_detected_by_the_connection_header() {
        assert!(is_upgrade(&headers(&[(
            "connection",
            "keep-alive, Upgrade"
        )])));
        assert!(!is_upgrade(&headers(&[("upgrade", "websocket")])));
        assert!(is_websocket(&headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "WebSocket")
        ])));
    }
}
