use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use super::*;

/// A server that gives each connection the next answer; answers with what it was asked.
fn serve(answers: Vec<String>) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            asked.push(String::from_utf8(request).unwrap());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    (port, server)
}

async fn fetch(port: u16, action: serde_json::Value) -> Result<Answer, FetchError> {
    let mut action: HTTPGetAction = serde_json::from_value(action).unwrap();
    action.port = k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(port.into());
    let container = Container::default();
    get(&action, &container, "127.0.0.1", Purpose::Probe).await
}

fn answer(head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn headers_are_those_of_the_kubelet_unless_given() {
    let (port, server) = serve(vec![answer("200 OK", "fine"), answer("404 Not Found", "")]);
    let plain = json!({"path": "/healthz", "port": 0});
    assert_eq!(fetch(port, plain).await.unwrap().body, "fine");
    let given = json!({"port": 0, "httpHeaders": [
        {"name": "Host", "value": "example.org"},
        {"name": "user-agent", "value": "me"},
        {"name": "Accept", "value": ""},
        {"name": "X-A", "value": "1"}, {"name": "X-A", "value": "2"},
    ]});
    assert_eq!(fetch(port, given).await.unwrap().code, 404);
    let asked = server.join().unwrap();
    let has = |index: usize, line: &str| {
        let asked = asked[index].to_ascii_lowercase();
        asked.contains(&format!("{}\r\n", line.to_ascii_lowercase()))
    };
    assert!(has(0, "GET /healthz HTTP/1.1"), "{}", asked[0]);
    assert!(has(0, &format!("host: 127.0.0.1:{port}")));
    assert!(has(0, "user-agent: kube-probe/1.36"));
    assert!(has(0, "accept: */*") && has(0, "connection: close"));
    assert!(has(1, "host: example.org") && has(1, "user-agent: me"));
    assert!(has(1, "x-a: 1") && has(1, "x-a: 2") && !asked[1].contains("accept"));
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let away = "302 Found\r\nlocation: http://example.org/";
    let near = "302 Found\r\nlocation: /there";
    let (port, server) = serve(vec![
        answer(near, ""),
        answer("200 OK", "there"),
        answer(away, "gone"),
    ]);
    let plain = json!({"port": 0});
    assert_eq!(fetch(port, plain.clone()).await.unwrap().body, "there");
    let left = fetch(port, plain).await.unwrap();
    assert_eq!((left.code, left.body.as_str()), (302, "gone"));
    server.join().unwrap();
}

#[tokio::test]
async fn redirects_and_body_size_are_limited() {
    let (port, server) = serve(vec![answer("301 Moved\r\nlocation: /", ""); 10]);
    let error = fetch(port, json!({"port": 0})).await.unwrap_err();
    assert!(error.to_string().ends_with("stopped after 10 redirects"));
    server.join().unwrap();
    let (port, server) = serve(vec![answer("200 OK", &"x".repeat(20_000))]);
    let long = fetch(port, json!({"port": 0})).await.unwrap();
    assert_eq!(long.body.len(), BODY_BYTES);
    drop(server);
}

#[tokio::test]
async fn http_errors_match_go() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = fetch(port, json!({"port": 0, "path": "/x"}))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "Get \"http://127.0.0.1:{port}/x\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );
    let (port, server) = serve(vec![String::new()]);
    let error = fetch(port, json!({"port": 0})).await.unwrap_err();
    assert!(error.to_string().ends_with(": EOF"), "{error}");
    server.join().unwrap();
}
