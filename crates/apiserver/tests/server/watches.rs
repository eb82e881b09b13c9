//! Watches, line by line.

use std::time::{Duration, Instant};

use plimsoll_apiserver::cache;
use plimsoll_apiserver::store::Txn;
use serde_json::json;

use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, SECRETS, colored, config_map, names, secret, version};

const ONLY_RED: &str = "labelSelector=color%3Dred";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_after_a_version_are_in_order() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get(SECRETS).await.expect(200));
    admin.post(SECRETS, &secret("a")).await.expect(201);
    let mut watch = admin
        .watch(&format!("{SECRETS}?watch=true&resourceVersion={start}"))
        .await;
    let path = format!("{SECRETS}/a");
    let labelled = json!({"metadata": {"labels": {"x": "y"}}});
    let changed = admin.patch(&path, "merge", &labelled).await.expect(200);
    let before = version(&changed);
    admin.delete(&path).await.expect(200);
    admin.post(SECRETS, &secret("b")).await.expect(201);
    let expected = [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "b"),
    ];
    let objects = watch.expect(&expected).await;
    assert_eq!(objects[1], changed);
    // A deleted object has its last state, at the version of its deletion.
    assert!(version(&objects[2]) > before);
    assert!(version(&objects[2]) < version(&objects[3]));
    assert_eq!(objects[2]["metadata"]["labels"], json!({"x": "y"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_without_a_version_starts_with_existing_objects() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(SECRETS, &secret("a")).await.expect(201);
    for path in [
        format!("{SECRETS}?watch=true"),
        format!("{SECRETS}?watch=true&resourceVersion=0"),
        format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Da"),
        "/api/v1/watch/namespaces/default/secrets".to_owned(),
        "/api/v1/watch/namespaces/default/secrets/a".to_owned(),
        format!("{SECRETS}/a?watch=true"),
    ] {
        let mut watch = admin.watch(&path).await;
        watch.expect(&[("ADDED", "a")]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_list_ends_with_a_bookmark() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(SECRETS, &secret("a")).await.expect(201);
    admin.post(SECRETS, &secret("b")).await.expect(201);
    let current = version(&admin.get(SECRETS).await.expect(200));
    let streamed = format!(
        "{SECRETS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan"
    );
    for query in [
        "",
        "&resourceVersion=0",
        &format!("&resourceVersion={current}"),
    ] {
        let mut watch = admin.watch(&format!("{streamed}{query}")).await;
        let objects = watch
            .expect(&[("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")])
            .await;
        let bookmark = &objects[2];
        let end = &bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"];
        assert_eq!(end, "true");
        assert_eq!(bookmark["kind"], "Secret");
        assert_eq!(bookmark["apiVersion"], "v1");
        assert!(version(bookmark) >= current);
        let name = format!("c{}", query.len());
        admin.post(SECRETS, &secret(&name)).await.expect(201);
        watch.expect(&[("ADDED", &name)]).await;
        admin.delete(&format!("{SECRETS}/{name}")).await.expect(200);
        watch.expect(&[("DELETED", &name)]).await;
    }
    // Without bookmarks the client does not learn where the list ends.
    let silent = format!(
        "{SECRETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    );
    let mut watch = admin.watch(&silent).await;
    watch.expect(&[("ADDED", "a"), ("ADDED", "b")]).await;
    assert!(watch.next().await.is_none());
    let none = format!(
        "{SECRETS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    );
    let mut watch = admin.watch(&none).await;
    assert!(watch.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn object_is_added_and_deleted_as_selectors_match() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get(SECRETS).await.expect(200));
    let mut watch = admin
        .watch(&format!(
            "{SECRETS}?watch=true&resourceVersion={start}&{ONLY_RED}"
        ))
        .await;
    admin.post(SECRETS, &colored("a", "blue")).await.expect(201);
    let path = format!("{SECRETS}/a");
    let paint = |color: &str| json!({"metadata": {"labels": {"color": color}}});
    let red = admin.patch(&path, "merge", &paint("red")).await.expect(200);
    let green = admin.patch(&path, "merge", &paint("green")).await;
    let green = green.expect(200);
    admin.delete(&path).await.expect(200);
    admin.post(SECRETS, &colored("z", "red")).await.expect(201);
    let objects = watch
        .expect(&[("ADDED", "a"), ("DELETED", "a"), ("ADDED", "z")])
        .await;
    assert_eq!(objects[0], red);
    assert_eq!(version(&objects[1]), version(&green));
    assert_eq!(objects[1]["metadata"]["labels"]["color"], "red");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_is_limited_to_its_namespace() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get("/api/v1/secrets").await.expect(200));
    let other = "/api/v1/namespaces/kube-public/secrets";
    admin.post(other, &secret("o")).await.expect(201);
    admin.post(SECRETS, &secret("d")).await.expect(201);
    let from = format!("watch=true&resourceVersion={start}");
    let mut one = admin.watch(&format!("{SECRETS}?{from}")).await;
    one.expect(&[("ADDED", "d")]).await;
    let mut all = admin.watch(&format!("/api/v1/secrets?{from}")).await;
    all.expect(&[("ADDED", "o"), ("ADDED", "d")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_old_version_ends_a_watch_with_an_error() {
    let before = Cluster::start().await;
    // A server has the changes since its start.
    let cluster = Cluster::open(before.store.clone(), before.folder.clone(), |_| {}).await;
    let admin = cluster.admin();
    let mut watch = admin
        .watch(&format!("{SECRETS}?watch=true&resourceVersion=1"))
        .await;
    let line = watch.next().await.unwrap();
    assert_eq!(line["type"], "ERROR");
    assert_eq!(line["object"]["code"], 410);
    assert_eq!(line["object"]["reason"], "Expired");
    let message = line["object"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("too old resource version: 1 ("),
        "{message}"
    );
    assert!(watch.next().await.is_none());
    let no_number = format!("{SECRETS}?watch=true&resourceVersion=x");
    assert_eq!(admin.get(&no_number).await.code, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_ends_at_its_timeout_with_a_bookmark() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get(SECRETS).await.expect(200));
    let begun = Instant::now();
    let from = format!("{SECRETS}?watch=true&resourceVersion={start}");
    let mut silent = admin.watch(&format!("{from}&timeoutSeconds=1")).await;
    let mut marked = admin
        .watch(&format!("{from}&timeoutSeconds=3&allowWatchBookmarks=true"))
        .await;
    admin
        .post(CONFIG_MAPS, &config_map("else"))
        .await
        .expect(201);
    assert!(silent.next().await.is_none());
    assert!(begun.elapsed() >= Duration::from_secs(1));
    // Changes of other kinds advance the bookmark.
    let (sort, _, object) = marked.event().await;
    assert_eq!(sort, "BOOKMARK");
    assert!(version(&object) > start);
    assert_eq!(object["kind"], "Secret");
    assert!(marked.next().await.is_none());
    assert!(begun.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_watch_describes_columns_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(SECRETS, &secret("a")).await.expect(201);
    admin.post(SECRETS, &secret("b")).await.expect(201);
    let tables = admin.with("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let mut watch = tables.watch(&format!("{SECRETS}?watch=true")).await;
    let mut described = 0;
    for name in ["a", "b"] {
        let (sort, _, table) = watch.event().await;
        assert_eq!((sort.as_str(), &table["kind"]), ("ADDED", &json!("Table")));
        assert_eq!(table["rows"].as_array().unwrap().len(), 1);
        assert_eq!(table["rows"][0]["cells"][0], name);
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        described += usize::from(table["columnDefinitions"].is_array());
    }
    assert_eq!(described, 1);
    let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let metadata = admin.with("accept", metadata);
    let mut watch = metadata.watch(&format!("{SECRETS}?watch=true")).await;
    for name in ["a", "b"] {
        let (_, found, object) = watch.event().await;
        assert_eq!(found, name);
        assert_eq!(object["kind"], "PartialObjectMetadata");
        assert!(object["type"].is_null());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_end_when_the_server_stops() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut watch = admin.watch(&format!("{SECRETS}?watch=true")).await;
    cluster.server.stop();
    assert!(watch.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_one_transaction_all_arrive() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get(SECRETS).await.expect(200));
    // Whatever the batch size, some transaction is split.
    for round in 0..10 {
        let mut txn = Txn::new();
        for number in 0..60 {
            let name = format!("s{round}-{number:02}");
            let object = json!({"kind": "Secret", "apiVersion": "v1",
                "metadata": {"name": name, "namespace": "default"}});
            let key = format!("/registry/secrets/default/{name}");
            txn = txn.put(key, cache::encode(&object));
        }
        cluster.store.txn(txn).await.unwrap();
    }
    let all = names(&admin.get(SECRETS).await.expect(200));
    let mut watch = admin
        .watch(&format!("{SECRETS}?watch=true&resourceVersion={start}"))
        .await;
    let mut seen = Vec::new();
    for _ in &all {
        seen.push(watch.event().await.1);
    }
    assert_eq!(seen, all);
}
