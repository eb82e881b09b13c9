//! Listen addresses: parsing, and the process that uses an address already.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use anyhow::Error;
use plimsoll_client::holder;

use crate::failure::{Advise, causes};

/// Parses the value of a flag. `usual` is the port to suggest if none is given.
pub(crate) fn parse(usual: u16) -> impl Fn(&str) -> Result<SocketAddr, String> + Clone {
    move |text| {
        text.parse().map_err(|_| {
            let example = SocketAddr::from(([127, 0, 0, 1], usual));
            let expected = format!("expected ADDRESS:PORT such as {example}");
            match meant(text, usual) {
                Some(meant) if meant != example => format!("{expected} (try {meant})"),
                _ => expected,
            }
        })
    }
}

/// The probable meaning of a text without address or port, or with a name such as localhost.
fn meant(text: &str, usual: u16) -> Option<SocketAddr> {
    if let Ok(port) = text.parse() {
        return Some(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, usual));
    }
    let (host, port) = text.rsplit_once(':')?;
    let ip = match host {
        "localhost" => [127, 0, 0, 1],
        "" | "*" => [0, 0, 0, 0],
        _ => return None,
    };
    Some(SocketAddr::from((ip, port.parse().ok()?)))
}

/// Adds a hint to an error of listening: which process uses the address, or what to change.
pub(crate) fn advise(error: Error, address: SocketAddr, flag: &str) -> Error {
    let kinds = causes(&error).into_iter();
    let kind = kinds.filter_map(|cause| Some(cause.downcast_ref::<std::io::Error>()?.kind()));
    match kind.last() {
        Some(ErrorKind::AddrInUse) => {
            let found = holder::of_port(address);
            let elsewhere = format!("choose another address with {flag} ADDRESS:PORT");
            error.hint(match found {
                Some(holder) => format!("{holder} listens there: stop it, or {elsewhere}"),
                None => format!(
                    "find the process with: ss -ltnp 'sport = :{}'; or {elsewhere}",
                    address.port()
                ),
            })
        }
        Some(ErrorKind::AddrNotAvailable) => error.hint(format!(
            "{} is not an address of this machine (run ip address to list them); 0.0.0.0 means all",
            address.ip()
        )),
        Some(ErrorKind::PermissionDenied) => {
            error.hint("ports below 1024 need root; choose a higher one, or use sudo")
        }
        _ => error,
    }
}

/// The same for an optional flag.
pub(crate) fn advise_if(error: Error, address: Option<SocketAddr>, flag: &str) -> Error {
    match address {
        Some(address) => advise(error, address, flag),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_suggest_a_valid_address() {
        let parse = parse(6443);
        assert!(parse("127.0.0.1:6443").is_ok());
        assert!(parse("[::1]:0").is_ok());
        let expected = "expected ADDRESS:PORT such as 127.0.0.1:6443";
        for (text, meant) in [
            ("6443", ""),
            ("8443", " (try 127.0.0.1:8443)"),
            ("10.0.0.1", " (try 10.0.0.1:6443)"),
            ("::", " (try [::]:6443)"),
            (":6443", " (try 0.0.0.0:6443)"),
            ("localhost:7000", " (try 127.0.0.1:7000)"),
            ("n1:6443", ""),
            ("65536", ""),
            ("", ""),
        ] {
            assert_eq!(
                parse(text).unwrap_err(),
                format!("{expected}{meant}"),
                "{text}"
            );
        }
    }
}
