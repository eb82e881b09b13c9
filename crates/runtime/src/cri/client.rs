//! One call to a runtime, and its failure as an error of the agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, TimeoutExpired};
use tonic_prost::ProstCodec;

use super::super::Error;
use super::endpoint::parse_endpoint;
use super::verb::Verb;

/// As upstream's client: a node with many images or containers needs more than gRPC's 4 MiB.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to one socket; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    grpc: Grpc<Channel>,
    /// As configured, for messages.
    endpoint: Arc<str>,
}

impl Client {
    /// Prepares the connection; it is made by the first call.
    pub(super) fn new(endpoint: &str) -> Result<Self, Error> {
        let path: Arc<std::path::Path> = parse_endpoint(endpoint)?.into();
        let connect = tower::service_fn(move |_: Uri| {
            let path = Arc::clone(&path);
            async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
        });
        // The name only fills the authority header, which containerd's server needs well-formed.
        let channel = Endpoint::from_static("http://localhost")
            .connect_timeout(CONNECT_TIMEOUT)
            .connect_with_connector_lazy(connect);
        let grpc = Grpc::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self {
            grpc,
            endpoint: endpoint.into(),
        })
    }

    /// Calls once. The request carries the time limit, so that the runtime gives up too.
    pub(super) async fn call<Q, A>(
        &self,
        verb: Verb,
        subject: &str,
        limit: Option<Duration>,
        message: Q,
    ) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.grpc.clone();
        let mut request = Request::new(message);
        if let Some(limit) = limit {
            request.set_timeout(limit);
        }
        let calling = async {
            grpc.ready()
                .await
                .map_err(|error| Status::from_error(Box::new(error)))?;
            let path = PathAndQuery::from_static(verb.path);
            let answer = grpc.unary(request, path, ProstCodec::default()).await?;
            Ok(answer.into_inner())
        };
        let answered = match limit {
            None => calling.await,
            Some(after) => match tokio::time::timeout(after, calling).await {
                Ok(answered) => answered,
                Err(_) => Err(Status::deadline_exceeded("context deadline exceeded")),
            },
        };
        answered.map_err(|status| self.error(verb, subject, limit, &status))
    }

    fn error(&self, verb: Verb, subject: &str, limit: Option<Duration>, status: &Status) -> Error {
        match (status.code(), limit, verb.missing) {
            (_, Some(after), _) if has_run_out(status) => Error::TimedOut {
                verb: verb.name(),
                after,
            },
            // A status that came over the wire has no cause; one made on this side has.
            _ if std::error::Error::source(status).is_some() => Error::Unreachable {
                endpoint: self.endpoint.to_string(),
                source: first_cause(status).into(),
            },
            (Code::NotFound, _, Some(what)) => Error::NotFound {
                what,
                id: subject.to_owned(),
            },
            (Code::Unimplemented, ..) => Error::Unimplemented { verb: verb.name() },
            _ => Error::failed(describe_call(verb, subject), Refusal::from(status)),
        }
    }
}

/// What was being done, to which object.
pub(super) fn describe_call(verb: Verb, subject: &str) -> String {
    match subject {
        "" => verb.doing.to_owned(),
        _ => format!("{} {subject:?}", verb.doing),
    }
}

/// Whether the time limit has passed, by the runtime's clock or by the transport's.
fn has_run_out(status: &Status) -> bool {
    let source = std::error::Error::source(status);
    let mut causes = std::iter::successors(source, |cause| cause.source());
    status.code() == Code::DeadlineExceeded || causes.any(|cause| cause.is::<TimeoutExpired>())
}

/// The innermost cause: errors of the transport layers above it add nothing useful.
fn first_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The runtime's own message, in the form Go's gRPC prints and Kubernetes shows them.
#[derive(Debug, thiserror::Error)]
#[error("rpc error: code = {code:?} desc = {words}")]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) words: String,
}

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        Self {
            code: status.code(),
            words: status.message().to_owned(),
        }
    }
}
