//! `nodes/NAME/proxy` and usage reports of nodes.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::front::{Front, get, read};
use super::node::{self, Node, pod};

#[tokio::test]
async fn proxy_forwards_any_request_without_credentials() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let request = Request::post("/nodes/n1/proxy/echo/a%2Fb?x=1&y")
        .header("host", "api.example")
        .header("authorization", "Bearer secret")
        .body(Full::new(Bytes::from_static(b"body")))
        .unwrap();
    let response = front.send(request).await;
    let headers = response.headers();
    assert_eq!(headers.get("access-control-allow-origin"), None);
    assert_eq!(headers["location"], "/nodes/n1/proxy/elsewhere");
    let (code, body) = read(response).await;
    assert_eq!(code, 200);
    assert_eq!(
        body,
        "POST /echo/a%2Fb?x=1&y host=Some(\"api.example\") auth=None \
         uri=Some(\"/nodes/n1/proxy/echo/a%2Fb\")\nbody"
    );
}

#[tokio::test]
async fn proxy_path_without_slash_redirects() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let response = front.send(get("/nodes/n1/proxy?a=b")).await;
    assert_eq!(response.status(), 301);
    assert_eq!(response.headers()["location"], "/nodes/n1/proxy/?a=b");
    let (code, _) = front.get("/nodes/n1/proxy/").await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn agent_port_may_be_named_and_other_ports_use_http() {
    let node = Node::start().await;
    let front = Front::of(&node).await;
    let port = node.object["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].clone();
    let (code, _) = front.get(&format!("/nodes/n1:{port}/proxy/echo")).await;
    assert_eq!(code, 200);

    let other = Front::of(&node).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut tcp, _) = listener.accept().await.unwrap();
        let _ = tcp.read(&mut [0; 1024]).await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        tcp.write_all(answer).await.unwrap();
    });
    let answer = other.get(&format!("/nodes/n1:{port}/proxy/")).await;
    assert_eq!(answer, (200, "ok".to_owned()));
}

#[tokio::test]
async fn local_addresses_are_proxied_only_if_allowed() {
    let (authority, _directory) = node::authority();
    let client = authority.node_client("api", &[], node::now()).unwrap();
    let trusted = authority.kubelet_serving_ca_pem();
    let connector = plimsoll_apiserver::node_proxy::NodeConnector::new(&client, &trusted);
    let front = Front::start(connector.unwrap(), pod(), node::object(1)).await;
    let (code, body) = front.get("/nodes/n1/proxy/healthz").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (code, &status["message"]),
        (400, &json!("address not allowed"))
    );
}

#[tokio::test]
async fn a_node_reports_its_usage() {
    let node = Node::start().await;
    let summary = node.connector.summary(&node.object).await.unwrap();
    assert_eq!(summary, json!({"node": {"nodeName": "n1"}}));
}
