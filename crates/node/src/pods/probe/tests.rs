use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::action::Found;
use super::grpc;

/// A gRPC server that answers every call with that message or status; keeps what it was asked.
async fn serve(
    message: Option<Vec<u8>>,
    status: &'static str,
) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (message, log) = (message.clone(), Arc::clone(&log));
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
                log.lock()
                    .unwrap()
                    .push(format!("{} {agent}", request.uri().path()));
                let message = message.clone();
                async move {
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("grpc-status", status.parse().unwrap());
                    let data = message.map(|message| {
                        let mut framed = vec![0];
                        framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
                        framed.extend(message);
                        Frame::data(Bytes::from(framed))
                    });
                    let frames = data.into_iter().chain([Frame::trailers(trailers)]);
                    let frames = futures::stream::iter(frames).map(Ok::<_, Infallible>);
                    let answer = Response::builder()
                        .header("content-type", "application/grpc")
                        .body(StreamBody::new(frames));
                    Ok::<_, Infallible>(answer.unwrap())
                }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, asked)
}

async fn ask(address: SocketAddr) -> Found {
    let host = address.ip().to_string();
    grpc::ask(&host, address.port(), "", Duration::from_secs(5)).await
}

#[tokio::test]
async fn a_service_that_serves_is_healthy() {
    let (address, asked) = serve(Some(vec![8, 1]), "0").await;
    assert_eq!(ask(address).await, Found::Success("service healthy".into()));
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    let expected = "/grpc.health.v1.Health/Check kube-probe/1.36";
    assert!(asked[0].starts_with(expected), "{asked:?}");
}

#[tokio::test]
async fn grpc_service_that_is_not_serving_fails_the_probe() {
    let (address, _) = serve(Some(vec![8, 2]), "0").await;
    let expected = "service unhealthy (responded with \"NOT_SERVING\")";
    assert_eq!(ask(address).await, Found::Failure(expected.to_owned()));
    let (address, _) = serve(None, "12").await;
    let Found::Failure(text) = ask(address).await else {
        panic!("it does not know the protocol");
    };
    assert!(
        text.starts_with("error: this server does not implement"),
        "{text}"
    );
}

#[tokio::test]
async fn a_service_that_is_not_there_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let Found::Failure(text) = ask(address).await else {
        panic!("no server listens");
    };
    let expected = format!("error: failed to connect service at \"{address}\"");
    assert!(text.starts_with(&expected), "{text}");
}
