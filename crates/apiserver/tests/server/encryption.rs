//! Encryption at rest, configured with an EncryptionConfiguration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_apiserver::encryption::{EncryptedStore, Keys, follow};
use plimsoll_apiserver::store::{EtcdOptions, EtcdStore, RedbOptions, RedbStore, Store};
use plimsoll_testkit::etcd::Etcd;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::Cluster;

const PASSWORD: &str = "correct-horse-battery-staple";
const SECRET: &str = "/api/v1/namespaces/default/secrets/db";
const STORED: &[u8] = b"/registry/secrets/default/db";
const PATIENCE: Duration = Duration::from_secs(20);

/// A configuration whose first key is the first one; the byte makes the key.
fn configuration(keys: &[(&str, u8)], further: &str) -> String {
    use base64::Engine;
    let keys = keys.iter().map(|(name, byte)| {
        let secret = base64::engine::general_purpose::STANDARD.encode([*byte; 32]);
        format!("      - {{name: {name}, secret: {secret}}}\n")
    });
    let keys: String = keys.collect();
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers:\n  - aesgcm:\n      keys:\n{keys}{further}"
    )
}

fn keys(keys: &[(&str, u8)]) -> Keys {
    Keys::parse(&configuration(keys, "  - identity: {}\n")).unwrap()
}

struct Setup {
    folder: Arc<TempDir>,
    file: Arc<RedbStore>,
}

impl Setup {
    fn new() -> Setup {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let path = folder.path().join("store.redb");
        let file = Arc::new(RedbStore::open(&path, &RedbOptions::default()).unwrap());
        Setup { folder, file }
    }

    async fn serve(&self, keys: Keys) -> Cluster {
        let store = EncryptedStore::new(Arc::clone(&self.file) as Arc<dyn Store>, keys);
        Cluster::open(Arc::new(store), Arc::clone(&self.folder), |_| {}).await
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("store.redb")).unwrap()
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// The password as it is in the object's JSON.
fn encoded() -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(PASSWORD)
}

async fn create(cluster: &Cluster) {
    let admin = cluster.admin();
    let body = json!({"metadata": {"name": "db"}, "stringData": {"password": PASSWORD}});
    let path = "/api/v1/namespaces/default/secrets";
    assert_eq!(admin.post(path, &body).await.code, 201);
    let body = json!({"metadata": {"name": "plain"}, "data": {"greeting": "this is not secret"}});
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(admin.post(path, &body).await.code, 201);
}

async fn password(cluster: &Cluster) -> Value {
    let answer = cluster.admin().get(SECRET).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    answer.json()["data"]["password"].clone()
}

