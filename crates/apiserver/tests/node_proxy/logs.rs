//! `pods/log`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::front::{Front, get};
use super::node::{Node, pod};

#[tokio::test]
async fn log_is_read_from_the_node_as_text() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let response = front.send(get("/log?tailLines=5&timestamps=true")).await;
    assert_eq!(response.headers()["content-type"], "text/plain");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        body,
        "/containerLogs/default/web/app?tailLines=5&timestamps=true\n"
    );
}

#[tokio::test]
async fn node_error_becomes_a_status() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (code, body) = front.get("/log?tailLines=400").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert_eq!(
        status["message"],
        "container \"app\" in pod \"web\" is waiting to start"
    );
    let (code, body) = front.get("/log?tailLines=404").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &status["reason"]), (404, &json!("NotFound")));
    assert_eq!(
        status["details"],
        json!({"kind": "pods/log", "name": "web"})
    );
}

#[tokio::test]
async fn contradictory_log_options_are_rejected_without_a_node_request() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let (code, body) = front.get("/log?tailLines=-1").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or \
         equal to 0"
    );
    let (code, _) = front.get("/log?container=none").await;
    assert_eq!(code, 400);
}

#[tokio::test]
async fn a_pod_without_a_node_has_an_empty_log() {
    let node = Node::start().await;
    let mut unbound = pod();
    unbound["spec"]["nodeName"] = Value::Null;
    let front = Front::start(node.connector.clone(), unbound, Value::Null).await;
    assert_eq!(front.get("/log").await, (204, String::new()));
    let front = Front::start(node.connector.clone(), pod(), Value::Null).await;
    let (code, body) = front.get("/log").await;
    assert_eq!(code, 404);
    assert!(body.contains(r#"nodes \"n1\" not found"#), "{body}");
}

#[tokio::test]
async fn followed_log_has_backpressure_and_ends_with_its_reader() {
    const READ: usize = 10 << 20;
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let mut sender = front.connect().await;
    let response = sender.send_request(get("/log?follow=true")).await.unwrap();
    let mut body = response.into_body();

    // The client does not read: once all buffers are full, the node cannot send.
    let mut before = 0;
    let stalled = async {
        loop {
            let sent = node.seen.sent.load(Ordering::SeqCst);
            if sent > 0 && sent == before {
                return;
            }
            before = sent;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let stalled = tokio::time::timeout(Duration::from_secs(20), stalled).await;
    stalled.expect("the node is held back");

    let mut read = 0;
    while read < READ {
        let frame = body.frame().await.unwrap().unwrap();
        read += frame.into_data().unwrap().len();
    }
    assert_eq!(node.seen.ended.load(Ordering::SeqCst), 0);
    drop((body, sender));
    node.wait_for_ends(1).await;
}

#[tokio::test]
async fn log_is_sent_as_websocket_messages() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let expected = "/containerLogs/default/web/app?tailLines=5\n";
    for (offered, is_text) in [
        ("binary.k8s.io", false),
        ("base64.binary.k8s.io", true),
        ("v4.channel.k8s.io, base64.binary.k8s.io", true),
    ] {
        let opened = front.websocket("/log?tailLines=5", offered).await;
        let (mut socket, chosen) = opened.unwrap();
        assert!(offered.ends_with(&chosen), "{chosen}");
        // The first message is empty.
        let first = socket.next().await.unwrap().unwrap();
        assert_eq!((first.is_text(), first.len()), (is_text, 0));
        let mut log = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            match message {
                Message::Binary(piece) => log.extend_from_slice(&piece),
                Message::Text(piece) => log.extend(STANDARD.decode(piece.as_bytes()).unwrap()),
                _ => {}
            }
        }
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}

#[tokio::test]
async fn log_over_a_web_socket_is_refused_as_any_other() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    for (path, protocol, code) in [
        ("/log", "v4.channel.k8s.io", 403),
        ("/log?tailLines=-1", "binary.k8s.io", 422),
        ("/log?tailLines=404", "binary.k8s.io", 404),
    ] {
        match front.websocket(path, protocol).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), code),
            other => panic!("{path}: {:?}", other.map(|(_, chosen)| chosen)),
        }
    }
}

#[tokio::test]
async fn node_stops_sending_when_the_reader_closes_its_web_socket() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let opened = front.websocket("/log?follow=true", "binary.k8s.io").await;
    let (mut socket, _) = opened.unwrap();
    while socket.next().await.unwrap().unwrap().is_empty() {}
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    node.wait_for_ends(1).await;
}
