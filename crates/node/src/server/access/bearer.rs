//! Tokens in headers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};

/// Carries a token in the handshake of a WebSocket, where a browser can set no other header.
const PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token that a request shows, if it does.
pub(super) fn token(headers: &HeaderMap) -> Option<String> {
    in_authorization(headers).or_else(|| in_protocols(headers))
}

fn in_authorization(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let mut words = value.splitn(3, ' ');
    let is_bearer = words.next()?.eq_ignore_ascii_case("bearer");
    let token = words.next().filter(|token| !token.is_empty())?;
    is_bearer.then(|| token.to_owned())
}

/// Only beside another protocol: that one is then spoken.
fn in_protocols(headers: &HeaderMap) -> Option<String> {
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        protocols(headers).partition(|protocol| protocol.starts_with(PROTOCOL));
    let [token] = tokens.as_slice() else {
        return None;
    };
    if others.is_empty() {
        return None;
    }
    let encoded = token.strip_prefix(PROTOCOL)?;
    let token = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    String::from_utf8(token)
        .ok()
        .filter(|token| !token.is_empty())
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(',').map(str::trim))
}

/// Removes the token, so that it is not passed on to the runtime.
pub(in crate::server) fn strip_token(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    if protocols(headers).any(|protocol| protocol.starts_with(PROTOCOL)) {
        let kept: Vec<&str> = protocols(headers)
            .filter(|protocol| !protocol.starts_with(PROTOCOL))
            .collect();
        match HeaderValue::from_str(&kept.join(", ")) {
            Ok(kept) => headers.insert(SEC_WEBSOCKET_PROTOCOL, kept),
            Err(_) => headers.remove(SEC_WEBSOCKET_PROTOCOL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn a_token_is_the_second_word_of_a_bearer_header() {
        let cases = [
            ("Bearer abc", Some("abc")),
            ("bearer abc def", Some("abc")),
            ("Basic abc", None),
            ("Bearer", None),
            ("Bearer  abc", None),
            ("", None),
        ];
        for (value, expected) in cases {
            let found = token(&with("authorization", value));
            assert_eq!(found.as_deref(), expected, "{value:?}");
        }
    }

    #[test]
    fn token_is_read_from_the_websocket_protocols() {
        let name = "sec-websocket-protocol";
        let mut headers = with(
            name,
            "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.YWJj",
        );
        assert_eq!(token(&headers).as_deref(), Some("abc"));
        strip_token(&mut headers);
        assert_eq!(headers, with(name, "v4.channel.k8s.io"));

        let alone = with(name, "base64url.bearer.authorization.k8s.io.YWJj");
        assert_eq!(token(&alone), None);
    }
}
