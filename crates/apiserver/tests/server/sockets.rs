//! Clients that misbehave on the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::cluster::{Cluster, eventually, soon};
use super::objects::CONFIG_MAPS;
use super::slow_watchers::resident_mib;

/// A connection of the administrator that speaks HTTP/1.1, or whatever the test writes.
async fn connect(cluster: &Cluster) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = cluster.server.authority().certificate_pem();
    roots
        .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
        .unwrap();
    let own = cluster.certificate("admin", &["system:masters"]);
    let chain = vec![CertificateDer::from_pem_slice(own.certificate_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    let tcp = TcpStream::connect(cluster.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    soon("a handshake", connecting).await.unwrap()
}

/// Sends some bytes; returns everything received until the server closes.
async fn exchange(cluster: &Cluster, bytes: &[u8]) -> String {
    let mut stream = connect(cluster).await;
    // The server may reject it before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    // A reset is an end.
    let _ = soon("the end of the connection", reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status_of(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn non_http_bytes_close_the_connection() {
    let cluster = Cluster::start().await;
    for bytes in [
        &b"\0\0\0\0\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api HTTP/1.1\r\nno colon here\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let answer = exchange(&cluster, bytes).await;
        let status = status_of(&answer);
        assert!(
            answer.starts_with("HTTP/1.") && status.starts_with('4') || !answer.contains("HTTP/1."),
            "{answer}"
        );
    }
    cluster.admin().get(CONFIG_MAPS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_urls_get_a_response() {
    let cluster = Cluster::start().await;
    for (path, expected) in [
        ("/api/v1/namespaces/default/../kube-system/secrets", "404"),
        ("/api/v1/namespaces/..%2fkube-system/secrets", "200"),
        (
            "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets",
            "404",
        ),
        ("/api/v1/namespaces/%zz/pods", "404"),
        ("/api/v1/namespaces/%", "404"),
        ("/api/v1/namespaces/%ff%fe/pods", "404"),
        ("/api/v1/namespaces/default/pods?labelSelector=%zz", "200"),
        ("/api/v1/namespaces/default/pods?limit=%zz", "200"),
        ("/api/v1/namespaces/default/pods?%00=%00&&&==&=", "200"),
        ("//api//v1//pods", "404"),
        ("/.", "404"),
        ("/%2e%2e/api/v1", "404"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = exchange(&cluster, request.as_bytes()).await;
        let status = status_of(&answer);
        assert!(matches!(status, "200" | "400" | "404"), "{path}: {answer}");
        assert!(!answer.contains("\"items\":[{"), "{path}: {answer}");
        assert_eq!(status, expected, "{path}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_or_too_long_headers_are_refused() {
    let cluster = Cluster::start().await;
    let many: String = (0..5000).map(|n| format!("x-{n}: y\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(2_000_000));
    let long_path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2_000_000));
    for request in [
        format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{many}\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{long}\r\n"),
        long_path,
    ] {
        let answer = exchange(&cluster, request.as_bytes()).await;
        assert!(
            answer.is_empty() || status_of(&answer).starts_with('4'),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_request_leaves_no_state() {
    let cluster = Cluster::start().await;
    let head =
        format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
    for length in [0, 10, 100] {
        let mut stream = connect(&cluster).await;
        let body = "{\"metadata\":{\"name\":\"half\"}";
        let request = format!(
            "{head}content-length: 5000\r\n\r\n{}",
            &body[..length.min(body.len())]
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        drop(stream);
    }
    let admin = cluster.admin();
    eventually("nothing is in flight", async || {
        let metrics = admin.get("/metrics").await;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let idle = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0";
        text.contains(idle).then_some(())
    })
    .await;
    admin
        .get(&format!("{CONFIG_MAPS}/half"))
        .await
        .refused(404, "NotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_do_not_block_others() {
    let cluster = Cluster::start().await;
    let before = resident_mib();
    let mut silent = Vec::new();
    for number in 0..400 {
        if number % 10 == 0 {
            // A request of which only the beginning arrives.
            let mut stream = connect(&cluster).await;
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nhost:")
                .await
                .unwrap();
            silent.push((None, Some(stream)));
        } else {
            // Not even a handshake.
            let tcp = TcpStream::connect(cluster.address).await.unwrap();
            silent.push((Some(tcp), None));
        }
    }
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(cluster.admin().get("/readyz").await.code, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    let grown = resident_mib().saturating_sub(before);
    assert!(grown < 100, "{grown} MiB for clients that say nothing");
    // Connections without a handshake are closed.
    let (tcp, _) = &mut silent[1];
    let mut byte = [0];
    let reading = tcp.as_mut().unwrap().read(&mut byte);
    assert!(matches!(soon("the end", reading).await, Ok(0) | Err(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_survives_a_connection_flood() {
    let cluster = Cluster::start().await;
    for _ in 0..10 {
        let connecting = (0..100).map(|_| TcpStream::connect(cluster.address));
        let connections = futures::future::join_all(connecting).await;
        assert!(connections.iter().all(Result::is_ok));
        drop(connections);
    }
    cluster.admin().get(CONFIG_MAPS).await.expect(200);
}
