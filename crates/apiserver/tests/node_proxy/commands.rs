//! `pods/exec` and `pods/attach`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::front::{Front, read};
use super::node::{self, Node, pod};

const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
const EXEC: &str = "/exec?command=cat&command=-&stdin=true&stdout=true&stderr=true";

fn binary(bytes: &[u8]) -> Message {
    Message::Binary(Bytes::copy_from_slice(bytes))
}

#[tokio::test]
async fn a_command_echoes_over_both_websocket_protocols() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    for (offered, expected) in [
        (V5.to_owned(), V5),
        (V4.to_owned(), V4),
        (format!("{V5}, {V4}"), V5),
    ] {
        let (mut socket, chosen) = front.websocket(EXEC, &offered).await.unwrap();
        assert_eq!(chosen, expected);
        let hello = socket.next().await.unwrap().unwrap().into_data();
        assert_eq!(
            &hello[1..],
            b"/exec/default/web/app?command=cat&command=-&error=1&input=1&output=1"
        );
        socket.send(binary(b"\x00hi")).await.unwrap();
        let echo = socket.next().await.unwrap().unwrap();
        assert_eq!(echo, binary(b"\x01hi"));
        socket.send(binary(&[255, 0])).await.unwrap();
        let status = socket.next().await.unwrap().unwrap().into_data();
        assert_eq!(&status[..], b"\x03{\"metadata\":{},\"status\":\"Success\"}");
        while let Some(Ok(_)) = socket.next().await {}
    }
    node.wait_for_ends(3).await;
}

/// kubectl loses messages that arrive before it has created its streams.
#[tokio::test]
async fn client_has_time_to_create_its_streams() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (mut socket, _) = front.websocket(EXEC, V5).await.unwrap();
    let upgraded = Instant::now();
    socket.next().await.unwrap().unwrap();
    assert!(upgraded.elapsed() > Duration::from_millis(20));
}

#[tokio::test]
async fn attach_sends_no_command() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let path = "/attach?command=cat&stdout=true&tty=true";
    let (mut socket, _) = front.websocket(path, V5).await.unwrap();
    let hello = socket.next().await.unwrap().unwrap().into_data();
    assert_eq!(&hello[1..], b"/attach/default/web/app?output=1&tty=1");
}

#[tokio::test]
async fn ten_megabytes_are_echoed_completely() {
    const CHUNK: usize = 64 * 1024;
    const CHUNKS: usize = 160;
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (socket, _) = front.websocket(EXEC, V5).await.unwrap();
    let (mut sink, mut messages) = socket.split();
    messages.next().await.unwrap().unwrap();
    let writer = tokio::spawn(async move {
        for chunk in 0..CHUNKS {
            let mut message = vec![u8::try_from(chunk % 251).unwrap(); CHUNK + 1];
            message[0] = 0;
            sink.send(Message::Binary(message.into())).await.unwrap();
        }
        sink
    });
    for chunk in 0..CHUNKS {
        let message = messages.next().await.unwrap().unwrap().into_data();
        assert_eq!(message.len(), CHUNK + 1);
        let expected = u8::try_from(chunk % 251).unwrap();
        assert!(message[1..].iter().all(|byte| *byte == expected));
    }
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn disconnected_client_ends_the_command() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (mut socket, _) = front.websocket(EXEC, V4).await.unwrap();
    socket.next().await.unwrap().unwrap();
    drop(socket);
    node.wait_for_ends(1).await;
}

#[tokio::test]
async fn spdy_is_forwarded_byte_for_byte() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let request = Request::post(EXEC)
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", "v4.channel.k8s.io")
        .body(Full::default())
        .unwrap();
    let response = front.send(request).await;
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["upgrade"], "SPDY/3.1");
    assert_eq!(response.headers()["x-stream-protocol-version"], V4);
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let hello = b"POST /exec/default/web/app?command=cat&command=-&error=1&input=1&output=1\n";
    let mut buffer = vec![0; hello.len()];
    stream.read_exact(&mut buffer).await.unwrap();
    assert_eq!(buffer, hello);
    stream.write_all(&[0, 255, 1, 254]).await.unwrap();
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(echo, [0, 255, 1, 254]);
    stream.write_all(b"quit").await.unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}

#[tokio::test]
async fn node_error_reaches_the_client() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let refused = front.websocket(EXEC, "v1.channel.k8s.io").await;
    let Err(Error::Http(response)) = refused else {
        panic!("the node knows no such protocol");
    };
    assert_eq!(response.status(), 403);
    assert_eq!(response.body().as_deref(), Some(&b"no such protocol"[..]));
}

#[tokio::test]
async fn non_upgrade_requests_are_rejected() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let message = |body: &str| serde_json::from_str::<Value>(body).unwrap()["message"].clone();
    let (code, body) = front.get(EXEC).await;
    assert_eq!(
        (code, message(&body)),
        (400, json!("Upgrade request required"))
    );
    let (code, body) = front.get("/exec?container=b").await;
    assert_eq!(
        (code, message(&body)),
        (400, json!("container b is not valid for pod web"))
    );
    let (code, body) = front.get("/exec?dryRun=All").await;
    assert_eq!(
        (code, message(&body)),
        (400, json!("dryRun is not supported"))
    );
    let mut unbound = pod();
    unbound["spec"]["nodeName"] = json!("");
    let front = Front::start(node.connector.clone(), unbound, Value::Null).await;
    let (code, body) = front.get(EXEC).await;
    assert_eq!(
        (code, message(&body)),
        (400, json!("pod web does not have a host assigned"))
    );
}

/// A node without a listener on its port.
async fn unreachable() -> (Front, u16) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let (authority, _directory) = node::authority();
    let connector = node::connector(&authority);
    let front = Front::start(connector, pod(), node::object(port)).await;
    (front, port)
}

#[tokio::test]
async fn unreachable_node_is_reported_on_the_error_channel() {
    let (front, port) = unreachable().await;
    let (mut socket, chosen) = front.websocket(EXEC, V5).await.unwrap();
    assert_eq!(chosen, V5);
    assert_eq!(socket.next().await.unwrap().unwrap(), binary(b"\x01"));
    let message = socket.next().await.unwrap().unwrap().into_data();
    assert_eq!(message[0], 3);
    let status: Value = serde_json::from_slice(&message[1..]).unwrap();
    assert_eq!(status["reason"], "InternalError");
    assert_eq!(status["code"], 500);
    assert_eq!(status.get("kind"), None);
    assert_eq!(
        status["message"],
        format!(
            "Internal error occurred: error sending request: Post \
             \"https://127.0.0.1:{port}/exec/default/web/app?command=cat&command=-&error=1&input=1&output=1\": \
             dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );
    // kubectl prints any other end than this one instead of the message.
    let Message::Close(Some(farewell)) = socket.next().await.unwrap().unwrap() else {
        panic!("the last message says how it ends");
    };
    assert_eq!(farewell.code, CloseCode::Normal);
}

#[tokio::test]
async fn unreachable_node_is_reported_in_the_response_to_older_clients() {
    let (front, port) = unreachable().await;
    let request = Request::post(EXEC)
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .body(Full::default())
        .unwrap();
    let (code, body) = read(front.send(request).await).await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 500);
    assert_eq!(status.get("reason"), None);
    assert_eq!(
        status["message"],
        format!("error dialing backend: dial tcp 127.0.0.1:{port}: connect: connection refused")
    );
    assert!(matches!(
        front.websocket(EXEC, V4).await,
        Err(Error::Http(_))
    ));
}
