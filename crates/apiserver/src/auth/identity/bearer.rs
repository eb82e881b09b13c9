//! Bearer tokens in headers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The prefix of a WebSocket subprotocol that is a token.
const WEB_SOCKET_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The token of an `Authorization` header, if it is a bearer token.
///
/// Matches v1.36 apiserver/pkg/authentication/request/bearertoken/bearertoken.go.
pub fn token_from_header(authorization: &str) -> Option<&str> {
    let mut parts = authorization.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A token that came as a WebSocket subprotocol; browsers can send it no other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketToken {
    /// The token.
    pub token: String,
    /// The other subprotocols, among which the server chooses; the token is never echoed.
    pub protocols: Vec<String>,
}

/// Reads the values of the `Sec-WebSocket-Protocol` headers; an error is its 401's reason.
///
/// Matches v1.36 apiserver/pkg/authentication/request/websocket/protocol.go.
pub fn token_from_web_socket_protocols<'a>(
    headers: impl IntoIterator<Item = &'a str>,
) -> Result<Option<WebSocketToken>, &'static str> {
    let mut token = None;
    let mut protocols = Vec::new();
    for protocol in headers.into_iter().flat_map(|header| header.split(',')) {
        let protocol = protocol.trim();
        let Some(encoded) = protocol.strip_prefix(WEB_SOCKET_PREFIX) else {
            protocols.push(protocol.to_owned());
            continue;
        };
        if token.is_some() {
            return Err("multiple base64.bearer.authorization tokens specified");
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(encoded)
            .map_err(|_| "invalid base64.bearer.authorization token encoding")?;
        let text =
            String::from_utf8(bytes).map_err(|_| "invalid base64.bearer.authorization token")?;
        token = Some(text);
    }
    match token.filter(|token| !token.is_empty()) {
        None => Ok(None),
        Some(_) if protocols.is_empty() => Err("missing additional subprotocol"),
        Some(token) => Ok(Some(WebSocketToken { token, protocols })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_headers_carry_a_token() {
        let cases = [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("  Bearer abc  ", Some("abc")),
            ("Bearer abc def", Some("abc")),
            ("Bearer", None),
            ("Bearer  abc", None),
            ("Basic abc", None),
            ("", None),
        ];
        for (header, expected) in cases {
            assert_eq!(token_from_header(header), expected, "{header:?}");
        }
    }

    #[test]
    fn websocket_token_needs_another_subprotocol() {
        let with = |text: &str| {
            let encoded = URL_SAFE_NO_PAD.encode(text);
            format!("{WEB_SOCKET_PREFIX}{encoded}")
        };
        let found =
            token_from_web_socket_protocols([&*format!("v5.channel.k8s.io, {}", with("t"))]);
        let expected = WebSocketToken {
            token: "t".to_owned(),
            protocols: vec!["v5.channel.k8s.io".to_owned()],
        };
        assert_eq!(found, Ok(Some(expected)));
        assert_eq!(
            token_from_web_socket_protocols(["v5.channel.k8s.io"]),
            Ok(None)
        );
        assert_eq!(
            token_from_web_socket_protocols([&*with("t")]),
            Err("missing additional subprotocol")
        );
        assert_eq!(
            token_from_web_socket_protocols([&*with("t"), &*with("u")]),
            Err("multiple base64.bearer.authorization tokens specified")
        );
        assert_eq!(
            token_from_web_socket_protocols([&*format!("{WEB_SOCKET_PREFIX}???")]),
            Err("invalid base64.bearer.authorization token encoding")
        );
    }
}
