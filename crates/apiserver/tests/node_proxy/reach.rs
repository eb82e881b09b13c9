//! Verification of nodes, and errors for unreachable ones.

use std::time::Duration;

use plimsoll_apiserver::node_proxy::{SummaryError, Timeouts};
use serde_json::Value;
use tokio::net::TcpListener;

use super::front::Front;
use super::node::{self, Node, pod};

fn message(body: &str) -> String {
    let status: Value = serde_json::from_str(body).unwrap();
    status["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn unreachable_node_error_has_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let (authority, _directory) = node::authority();
    let front = Front::start(node::connector(&authority), pod(), node::object(port)).await;
    let (code, body) = front.get("/log?follow=1").await;
    assert_eq!(code, 500);
    assert_eq!(
        message(&body),
        format!(
            "Get \"https://127.0.0.1:{port}/containerLogs/default/web/app?follow=true\": dial tcp \
             127.0.0.1:{port}: connect: connection refused"
        )
    );
    let (code, body) = front.get("/nodes/n1/proxy/healthz").await;
    assert_eq!(code, 503);
    assert_eq!(
        message(&body),
        format!(
            "error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );
}

#[tokio::test]
async fn node_certificate_of_another_ca_is_rejected() {
    let node = Node::start().await;
    let (other, _directory) = node::authority();
    let front = Front::start(node::connector(&other), pod(), node.object.clone()).await;
    let (code, body) = front.get("/log").await;
    assert_eq!(code, 500);
    let reason = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message(&body).ends_with(reason), "{body}");
    let (code, body) = front.get("/nodes/n1/proxy/echo").await;
    assert_eq!(code, 503);
    assert!(message(&body).ends_with(reason), "{body}");

    // The caller may skip verification for a log; then the node rejects the API server.
    let (code, body) = front.get("/log?insecureSkipTLSVerifyBackend=true").await;
    assert_eq!(code, 500);
    assert!(message(&body).contains("remote error: tls"), "{body}");
}

#[tokio::test]
async fn node_certificate_for_another_name_is_rejected() {
    let node = Node::start().await;
    let mut elsewhere = node.object.clone();
    elsewhere["status"]["addresses"][0]["address"] = "127.0.0.2".into();
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let real = node.object["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let real = format!("127.0.0.1:{}", real.unwrap());
    tokio::spawn(async move {
        let (mut here, _) = listener.accept().await.unwrap();
        let mut there = tokio::net::TcpStream::connect(real).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
    });
    elsewhere["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] = port.into();
    let front = Front::start(node.connector.clone(), pod(), elsewhere).await;
    let (code, body) = front.get("/log").await;
    assert_eq!(code, 500);
    let reason = "x509: certificate is valid for 127.0.0.1, not 127.0.0.2";
    assert!(message(&body).ends_with(reason), "{body}");
}

#[tokio::test]
async fn silent_node_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (authority, _directory) = node::authority();
    let connector = node::connector(&authority).with_timeouts(Timeouts {
        handshake: Duration::from_millis(50),
        ..Timeouts::default()
    });
    let error = connector.summary(&node::object(port)).await.unwrap_err();
    assert!(matches!(error, SummaryError::Unreachable(_)));
    assert_eq!(error.to_string(), "net/http: TLS handshake timeout");
}
