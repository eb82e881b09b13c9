//! A server on a full disk: `/readyz` fails, deletes succeed, and it recovers without a restart.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::daemon::Daemon;

const PATIENCE: Duration = Duration::from_secs(60);

/// A small disk of its own, taken down at the end.
struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new(size: &str) -> Disk {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .status();
        assert!(mounted.expect("mount runs").success(), "mount needs root");
        Disk { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

struct Cluster {
    client: kube::Client,
}

impl Cluster {
    async fn of(data: &Path) -> Cluster {
        let file = kube::config::Kubeconfig::read_from(data.join("admin.kubeconfig"));
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file.expect("a kubeconfig"), &options);
        let mut config = config.await.expect("a cluster");
        config.default_retry = false;
        let client = kube::Client::try_from(config).expect("a client");
        Cluster { client }
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, name: &str) -> Result<(), kube::Error> {
        let map = json!({"metadata": {"name": name}, "data": {"a": "x".repeat(100_000)}});
        let map = serde_json::from_value(map).expect("a config map");
        self.maps().create(&PostParams::default(), &map).await?;
        Ok(())
    }

    async fn delete(&self, name: &str) {
        let deleted = self.maps().delete(name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The code and the text of a path.
    async fn ask(&self, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(kube::client::Body::empty());
        let response = self.client.send(request.expect("a request")).await;
        let (parts, body) = response.expect("an answer").into_parts();
        let body = http_body_util::BodyExt::collect(body)
            .await
            .expect("a body");
        let text = String::from_utf8(body.to_bytes().to_vec()).expect("text");
        (parts.status.as_u16(), text)
    }

    async fn is_ready_soon(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (code, text) = self.ask("/readyz?verbose").await;
            if code == 200 {
                return;
            }
            assert!(Instant::now() < deadline, "not ready: {text}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates until the disk is full; how many there are then, and the refusal.
    async fn fill(&self) -> (usize, kube::core::Status) {
        for number in 0..1000 {
            match self.create(&format!("m{number}")).await {
                Ok(()) => {}
                Err(kube::Error::Api(status)) => return (number, *status),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the disk is not full after 100 MB");
    }

    async fn assert_disk_is_full(&self, refusal: &kube::core::Status) {
        assert_eq!(refusal.code, 507, "{refusal:?}");
        let text = &refusal.message;
        assert!(
            text.contains("the disk is full: creates and updates that grow are refused"),
            "{text}"
        );
        let (code, text) = self.ask("/readyz").await;
        assert_eq!(code, 500, "{text}");
        assert!(text.contains("[-]store failed: the disk is full"), "{text}");
        assert_eq!(self.ask("/livez").await.0, 200);
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = events.list(&ListParams::default()).await.expect("a list");
            if all
                .items
                .iter()
                .any(|event| event.reason.as_deref() == Some("StorageFull"))
            {
                return;
            }
            assert!(Instant::now() < deadline, "no event of the alarm");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(future)
}

fn started(disk: &Disk) -> (Daemon, PathBuf) {
    let data = disk.path().join("data");
    (Daemon::server(disk.path(), &[]), data)
}

#[test]
#[ignore = "tier: root"]
fn store_on_a_full_disk_accepts_deletes_and_recovers() {
    let disk = Disk::new("32m");
    let (server, data) = started(&disk);
    block_on(async {
        let cluster = Cluster::of(&data).await;
        let (count, refusal) = cluster.fill().await;
        cluster.assert_disk_is_full(&refusal).await;
        assert!(
            count > 20,
            "{count} config maps of 100 kB on a disk of 32 MB"
        );
        for number in 0..count {
            cluster.delete(&format!("m{number}")).await;
        }
        cluster.is_ready_soon().await;
        for number in 0..10 {
            cluster
                .create(&format!("again{number}"))
                .await
                .expect("there is room");
        }
        println!("{count} config maps until the disk was full, all deleted, ready again");
    });
    let (code, log) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
}

#[test]
#[ignore = "tier: root"]
fn disk_filled_by_other_files_is_detected_and_recovers() {
    let disk = Disk::new("32m");
    let (server, data) = started(&disk);
    let hog = disk.path().join("hog");
    block_on(async {
        let cluster = Cluster::of(&data).await;
        for number in 0..5 {
            cluster
                .create(&format!("early{number}"))
                .await
                .expect("there is room");
        }
        // As much as there is.
        let _ = std::fs::write(&hog, vec![1; 64 * 1024 * 1024]);
        let (_, refusal) = cluster.fill().await;
        cluster.assert_disk_is_full(&refusal).await;
        for number in 0..5 {
            cluster.delete(&format!("early{number}")).await;
        }
    });
    // A server that starts on a full disk takes deletes too.
    server.stop(Signal::TERM);
    let (server, data) = started(&disk);
    block_on(async {
        let cluster = Cluster::of(&data).await;
        assert_eq!(cluster.ask("/readyz").await.0, 500);
        std::fs::remove_file(&hog).expect("a file");
        cluster.is_ready_soon().await;
        cluster.create("late").await.expect("there is room");
    });
    let (code, log) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
}
