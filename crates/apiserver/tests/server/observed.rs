//! Health, metrics and version.

use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, config_map};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_upstream_names() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    // Paths that clients make up must not fill memory.
    for number in 0..20 {
        let path = format!("/apis/made{number}.example.org/v1/things{number}");
        assert_eq!(admin.get(&path).await.code, 404);
    }
    let _watch = admin.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let answer = admin.get("/metrics").await;
    assert_eq!(answer.code, 200);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for name in [
        "apiserver_request_total",
        "apiserver_request_duration_seconds_bucket",
        "apiserver_request_duration_seconds_count",
        "apiserver_request_duration_seconds_sum",
        "apiserver_current_inflight_requests",
        "apiserver_longrunning_requests",
        "apiserver_storage_objects",
        "apiserver_storage_decode_errors_total",
        "process_resident_memory_bytes",
    ] {
        let sample = format!("\n{name}");
        assert!(text.contains(&sample), "{name} in\n{text}");
    }
    let counted = text.lines().find(|line| {
        line.starts_with("apiserver_request_total{")
            && line.contains("resource=\"configmaps\"")
            && line.contains("verb=\"POST\"")
            && line.contains("code=\"201\"")
    });
    assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{text}");
    assert!(!text.contains("things1"));
    assert!(!text.contains("example.org"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_lists_checks_verbosely() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let answer = admin.get("/readyz?verbose").await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.ends_with("readyz check passed\n"), "{text}");
    assert_eq!(admin.get("/healthz").await.body, "ok");
    let version = admin.get("/version").await.expect(200);
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&"1".into(), &"36".into())
    );
}
