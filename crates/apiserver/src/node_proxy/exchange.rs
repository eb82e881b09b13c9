//! One request to a node and its response.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::{AlertDescription, CertificateError};
use tokio::task::JoinHandle;

use super::connector::Stream;
use crate::body::Body;

/// The task that drives a connection. The connection ends when this is dropped.
#[derive(Debug)]
pub(super) struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request over a connection of its own. The response's body can be read, and an upgrade
/// awaited, as long as the [`Connection`] lives.
pub(super) async fn send(
    stream: Box<dyn Stream>,
    request: Request<Body>,
) -> Result<(Response<Incoming>, Connection), hyper::Error> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let task = tokio::spawn(async move {
        // The reader of the response gets the error.
        let _ = connection.with_upgrades().await;
    });
    let connection = Connection(task);
    let response = sender.send_request(request).await?;
    Ok((response, connection))
}

/// The body of a node's response: dropping it ends the connection.
pub(super) fn streamed(body: Incoming, connection: Connection) -> Body {
    let body = NodeBody {
        body,
        _connection: connection,
    };
    body.boxed_unsync()
}

struct NodeBody {
    body: Incoming,
    _connection: Connection,
}

impl http_body::Body for NodeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The error below HTTP, with Go's text where it has one.
pub(super) fn transport_text(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    let mut text = String::new();
    while let Some(error) = cause {
        if let Some(tls) = tls_error(error) {
            return tls_text(tls);
        }
        text = error.to_string();
        cause = error.source();
    }
    if text == "connection closed before message completed" {
        text = "EOF".to_owned();
    }
    text
}

/// The TLS error that this is, or that is wrapped in an I/O error.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    let inner = inner.and_then(|inner| inner.downcast_ref());
    inner.or_else(|| error.downcast_ref())
}

fn tls_text(error: &rustls::Error) -> String {
    let problem = match error {
        rustls::Error::InvalidCertificate(problem) => problem,
        rustls::Error::AlertReceived(alert) => {
            return format!("remote error: tls: {}", alert_text(*alert));
        }
        other => return format!("tls: {other}"),
    };
    let reason = match problem {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            let expected = expected.to_str();
            format!(
                "certificate is valid for {}, not {expected}",
                names.join(", ")
            )
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {reason}")
}

/// `DnsName("a")` and `IpAddress(1.2.3.4)` without the text around the name.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::BadCertificate => "bad certificate".to_owned(),
        AlertDescription::UnknownCA => "unknown certificate authority".to_owned(),
        AlertDescription::CertificateRequired => "certificate required".to_owned(),
        AlertDescription::HandshakeFailure => "handshake failure".to_owned(),
        other => format!("{other:?}"),
    }
}
