//! Logs of containers, from real files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::kubelet_api::{FakeNode, KubeletApi, soon};
use super::runtime::FakeRuntime;

const LOGS: &str = "/containerLogs/default/web/app";

struct Log {
    kubelet_api: KubeletApi,
    path: PathBuf,
    _folder: TempDir,
}

impl Log {
    async fn new(text: &str) -> Log {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pod/app/0.log");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let runtime = FakeRuntime::with_app(path.to_str().unwrap());
        Log {
            kubelet_api: KubeletApi::new(FakeNode::with_web(runtime)).await,
            path,
            _folder: folder,
        }
    }

    async fn get(&self, query: &str) -> String {
        let (code, text) = soon(self.kubelet_api.get(&format!("{LOGS}{query}"))).await;
        assert_eq!(code, StatusCode::OK);
        text
    }

    async fn follow(&self, query: &str) -> Incoming {
        let request = Request::get(format!("{LOGS}?follow=true{query}"));
        let request = request.header("host", "a").body(Empty::<Bytes>::new());
        let response = soon(self.kubelet_api.send(None, request.unwrap())).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body()
    }
}

fn line(second: u32, text: &str) -> String {
    format!("1970-01-01T00:00:{second:02}Z stdout F {text}\n")
}

async fn append(path: &Path, text: &str) {
    let mut file = tokio::fs::OpenOptions::new();
    let mut file = file.append(true).create(true).open(path).await.unwrap();
    file.write_all(text.as_bytes()).await.unwrap();
    file.flush().await.unwrap();
}

/// Reads until the text has arrived, or the log has ended.
async fn until(body: &mut Incoming, expected: &str) -> String {
    let mut text = String::new();
    while text != expected {
        match soon(body.frame()).await {
            Some(frame) => {
                let data = frame.unwrap().into_data().unwrap();
                text.push_str(std::str::from_utf8(&data).unwrap());
            }
            None => break,
        }
        assert!(expected.starts_with(&text), "{text:?}");
    }
    text
}

#[tokio::test]
async fn log_options_select_the_lines() {
    let text: String = (1..=4).map(|n| line(n, &format!("line {n}"))).collect();
    let log = Log::new(&text).await;
    let cases = [
        ("", "line 1\nline 2\nline 3\nline 4\n"),
        ("?tailLines=2", "line 3\nline 4\n"),
        ("?tailLines=0", ""),
        ("?limitBytes=9", "line 1\nli"),
        ("?sinceTime=1970-01-01T00:00:04Z", "line 4\n"),
        (
            "?tailLines=1&timestamps=true",
            "1970-01-01T00:00:04.000000000Z line 4\n",
        ),
        ("?stream=Stderr", ""),
    ];
    for (query, expected) in cases {
        assert_eq!(log.get(query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn large_log_is_complete() {
    let text: String = (0..20_000).map(|n| line(n % 60, &n.to_string())).collect();
    let log = Log::new(&text).await;
    let expected: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(log.get("").await, expected);
}

#[tokio::test]
async fn missing_log_file_is_reported_in_the_body() {
    let log = Log::new("").await;
    std::fs::remove_file(&log.path).unwrap();
    let text = log.get("").await;
    assert!(
        text.starts_with("failed to try resolving symlinks in path"),
        "{text}"
    );
}

#[tokio::test]
async fn a_link_out_of_the_pods_directory_is_not_followed() {
    let log = Log::new("").await;
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, line(1, "secret")).unwrap();
    for target in [secret.as_path(), std::path::Path::new("/etc/hostname")] {
        std::fs::remove_file(&log.path).unwrap();
        std::os::unix::fs::symlink(target, &log.path).unwrap();
        let text = log.get("").await;
        assert!(
            text.ends_with("a link leads out of its directory"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_followed_log_shows_new_lines_until_its_container_has_ended() {
    let log = Log::new(&line(1, "old")).await;
    let mut body = log.follow("").await;
    assert_eq!(until(&mut body, "old\n").await, "old\n");
    let new = line(2, "new");
    let (half, rest) = new.split_at(30);
    append(&log.path, half).await;
    append(&log.path, rest).await;
    assert_eq!(until(&mut body, "new\n").await, "new\n");
    append(&log.path, &line(3, "last")).await;
    log.kubelet_api.node.runtime.stop("c1");
    assert_eq!(until(&mut body, "last\n").await, "last\n");
    assert!(soon(body.frame()).await.is_none());
}

#[tokio::test]
async fn following_continues_in_the_next_file_after_a_rotation() {
    let log = Log::new("").await;
    let mut body = log.follow("").await;
    append(&log.path, &line(1, "first")).await;
    assert_eq!(until(&mut body, "first\n").await, "first\n");
    append(&log.path, &line(2, "before")).await;
    std::fs::rename(&log.path, log.path.with_extension("log.old")).unwrap();
    append(&log.path, &line(3, "after")).await;
    let expected = "before\nafter\n";
    assert_eq!(until(&mut body, expected).await, expected);
}

#[tokio::test]
async fn followed_log_ends_when_the_server_stops() {
    let mut log = Log::new(&line(1, "old")).await;
    let mut body = log.follow("").await;
    assert_eq!(until(&mut body, "old\n").await, "old\n");
    let start = std::time::Instant::now();
    log.kubelet_api.stop.cancel();
    soon(&mut log.kubelet_api.task).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(4));
    assert!(soon(body.frame()).await.is_none());
}

#[tokio::test]
async fn following_ends_when_the_client_disconnects() {
    let log = Log::new(&line(1, "old")).await;
    let runtime = &log.kubelet_api.node.runtime;
    let before = Arc::strong_count(runtime);
    let mut body = log.follow("").await;
    assert_eq!(until(&mut body, "old\n").await, "old\n");
    assert!(Arc::strong_count(runtime) > before);
    drop(body);
    soon(async {
        while Arc::strong_count(runtime) > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn following_continues_in_a_truncated_file() {
    let log = Log::new(&line(1, "a long line before")).await;
    let mut body = log.follow("&tailLines=1").await;
    let old = "a long line before\n";
    assert_eq!(until(&mut body, old).await, old);
    std::fs::write(&log.path, line(2, "new")).unwrap();
    assert_eq!(until(&mut body, "new\n").await, "new\n");
}