/// The stored value below encryption.
async fn stored(store: &dyn Store) -> Vec<u8> {
    let entry = store.get(STORED, None).await.unwrap().entry.unwrap();
    entry.value.to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_encrypted_on_disk() {
    let setup = Setup::new();
    let cluster = setup.serve(keys(&[("key1", 1)])).await;
    create(&cluster).await;
    assert_eq!(password(&cluster).await, encoded());
    let bytes = setup.bytes();
    assert!(!holds(&bytes, &encoded()) && !holds(&bytes, PASSWORD));
    assert!(holds(&bytes, "this is not secret"));
    let value = stored(setup.file.as_ref()).await;
    assert!(value.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    // A snapshot shows no more than the file.
    let mut snapshot = cluster.store.snapshot("/registry/".into()).await.unwrap();
    while let Some(entries) = snapshot.next_chunk().await.unwrap() {
        assert!(
            entries
                .iter()
                .all(|entry| !holds(&entry.entry.value, &encoded()))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_without_changes_encrypts_with_the_first_key() {
    let setup = Setup::new();
    let cluster = setup
        .serve(Keys::parse(&configuration(&[("old", 1)], "")).unwrap())
        .await;
    create(&cluster).await;
    drop(cluster);
    let cluster = setup.serve(keys(&[("new", 2), ("old", 1)])).await;
    assert_eq!(password(&cluster).await, encoded());
    assert!(
        stored(setup.file.as_ref())
            .await
            .starts_with(b"k8s:enc:aesgcm:v1:old:")
    );
    for _ in 0..2 {
        // Like kubectl get -o json | kubectl replace -f -.
        let secret = cluster.admin().get(SECRET).await.json();
        let answer = cluster.admin().put(SECRET, &secret).await;
        assert_eq!(answer.code, 200, "{answer:?}");
        assert!(
            stored(setup.file.as_ref())
                .await
                .starts_with(b"k8s:enc:aesgcm:v1:new:")
        );
    }
    let version = cluster.admin().get(SECRET).await.json();
    let again = cluster.admin().put(SECRET, &version).await.json();
    assert_eq!(
        again, version,
        "a secret that is encrypted with the first key is not written again"
    );
    drop(cluster);
    let cluster = setup.serve(keys(&[("new", 2)])).await;
    assert_eq!(password(&cluster).await, encoded());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_key_makes_only_its_secret_unreadable() {
    let setup = Setup::new();
    let cluster = setup.serve(keys(&[("lost", 1)])).await;
    create(&cluster).await;
    drop(cluster);
    let cluster = setup.serve(keys(&[("new", 2)])).await;
    let admin = cluster.admin();
    let body = json!({"metadata": {"name": "other"}, "stringData": {"a": "b"}});
    let answer = admin
        .post("/api/v1/namespaces/default/secrets", &body)
        .await;
    assert_eq!(answer.code, 201, "{answer:?}");
    let path = "/api/v1/namespaces/default/secrets/other";
    assert_eq!(admin.get(path).await.code, 200);
    let entry = cluster
        .store
        .get(STORED, None)
        .await
        .unwrap()
        .entry
        .unwrap();
    assert_eq!(
        entry.unreadable.as_deref(),
        Some("it is encrypted with key \"lost\" of provider aesgcm, which is not configured")
    );
    assert!(entry.value.is_empty());
    let lost = admin.get(SECRET).await;
    assert!(lost.code >= 400, "{lost:?}");
    let list = admin.get("/api/v1/namespaces/default/secrets").await;
    assert_eq!(list.code, 200, "{list:?}");
    assert_eq!(list.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_configuration_is_reloaded_at_runtime() {
    let setup = Setup::new();
    let file = setup.folder.path().join("encryption.yaml");
    let text = configuration(&[("old", 1)], "");
    std::fs::write(&file, &text).unwrap();
    let inner = Arc::clone(&setup.file) as Arc<dyn Store>;
    let store = Arc::new(EncryptedStore::new(inner, Keys::parse(&text).unwrap()));
    follow(&store, file.clone(), text);
    let folder = Arc::clone(&setup.folder);
    let cluster = Cluster::open(Arc::clone(&store) as Arc<dyn Store>, folder, |_| {}).await;
    create(&cluster).await;
    assert!(!store.is_stale(STORED).await.unwrap());
    // An invalid file changes nothing.
    std::fs::write(&file, "kind: EncryptionConfiguration").unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(password(&cluster).await, encoded());
    std::fs::write(&file, configuration(&[("new", 2), ("old", 1)], "")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !store.is_stale(STORED).await.unwrap() {
        assert!(
            Instant::now() < deadline,
            "the configuration is not read again"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let secret = cluster.admin().get(SECRET).await.json();
    assert_eq!(cluster.admin().put(SECRET, &secret).await.code, 200);
    assert!(
        stored(setup.file.as_ref())
            .await
            .starts_with(b"k8s:enc:aesgcm:v1:new:")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn secrets_are_encrypted_in_etcd() {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.unwrap();
    let options = EtcdOptions {
        endpoints: vec![etcd.endpoint()],
        ..EtcdOptions::default()
    };
    let inner: Arc<dyn Store> = Arc::new(EtcdStore::connect(&options).await.unwrap());
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let store = EncryptedStore::new(Arc::clone(&inner), keys(&[("key1", 1)]));
    let cluster = Cluster::open(Arc::new(store), folder, |_| {}).await;
    create(&cluster).await;
    assert_eq!(password(&cluster).await, encoded());
    let value = stored(inner.as_ref()).await;
    assert!(value.starts_with(b"k8s:enc:aesgcm:v1:key1:") && !holds(&value, &encoded()));
}
