//! `plimsoll store`: snapshots, and maintenance of stopped servers' stores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch};
use plimsoll_apiserver::store::{RedbOptions, RedbStore, Store, Txn};
use plimsoll_testkit::etcd::Etcd;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::{Run, plimsoll};

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

fn succeeds(arguments: &[&str]) -> Run {
    let run = plimsoll(&[&["store"], arguments].concat(), "");
    assert_eq!(
        run.code,
        Some(0),
        "{arguments:?}: {}{}",
        run.stdout,
        run.stderr
    );
    run
}

#[track_caller]
fn fails(arguments: &[&str], code: i32, parts: &[&str]) {
    let run = plimsoll(&[&["store"], arguments].concat(), "");
    let text = format!("{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(code), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

/// A stopped server with what every cluster has.
fn stopped() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
    folder
}

async fn client(data: &Path) -> kube::Client {
    let file = kube::config::Kubeconfig::read_from(data.join("admin.kubeconfig"));
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file.expect("a kubeconfig"), &options);
    kube::Client::try_from(config.await.expect("a cluster")).expect("a client")
}

#[test]
fn a_snapshot_of_a_stopped_server_is_shown_checked_and_restored() {
    let folder = stopped();
    let (data, file) = (path(&folder, "data"), path(&folder, "backup"));
    let taken = succeeds(&["snapshot", &file, "--data-dir", &data]);
    let lines: Vec<&str> = taken.stdout.lines().collect();
    assert!(
        lines[0].starts_with("HASH               REVISION   TOTAL KEYS   TOTAL SIZE"),
        "{lines:?}"
    );
    assert_eq!(succeeds(&["status", &file]).stdout, taken.stdout);
    let shown = succeeds(&["status", &file, "-o", "json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert!(lines[1].starts_with(&shown["hash"].as_str().expect("a hash")[..16]));
    assert!(shown["totalKey"].as_u64() > Some(50), "{shown}");

    let new = path(&folder, "new");
    let restored = succeeds(&["restore", &file, "--data-dir", &new]).stdout;
    let keys = format!("restored {} keys to {new}/store.redb\n", shown["totalKey"]);
    assert!(restored.starts_with(&keys), "{restored}");
    assert!(
        restored.contains("Copy the keys of the old server to"),
        "{restored}"
    );
    fails(
        &["restore", &file, "--data-dir", &new],
        1,
        &[
            "store.redb already exists",
            "hint: name another directory, or replace the existing store with --force",
        ],
    );
    succeeds(&["restore", &file, "--data-dir", &new, "--force"]);
    // Nothing else is left in the directory.
    let mut left: Vec<String> = std::fs::read_dir(&new)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect();
    left.sort();
    assert_eq!(left, ["server.lock", "store.redb"]);

    let mut content = std::fs::read(&file).expect("a snapshot");
    content.truncate(content.len() - 10);
    std::fs::write(&file, &content).expect("the file is ours");
    let cut_off = "the snapshot is truncated";
    fails(&["status", &file], 1, &[cut_off]);
    fails(
        &["restore", &file, "--data-dir", &path(&folder, "other")],
        1,
        &[cut_off],
    );
    assert!(!folder.path().join("other/store.redb").exists());
}

#[test]
fn a_check_finds_damage_and_names_the_key() {
    let folder = stopped();
    let data = path(&folder, "data");
    let sound = succeeds(&["verify", "--data-dir", &data]).stdout;
    assert!(sound.ends_with("\nNo problems found.\n"), "{sound}");
    let store = folder.path().join("data/store.redb");
    let mut content = std::fs::read(&store).expect("a store");
    let key = b"/registry/configmaps/kube-public/kube-root-ca.crt";
    let found = content.windows(key.len()).rposition(|part| part == key);
    content[found.expect("every namespace has it") + key.len() + 100] ^= 1;
    std::fs::write(&store, &content).expect("the file is ours");
    let key = "/registry/configmaps/kube-public/kube-root-ca.crt";
    let damaged = format!("{key}: the checksum of the value does not match");
    fails(
        &["verify", "--data-dir", &data],
        1,
        &[&damaged, "problems found."],
    );
    fails(
        &["verify", "--data-dir", &data, "-o", "json"],
        1,
        &["\"isHistory\": false", key],
    );
    assert!(
        std::fs::read(&store).expect("a store") == content,
        "the file was changed"
    );
    // The server starts, and all but the damaged object is there.
    let backup = path(&folder, "backup");
    fails(
        &["snapshot", &backup, "--data-dir", &data],
        1,
        &[
            "1 keys cannot be read and are missing from the snapshot",
            "plimsoll store verify",
        ],
    );
    succeeds(&["status", &backup]);
    let (code, log) = Daemon::server(folder.path(), &[]).stop(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("internal error"), "{log}");
}

#[test]
fn a_store_in_use_is_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Daemon::server(folder.path(), &[]);
    let data = path(&folder, "data");
    let in_use = ["is in use by plimsoll server", "hint: "];
    let backup = path(&folder, "backup");
    fails(&["verify", "--data-dir", &data], 1, &in_use);
    fails(&["compact", "--data-dir", &data], 1, &in_use);
    fails(
        &["snapshot", &backup, "--data-dir", &data],
        1,
        &["omit --data-dir to take a snapshot of a running server"],
    );
    drop(server);
    let nothing = path(&folder, "nothing");
    fails(
        &["verify", "--data-dir", &nothing],
        1,
        &["store.redb does not exist", "hint: "],
    );
    fails(
        &["status", &path(&folder, "log")],
        1,
        &["the file is not a snapshot of Plimsoll"],
    );
    fails(
        &["copy", "--from", &data, "--to", "redb:/x"],
        2,
        &["expected redb:DIR, etcd://HOST:PORT"],
    );
    fails(
        &["copy", "--from", "redb:/x", "--to", "redb:/x"],
        2,
        &["name the same store"],
    );
}

#[test]
fn compacting_releases_the_space_of_history() {
    let folder = stopped();
    let data = folder.path().join("data");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = RedbStore::open(&data.join("store.redb"), &RedbOptions::default());
        let store = store.expect("the server has stopped");
        for number in 0..20_u8 {
            let value = vec![number; 100_000];
            store
                .txn(Txn::new().put("/other", value))
                .await
                .expect("room");
        }
        store.close().await.expect("closes");
    });
    let before = std::fs::metadata(data.join("store.redb"))
        .expect("a file")
        .len();
    let shown = succeeds(&["compact", "--data-dir", &data.display().to_string()]).stdout;
    assert!(shown.starts_with("SIZE BEFORE   SIZE AFTER\n"), "{shown}");
    let after = std::fs::metadata(data.join("store.redb"))
        .expect("a file")
        .len();
    assert!(after < before / 2, "{before} to {after} bytes");
    succeeds(&["verify", "--data-dir", &data.display().to_string()]);
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
}

