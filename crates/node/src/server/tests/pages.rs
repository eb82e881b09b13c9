//! Pages that only show.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_core::eviction::record::{Record, StateRecord};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::kubelet_api::{FakeNode, KubeletApi, open_to_all, soon};
use super::runtime::FakeRuntime;
use crate::server::Server;

async fn kubelet_api() -> KubeletApi {
    KubeletApi::new(FakeNode::with_web(FakeRuntime::with_app("/nowhere"))).await
}

#[tokio::test]
async fn pods_page_is_the_kubelets_pod_list() {
    let kubelet_api = kubelet_api().await;
    let (code, text) = soon(kubelet_api.get("/pods")).await;
    assert_eq!(code, StatusCode::OK);
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["kind"], "PodList");
    assert_eq!(list["items"][0]["metadata"]["name"], "web");
    assert_eq!(list["items"][0]["kind"], Value::Null);
    let (_, text) = soon(kubelet_api.get("/runningpods/")).await;
    let none = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":null}\n";
    assert_eq!(text, none);
}

#[tokio::test]
async fn usage_measurements_and_configuration_are_shown() {
    let kubelet_api = kubelet_api().await;
    let summary = |small| json!({"node": {"nodeName": "n1"}, "small": small}).to_string();
    let cases = [
        ("/stats/summary", summary(false)),
        ("/stats/summary?only_cpu_and_memory=true", summary(true)),
        ("/metrics", "# Agent\n".to_owned()),
        ("/metrics/resource", "# Resource\n".to_owned()),
        ("/metrics/cadvisor", "# Cadvisor\n".to_owned()),
        ("/metrics/probes", "# Probes\n".to_owned()),
        (
            "/configz",
            r#"{"kubeletconfig":{"kind":"KubeletConfiguration"}}"#.to_owned(),
        ),
    ];
    for (path, expected) in cases {
        let answer = soon(kubelet_api.get(path)).await;
        assert_eq!(answer, (StatusCode::OK, expected), "{path}");
    }
    *kubelet_api.node.trouble.lock().unwrap() = Some("no stats".to_owned());
    let answer = soon(kubelet_api.get("/stats/summary")).await;
    let expected = "Internal Error: no stats".to_owned();
    assert_eq!(answer, (StatusCode::INTERNAL_SERVER_ERROR, expected));
}

/// The eviction of a pod at a second.
fn eviction(second: u32, name: &str) -> Record {
    let record = json!({
        "at": format!("2026-01-01T00:00:0{second}Z"),
        "settings": {
            "profile": "kubernetes-1.36", "thresholds": [], "dedicatedImageFs": false,
            "dedicatedContainerFs": false, "pressureTransitionPeriod": "5m0s",
            "maxPodGracePeriodSeconds": 0, "localStorageCapacityIsolation": true,
            "memorySource": "workingSet",
        },
        "before": StateRecord::default(),
        "observation": { "node": {}, "pods": [] },
        "pods": [], "omittedPods": 0,
        "decision": {
            "verdict": "evicting", "conditions": [], "lines": [], "memorySources": [],
            "ranking": [], "reclaims": [], "statsAges": [], "nextStepBy": null,
            "evictions": [{
                "pod": format!("default/{name}"), "uid": format!("uid-{name}"),
                "signal": "memory.available", "gracePeriodSeconds": 1, "message": "",
                "annotations": {}, "exhaustedInNanos": null,
            }],
        },
    });
    serde_json::from_value(record).unwrap()
}

