//! Streams that the runtime serves itself.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use kube::api::AttachParams;
use plimsoll_runtime::{Ports, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::exec::pods;
use super::kubelet_api::{DEADLINE, FakeNode, KubeletApi, read, soon};
use super::runtime::FakeRuntime;
use crate::server::stream::spdy::{Connection, Limits, Role, Stream};

/// A kubelet API whose runtime serves streams at the listener.
async fn kubelet_api() -> (KubeletApi, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/exec/token", listener.local_addr().unwrap());
    let mut runtime = FakeRuntime::with_app("/nowhere");
    let exec = url.clone();
    runtime.on_exec = Some(Box::new(move |_| Ok(Session::Elsewhere(exec.clone()))));
    runtime.on_forward = Some(Box::new(move |_| Ok(Ports::Elsewhere(url.clone()))));
    (KubeletApi::new(FakeNode::with_web(runtime)).await, listener)
}

/// Takes a request and returns its head.
async fn request(listener: &TcpListener) -> (TcpStream, String) {
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(socket.read_u8()).await.unwrap());
    }
    (socket, String::from_utf8(head).unwrap())
}

fn upgrade(path: &str, protocol: &str) -> Request<Empty<Bytes>> {
    let request = Request::post(path)
        .header("host", "localhost")
        .header("authorization", "Bearer secret")
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", protocol);
    request.body(Empty::new()).unwrap()
}

#[tokio::test]
async fn a_connection_is_passed_on_byte_for_byte() {
    let (kubelet_api, listener) = kubelet_api().await;
    let runtime = tokio::spawn(async move {
        let (mut socket, head) = request(&listener).await;
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                      upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\r\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
        let mut heard = [0; 5];
        soon(socket.read_exact(&mut heard)).await.unwrap();
        socket.write_all(b"world").await.unwrap();
        drop(socket);
        (head, heard)
    });
    let path = "/exec/default/web/app?output=1&command=sh";
    let mut response = soon(kubelet_api.send(None, upgrade(path, "v4.channel.k8s.io"))).await;
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let chosen = &response.headers()["x-stream-protocol-version"];
    assert_eq!(chosen, "v4.channel.k8s.io");
    let upgraded = soon(hyper::upgrade::on(&mut response)).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    io.write_all(b"hello").await.unwrap();
    let mut text = String::new();
    soon(io.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "world");
    let (head, heard) = runtime.await.unwrap();
    assert_eq!(&heard, b"hello");
    assert!(head.starts_with("POST /exec/token HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("secret"), "{head}");
}

#[tokio::test]
async fn the_runtimes_refusal_is_the_clients() {
    let (kubelet_api, listener) = kubelet_api().await;
    tokio::spawn(async move {
        let (mut socket, _) = request(&listener).await;
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nno token\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
    });
    let path = "/portForward/default/web";
    let response = soon(kubelet_api.send(None, upgrade(path, "portforward.k8s.io"))).await;
    let refused = (StatusCode::NOT_FOUND, "no token\n".to_owned());
    assert_eq!(read(response).await, refused);
}

#[tokio::test]
async fn unreachable_runtime_returns_500() {
    let (kubelet_api, listener) = kubelet_api().await;
    drop(listener);
    let path = "/exec/default/web/app?output=1&command=sh";
    let response = soon(kubelet_api.send(None, upgrade(path, "v4.channel.k8s.io"))).await;
    let (code, text) = read(response).await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.starts_with("error dialing backend: "), "{text}");
}

#[tokio::test]
async fn a_client_of_the_fifth_protocol_is_translated_for_the_runtime() {
    let (kubelet_api, listener) = kubelet_api().await;
    let runtime = tokio::spawn(async move {
        let (mut socket, head) = request(&listener).await;
        assert!(head.contains("x-stream-protocol-version: v4.channel.k8s.io"));
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                      upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\r\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
        let limits = Limits {
            streams: 8,
            buffer: 1024,
        };
        let (connection, mut streams) = Connection::start(socket, Role::Server, limits);
        let mut next = async |kind: &str| -> Stream {
            let stream = soon(streams.recv()).await.unwrap();
            assert_eq!(stream.headers.get("streamType"), Some(kind));
            stream.output.accept().await.unwrap();
            stream
        };
        let error = next("error").await;
        let mut stdin = next("stdin").await;
        let stdout = next("stdout").await;
        let stderr = next("stderr").await;
        let mut said = String::new();
        soon(stdin.input.read_to_string(&mut said)).await.unwrap();
        stdout.output.send(said.into()).await.unwrap();
        stdout.output.finish().await;
        stderr.output.finish().await;
        let status = r#"{"status":"Failure","reason":"NonZeroExitCode","details":{
            "causes":[{"reason":"ExitCode","message":"4"}]}}"#;
        error.output.send(status.into()).await.unwrap();
        error.output.reset().await;
        connection.close(&[], DEADLINE).await;
    });
    let kubelet_api = Arc::new(kubelet_api);
    let params = AttachParams::default().stdin(true);
    let mut attached = soon(pods(&kubelet_api).exec("web", ["cat"], &params))
        .await
        .unwrap();
    let mut stdin = attached.stdin().unwrap();
    stdin.write_all(b"through and back").await.unwrap();
    stdin.shutdown().await.unwrap();
    drop(stdin);
    let mut text = String::new();
    let mut stdout = attached.stdout().unwrap();
    soon(stdout.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "through and back");
    let status = soon(attached.take_status().unwrap()).await.unwrap();
    let causes = status.details.unwrap().causes.unwrap();
    assert_eq!(causes[0].message.as_deref(), Some("4"));
    soon(runtime).await.unwrap();
}