const PODS: usize = 10_000;

fn pod(number: usize) -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": format!("web-{number:05}"),
            "namespace": "default",
            "uid": format!("00000000-0000-4000-8000-{number:012}"),
            "creationTimestamp": "2026-11-19T12:00:00Z",
            "labels": {"app": "web"},
        },
        "spec": {
            "containers": [{
                "name": "main",
                "image": "registry.example/web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    })
}

/// Puts pods into the store of a stopped server.
async fn fill(data: &Path) {
    let store = RedbStore::open(&data.join("store.redb"), &RedbOptions::default());
    let store = Arc::new(store.expect("the server has stopped"));
    let parts = (0..PODS).collect::<Vec<_>>();
    let writing = parts.chunks(100).map(|numbers| {
        let mut txn = Txn::new();
        for number in numbers {
            let key = format!("/registry/pods/default/web-{number:05}");
            txn = txn.put(key, pod(*number).to_string());
        }
        let store = Arc::clone(&store);
        async move { store.txn(txn).await.expect("room") }
    });
    futures::future::join_all(writing).await;
    store.close().await.expect("closes");
}

/// Creates, changes and deletes pods until `stop` is set; how often.
async fn write(client: kube::Client, writer: usize, stop: Arc<AtomicBool>) -> usize {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let number = writer + 4 * written;
        let name = format!("web-{:05}", number % PODS);
        let label = json!({"metadata": {"labels": {"written": written.to_string()}}});
        let patched = pods
            .patch(&name, &PatchParams::default(), &Patch::Merge(label))
            .await;
        patched.expect("the pod is there");
        let mut new: Pod = serde_json::from_value(pod(PODS + number)).expect("a pod");
        new.metadata.uid = None;
        new.metadata.creation_timestamp = None;
        new.status = None;
        pods.create(&PostParams::default(), &new)
            .await
            .expect("created");
        if written % 2 == 1 {
            let gone = format!("web-{:05}", PODS + number - 4);
            let now = DeleteParams::default().grace_period(0);
            pods.delete(&gone, &now).await.expect("deleted");
        }
        written += 1;
    }
    written
}

/// All pods, by a list at a revision or of now.
async fn listed(client: &kube::Client, revision: Option<&str>) -> Vec<Pod> {
    let pods: Api<Pod> = Api::all(client.clone());
    let params = match revision {
        Some(revision) => ListParams::default()
            .at(revision)
            .matching(VersionMatch::Exact),
        None => ListParams::default(),
    };
    pods.list(&params).await.expect("a list").items
}

#[test]
#[ignore = "tier: tools"]
fn a_snapshot_of_a_live_server_under_writes_restores_to_one_revision() {
    let folder = stopped();
    let data = folder.path().join("data");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(fill(&data));
    let server = Daemon::server(folder.path(), &[]);
    let live = runtime.block_on(client(&data));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| runtime.spawn(write(live.clone(), writer, Arc::clone(&stop))))
        .collect();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let (file, kubeconfig) = (path(&folder, "backup"), data.join("admin.kubeconfig"));
    let kubeconfig = kubeconfig.display().to_string();
    let taken = succeeds(&["snapshot", &file, "--kubeconfig", &kubeconfig, "-o", "json"]);
    let taken: Value = serde_json::from_str(&taken.stdout).expect("JSON");
    std::thread::sleep(std::time::Duration::from_secs(1));
    stop.store(true, Ordering::Relaxed);
    let written: usize = writers
        .into_iter()
        .map(|writer| runtime.block_on(writer).expect("no write failed"))
        .sum();
    let revision = taken["revision"].to_string();
    // The history of the server has the objects of that revision too, on another way.
    let expected = runtime.block_on(listed(&live, Some(&revision)));
    let now = runtime.block_on(listed(&live, None));
    assert!(
        expected.len() > PODS && written > 20,
        "{} pods, {written} writes",
        expected.len()
    );
    assert_ne!(expected, now, "nothing was written after the snapshot");
    server.stop(Signal::TERM);

    let other = tempfile::tempdir().expect("a temporary folder");
    let new = other.path().join("data");
    succeeds(&["restore", &file, "--data-dir", &new.display().to_string()]);
    std::fs::create_dir(new.join("pki")).expect("a folder");
    for entry in std::fs::read_dir(data.join("pki")).expect("keys") {
        let entry = entry.expect("an entry");
        let copied = std::fs::copy(entry.path(), new.join("pki").join(entry.file_name()));
        copied.expect("copied");
    }
    let server = Daemon::server(other.path(), &[]);
    let restored = runtime.block_on(client(&new));
    let found = runtime.block_on(listed(&restored, None));
    assert_eq!(found.len(), expected.len());
    assert!(
        found == expected,
        "the restored pods are not those of revision {revision}"
    );
    // Clients of the old server have to list again.
    let pods: Api<Pod> = Api::all(restored);
    let old = ListParams::default()
        .at(&revision)
        .matching(VersionMatch::Exact);
    let refused = runtime
        .block_on(pods.list(&old))
        .expect_err("an old revision");
    let kube::Error::Api(refused) = refused else {
        panic!("{refused}");
    };
    assert_eq!(refused.code, 410, "{refused:?}");
    println!(
        "{} pods at revision {revision}, {written} writes meanwhile",
        found.len()
    );
    server.stop(Signal::TERM);
}