#[tokio::test]
async fn decisions_are_shown_by_pod_and_the_latest_if_not_all() {
    let mut node = FakeNode::with_web(FakeRuntime::default());
    let evictions = [eviction(1, "a"), eviction(2, "b"), eviction(3, "a")];
    node.decisions = evictions.into_iter().map(Arc::new).collect();
    let kubelet_api = KubeletApi::new(node).await;
    let cases = [
        ("", 3, 1),
        ("?pod=default/a", 2, 1),
        ("?pod=default%2Fa&limit=1", 1, 3),
        ("?uid=uid-b", 1, 2),
    ];
    for (query, count, first) in cases {
        let (code, text) = soon(kubelet_api.get(&format!("/plimsoll/decisions{query}"))).await;
        assert_eq!(code, StatusCode::OK);
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(list["kind"], "EvictionDecisionList");
        let items: Vec<Record> = serde_json::from_value(list["items"].clone()).unwrap();
        assert_eq!(items.len(), count, "{query}");
        assert_eq!(items[0].at, eviction(first, "a").at, "{query}");
    }
    let refused = soon(kubelet_api.get("/plimsoll/decisions?limit=x")).await;
    assert_eq!(refused.0, StatusCode::BAD_REQUEST);
    let (_, lines) = soon(kubelet_api.get("/plimsoll/lines")).await;
    let lines: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(lines["items"], json!([]));
}

#[tokio::test]
async fn the_order_of_eviction_is_shown_for_a_signal() {
    let kubelet_api = kubelet_api().await;
    let (code, text) = soon(kubelet_api.get("/plimsoll/ranking?signal=pid.available")).await;
    assert_eq!(code, StatusCode::OK, "{text}");
    let ranking: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(ranking["kind"], "EvictionRanking");
    assert_eq!(ranking["signal"], "pid.available");
    let (_, text) = soon(kubelet_api.get("/plimsoll/ranking")).await;
    assert!(text.contains("memory.available"), "{text}");
    let refused = soon(kubelet_api.get("/plimsoll/ranking?signal=memory")).await;
    let expected = "signal \"memory\" is no eviction signal".to_owned();
    assert_eq!(refused, (StatusCode::BAD_REQUEST, expected));
}

#[tokio::test]
async fn healthz_is_ok_unless_verbose_is_requested() {
    let kubelet_api = kubelet_api().await;
    let ok = |text: &str| (StatusCode::OK, text.to_owned());
    assert_eq!(soon(kubelet_api.get("/healthz")).await, ok("ok"));
    assert_eq!(soon(kubelet_api.get("/healthz/syncloop")).await, ok("ok"));
    let verbose = "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n";
    assert_eq!(soon(kubelet_api.get("/healthz?verbose")).await, ok(verbose));

    *kubelet_api.node.trouble.lock().unwrap() =
        Some("sync Loop took longer than expected".to_owned());
    let bad = |text: &str| (StatusCode::INTERNAL_SERVER_ERROR, text.to_owned());
    let all = "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n";
    assert_eq!(soon(kubelet_api.get("/healthz")).await, bad(all));
    let one = "internal server error: sync Loop took longer than expected\n";
    assert_eq!(soon(kubelet_api.get("/healthz/syncloop")).await, bad(one));
    assert_eq!(
        soon(kubelet_api.get("/healthz?exclude=syncloop")).await,
        ok("ok")
    );
}

