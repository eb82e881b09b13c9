//! Reading from a server that is not known yet.
//!
//! What it says is believed only as far as it matches a pin; nothing secret is sent to it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use plimsoll_client::skip_verification::SkipVerification;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a server may take to be connected to; as long as other clients wait.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A client without credentials that takes any certificate.
pub(super) fn stranger(server: &Uri) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| ask(server.clone(), request));
    Client::new(service, "default")
}

async fn ask(server: Uri, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
    let host = server.host().ok_or("the address names no host")?;
    let port = server.port_u16().unwrap_or(443);
    let authority = server.authority().ok_or("the address names no host")?;
    request
        .headers_mut()
        .insert(HOST, HeaderValue::from_str(authority.as_str())?);
    *request.uri_mut() = below(&server, request.uri())?.into();
    let connecting = async {
        // Brackets belong to the address as it is written, not to the address.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::new(any_server()))
            .connect(name, stream)
            .await
    };
    let stream = timeout(CONNECT_TIMEOUT, connecting).await;
    let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The connection lives until the answer has been read or dropped.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// The path of a request below the one at which the server is.
fn below(server: &Uri, request: &Uri) -> Result<PathAndQuery, BoxError> {
    let base = server.path().trim_end_matches('/');
    let path = request.path_and_query().map_or("/", PathAndQuery::as_str);
    Ok(format!("{base}{path}").parse()?)
}

fn any_server() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let any = SkipVerification::new(&provider);
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_the_server() {
        let request = Uri::from_static("/api?limit=1");
        for (server, expected) in [
            ("https://a:6443", "/api?limit=1"),
            ("https://a/", "/api?limit=1"),
            ("https://a/k8s/c1/", "/k8s/c1/api?limit=1"),
        ] {
            let path = below(&Uri::from_static(server), &request).unwrap();
            assert_eq!(path.as_str(), expected);
        }
    }
}