#[test]
#[ignore = "tier: tools"]
fn objects_move_to_etcd_and_back() {
    let folder = stopped();
    let data = path(&folder, "data");
    let etcd = Etcd::start();
    let address = etcd.endpoint().replace("http://", "etcd://");
    let from = format!("redb:{data}");
    let copied = succeeds(&["copy", "--from", &from, "--to", &address]).stdout;
    fails(
        &["copy", "--from", &from, "--to", &address],
        1,
        &["the target is not empty", "hint: copy to an empty etcd"],
    );
    // The keys are those of the data directory.
    let server = Daemon::server(folder.path(), &["--store", &address]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let in_etcd = runtime.block_on(maps(&folder));
    server.stop(Signal::TERM);
    let new = tempfile::tempdir().expect("a temporary folder");
    let target = format!("redb:{}", path(&new, "data"));
    let back = succeeds(&["copy", "--from", &address, "--to", &target]).stdout;
    assert!(
        copied.starts_with("copied ") && back.starts_with("copied "),
        "{copied}{back}"
    );
    std::fs::rename(folder.path().join("data/pki"), new.path().join("data/pki")).expect("moved");
    let server = Daemon::server(new.path(), &[]);
    let in_file = runtime.block_on(maps(&new));
    server.stop(Signal::TERM);
    assert!(in_etcd.len() >= 4, "{in_etcd:?}");
    assert_eq!(in_file, in_etcd);
}

async fn maps(folder: &TempDir) -> Vec<ConfigMap> {
    let client = client(&folder.path().join("data")).await;
    let maps: Api<ConfigMap> = Api::all(client);
    maps.list(&ListParams::default())
        .await
        .expect("a list")
        .items
}