#[tokio::test]
async fn not_found_responses_match_upstream() {
    let kubelet_api = kubelet_api().await;
    let cases = [
        (Method::GET, "/nothing", 404, "404 page not found\n"),
        (Method::GET, "/exec/only", 404, "404: Page Not Found"),
        (Method::POST, "/pods", 405, "405: Method Not Allowed"),
        (
            Method::GET,
            "/exec/default/web/app",
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            Method::GET,
            "/exec/default/gone/app?output=1",
            404,
            "pod does not exist",
        ),
        (
            Method::GET,
            "/exec/default/web/late?output=1",
            500,
            "container not found (\"late\")",
        ),
        (
            Method::GET,
            "/exec/default/web/app?output=1",
            500,
            "Upgrade request required\n",
        ),
        (
            Method::GET,
            "/attach/default/web/late?output=1",
            500,
            "container late not found in pod web_default",
        ),
        (
            Method::GET,
            "/containerLogs/default/gone/app",
            404,
            "pod \"gone\" does not exist",
        ),
        (
            Method::GET,
            "/containerLogs/default/web/x",
            404,
            "container \"x\" not found in pod \"web\"",
        ),
        (
            Method::GET,
            "/containerLogs/default/web/late",
            400,
            "container \"late\" in pod \"web\" is waiting to start: ContainerCreating",
        ),
        (
            Method::GET,
            "/containerLogs/default/web/app?previous=true",
            400,
            "previous terminated container \"app\" in pod \"web\" not found",
        ),
        (
            Method::GET,
            "/containerLogs/default/web/app?tailLines=-1",
            422,
            "{\"message\": \"Invalid request.\"}",
        ),
        (
            Method::POST,
            "/run/default/web/app?cmd=echo+a",
            200,
            "echo a!",
        ),
        (
            Method::POST,
            "/run/default/web/app?cmd=false",
            500,
            "command 'false' exited with 1: !",
        ),
    ];
    for (method, path, code, text) in cases {
        let answer = soon(kubelet_api.ask(method, path)).await;
        let code = StatusCode::from_u16(code).unwrap();
        assert_eq!(answer, (code, text.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn without_debugging_handlers_requests_are_refused() {
    let node = FakeNode::with_web(FakeRuntime::default());
    let kubelet_api = KubeletApi::with(node, |ca| {
        let mut options = open_to_all(ca);
        options.debugging_handlers = false;
        options
    });
    let kubelet_api = kubelet_api.await;
    let answer = soon(kubelet_api.get("/exec/default/web/app?output=1")).await;
    let expected = "Debug endpoints are disabled.\n".to_owned();
    assert_eq!(answer, (StatusCode::METHOD_NOT_ALLOWED, expected));
    assert_eq!(soon(kubelet_api.get("/pods")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn node_logs_are_served_and_no_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("log");
    std::fs::create_dir_all(root.join("pods")).unwrap();
    std::fs::write(folder.path().join("secret"), "hidden").unwrap();
    std::fs::write(root.join("a <b>.log"), "text").unwrap();
    std::fs::write(root.join("pods/x"), "inner").unwrap();
    std::os::unix::fs::symlink(root.join("pods/x"), root.join("inside")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), root.join("out")).unwrap();
    let node = FakeNode::with_web(FakeRuntime::default());
    let kubelet_api = KubeletApi::with(node, |ca| {
        let mut options = open_to_all(ca);
        options.system_logs = Some(root.clone());
        options
    });
    let kubelet_api = kubelet_api.await;
    let listing = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n\
        <a href=\"a%20%3Cb%3E.log\">a &lt;b&gt;.log</a>\n\
        <a href=\"inside\">inside</a>\n<a href=\"out\">out</a>\n\
        <a href=\"pods/\">pods/</a>\n</pre>\n";
    let cases = [
        ("/logs/", 200, listing),
        ("/logs/a%20%3Cb%3E.log", 200, "text"),
        ("/logs/pods/x", 200, "inner"),
        ("/logs/inside", 200, "inner"),
        ("/logs/out", 404, "404 page not found\n"),
        ("/logs/nothing", 404, "404 page not found\n"),
        ("/logs/..%2fsecret", 404, "404 page not found\n"),
        ("/logs/pods", 301, ""),
    ];
    for (path, code, text) in cases {
        let answer = soon(kubelet_api.get(path)).await;
        let code = StatusCode::from_u16(code).unwrap();
        assert_eq!(answer, (code, text.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn http2_requests_are_served() {
    let kubelet_api = kubelet_api().await;
    let io = TokioIo::new(kubelet_api.dial(None, b"h2").await);
    let executor = TokioExecutor::new();
    let handshake = hyper::client::conn::http2::handshake(executor, io);
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/healthz").body(Empty::<Bytes>::new());
    let response = soon(sender.send_request(request.unwrap())).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, "ok");
}

#[tokio::test]
async fn stopped_server_closes_its_port_and_connections() {
    let mut kubelet_api = kubelet_api().await;
    let mut idle = kubelet_api.connect(None).await;
    kubelet_api.stop.cancel();
    soon(&mut kubelet_api.task).await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(idle.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
    assert!(TcpStream::connect(kubelet_api.address).await.is_err());
}

#[tokio::test]
async fn the_health_port_needs_no_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve_health(listener, stop.clone()));
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut text = String::new();
    soon(socket.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(text.ends_with("\r\n\r\nok"), "{text}");
    stop.cancel();
    soon(serving).await.unwrap();
}
