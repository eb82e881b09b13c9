//! How registries are reached.

use std::net::IpAddr;
use std::time::Duration;

use oci_client::Client;
use oci_client::client::{ClientConfig, ClientProtocol};

use super::super::reference::Reference;
use super::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest silence in the midst of a download.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Local configuration of registries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries {
    /// Those that speak plain HTTP: hosts, with or without port. Loopback addresses always do.
    pub insecure: Vec<String>,
}

impl Registries {
    /// A client for one pull. It remembers credentials, so pulls do not share one.
    pub(super) fn client(&self, name: &Reference) -> Result<Client, Error> {
        // The only provider that is linked; another part of the process may have set it before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let protocol = if self.is_insecure(&name.registry) {
            ClientProtocol::Http
        } else {
            ClientProtocol::Https
        };
        let config = ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("plimsoll/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        Client::try_from(config).map_err(|source| Error::Client {
            image: name.to_string(),
            source: source.into(),
        })
    }

    fn is_insecure(&self, registry: &str) -> bool {
        let host = host(registry);
        let is_listed = |listed: &String| listed == registry || listed == host;
        self.insecure.iter().any(is_listed) || is_loopback(host)
    }
}

/// Without the port and the brackets of an IPv6 address.
fn host(registry: &str) -> &str {
    match registry.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => registry.split(':').next().unwrap_or(registry),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_listed_registries_use_plain_http() {
        let registries = Registries {
            insecure: vec!["lab:5000".to_owned(), "10.0.0.9".to_owned()],
        };
        for (registry, expected) in [
            ("localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("127.8.8.8", true),
            ("[::1]:5000", true),
            ("lab:5000", true),
            ("10.0.0.9:1234", true),
            ("lab", false),
            ("lab:5001", false),
            ("docker.io", false),
            ("127.0.0.1.example.com", false),
            ("localhost.example.com", false),
        ] {
            assert_eq!(registries.is_insecure(registry), expected, "{registry}");
        }
    }
}
