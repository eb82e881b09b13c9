//! gRPC servers at Unix sockets.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// How many clients are connected to a socket at the same time; others wait.
const MAX_CONNECTIONS: usize = 64;

/// Serves at a socket until the future is dropped; a file that is there is replaced.
pub(super) async fn serve<F>(
    socket: &Path,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) -> io::Result<Infallible>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        let answer = answer.clone();
        let service = hyper::service::service_fn(move |request| {
            let answering = answer(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let builder = http2::Builder::new(TokioExecutor::new());
        connections.spawn(builder.serve_connection(TokioIo::new(stream), service));
    }
}

/// Answers a call of a method that returns one message, or an error as Go's gRPC has it for one without
/// a code.
pub(super) async fn unary<Q, A, F>(
    request: Request<Incoming>,
    call: impl Fn(Q) -> F + Clone + Send + 'static,
) -> Response<Body>
where
    Q: prost::Message + Default + Send + 'static,
    A: prost::Message + Default + Send + 'static,
    F: Future<Output = Result<A, String>> + Send + 'static,
{
    let service = tower::service_fn(move |request: tonic::Request<Q>| {
        let calling = call(request.into_inner());
        async move {
            let answered = calling.await.map(tonic::Response::new);
            answered.map_err(|problem| Status::new(Code::Unknown, problem))
        }
    });
    Grpc::new(ProstCodec::<A, Q>::default())
        .unary(service, request)
        .await
}

/// The answer to a call of a method that is not there.
pub(super) fn unknown_method() -> Response<Body> {
    Status::unimplemented("unknown method").into_http()
}
