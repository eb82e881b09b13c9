//! `pods/portforward`.

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

use super::front::Front;
use super::node::Node;

const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const HELLO: &[u8] = b"POST /portForward/default/web\n";

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (mut socket, chosen) = front.websocket("/portforward", TUNNEL).await.unwrap();
    assert_eq!(chosen, TUNNEL);
    assert_eq!(
        &socket.next().await.unwrap().unwrap().into_data()[..],
        HELLO
    );

    let sent: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(1024);
    let message = Message::Binary(Bytes::copy_from_slice(&sent));
    socket.send(message).await.unwrap();
    let mut back = Vec::new();
    while back.len() < sent.len() {
        let message = socket.next().await.unwrap().unwrap();
        assert!(message.is_binary());
        back.extend_from_slice(&message.into_data());
    }
    assert_eq!(back, sent);

    // The node closes, and so does the tunnel.
    let quit = Message::Binary(Bytes::from_static(b"quit"));
    socket.send(quit).await.unwrap();
    let close = socket.next().await.unwrap().unwrap();
    let Message::Close(Some(frame)) = close else {
        panic!("expected a close, not {close:?}");
    };
    assert_eq!(u16::from(frame.code), 1000);
    node.wait_for_ends(1).await;
}

#[tokio::test]
async fn closed_tunnel_closes_the_node_connection() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (mut socket, _) = front.websocket("/portforward", TUNNEL).await.unwrap();
    socket.next().await.unwrap().unwrap();
    socket.close(None).await.unwrap();
    node.wait_for_ends(1).await;

    let (mut socket, _) = front.websocket("/portforward", TUNNEL).await.unwrap();
    socket.next().await.unwrap().unwrap();
    drop(socket);
    node.wait_for_ends(2).await;
}

#[tokio::test]
async fn spdy_port_forward_is_passed_through() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let request = Request::post("/portforward?ports=80")
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .body(Full::default())
        .unwrap();
    let response = front.send(request).await;
    assert_eq!(response.status(), 101);
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let hello = b"POST /portForward/default/web?port=80\n";
    let mut buffer = vec![0; hello.len()];
    stream.read_exact(&mut buffer).await.unwrap();
    assert_eq!(buffer, hello);
    stream.write_all(b"abc").await.unwrap();
    let mut echo = [0; 3];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"abc");
}
