//! Lists: pages, versions, and errors.

use serde_json::json;

use super::cluster::Cluster;
use super::objects::{SECRETS, colored, names, secret, version};
use plimsoll_apiserver::http::query::ContinueToken;

/// A cluster with the secrets `s0` to `s<count - 1>`.
async fn with_secrets(count: usize) -> Cluster {
    let cluster = Cluster::start().await;
    let admin = cluster.local_admin();
    for number in 0..count {
        let created = admin.post(SECRETS, &secret(&format!("s{number}"))).await;
        created.expect(201);
    }
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_pages_show_the_state_of_the_first_page() {
    let cluster = with_secrets(5).await;
    let admin = cluster.admin();
    let first = admin.get(&format!("{SECRETS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["s0", "s1"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    admin.delete(&format!("{SECRETS}/s3")).await.expect(200);
    admin.post(SECRETS, &secret("s25")).await.expect(201);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = format!("{SECRETS}?limit=2&continue={token}");
    let second = admin.get(&second).await.expect(200);
    assert_eq!(names(&second), ["s2", "s3"]);
    assert_eq!(version(&second), version(&first));
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = format!("{SECRETS}?limit=2&continue={token}");
    let last = admin.get(&last).await.expect(200);
    assert_eq!(names(&last), ["s4"]);
    assert!(last["metadata"]["continue"].is_null());
    assert!(last["metadata"]["remainingItemCount"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_with_selectors_have_no_remaining_count() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red"), ("d", "red")] {
        admin.post(SECRETS, &colored(name, color)).await.expect(201);
    }
    let selected = format!("{SECRETS}?labelSelector=color%3Dred");
    let first = admin.get(&format!("{selected}&limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "c"]);
    assert!(first["metadata"]["remainingItemCount"].is_null());
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = format!("{selected}&limit=2&continue={token}");
    assert_eq!(names(&admin.get(&rest).await.expect(200)), ["d"]);
    let by_field = format!("{SECRETS}?fieldSelector=metadata.name%3Db");
    assert_eq!(names(&admin.get(&by_field).await.expect(200)), ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_is_at_least_as_new_as_the_requested_version() {
    let cluster = with_secrets(2).await;
    let admin = cluster.admin();
    let old = version(&admin.get(SECRETS).await.expect(200));
    admin.delete(&format!("{SECRETS}/s0")).await.expect(200);
    let at = |query: String| {
        let admin = admin.clone();
        async move { admin.get(&format!("{SECRETS}?{query}")).await.expect(200) }
    };
    for query in [
        String::new(),
        "resourceVersion=0".to_owned(),
        "resourceVersion=0&limit=5".to_owned(),
        format!("resourceVersion={old}"),
        format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan"),
        format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan&limit=5"),
    ] {
        let list = at(query.clone()).await;
        assert_eq!(names(&list), ["s1"], "{query}");
        assert!(version(&list) > old, "{query}");
    }
    for query in [
        format!("resourceVersion={old}&resourceVersionMatch=Exact"),
        format!("resourceVersion={old}&resourceVersionMatch=Exact&limit=5"),
        format!("resourceVersion={old}&limit=5"),
    ] {
        let list = at(query.clone()).await;
        assert_eq!(names(&list), ["s0", "s1"], "{query}");
        assert_eq!(version(&list), old, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn future_version_is_awaited_and_then_rejected() {
    let cluster = with_secrets(1).await;
    let admin = cluster.admin();
    let far = version(&admin.get(SECRETS).await.expect(200)) + 1000;
    for query in [
        format!("resourceVersion={far}"),
        format!("resourceVersion={far}&resourceVersionMatch=Exact"),
    ] {
        let answer = admin.get(&format!("{SECRETS}?{query}")).await;
        let message = answer.refused(504, "Timeout");
        assert!(
            message.starts_with(&format!(
                "Timeout: Too large resource version: {far}, current: "
            )),
            "{message}"
        );
        let status = answer.json();
        let cause = &status["details"]["causes"][0];
        assert_eq!(cause["reason"], "ResourceVersionTooLarge");
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
    }
    // If it is close enough, it is reached while the reader waits.
    let near = far - 999;
    let read = admin.clone();
    let reading =
        tokio::spawn(async move { read.get(&format!("{SECRETS}?resourceVersion={near}")).await });
    admin.post(SECRETS, &secret("new")).await.expect(201);
    let list = reading.await.unwrap().expect(200);
    assert_eq!(names(&list), ["new", "s0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_versions_and_continue_tokens_are_rejected() {
    let cluster = with_secrets(1).await;
    let admin = cluster.admin();
    let at = |query: String| {
        let admin = admin.clone();
        async move { admin.get(&format!("{SECRETS}?{query}")).await }
    };
    let outside = ContinueToken {
        resource_version: 5,
        start_key: "../../../secrets/kube-system/x".to_owned(),
    };
    let no_version = ContinueToken {
        resource_version: 0,
        start_key: "s0".to_owned(),
    };
    for query in [
        "resourceVersion=x".to_owned(),
        "resourceVersion=-1".to_owned(),
        "resourceVersion=99999999999999999999999".to_owned(),
        "continue=%21%21".to_owned(),
        "continue=abcd".to_owned(),
        format!("continue={}", outside.encode()),
        format!("continue={}", no_version.encode()),
        format!("continue={}", "A".repeat(20_000)),
        "limit=ten".to_owned(),
        "labelSelector=%3D%3D".to_owned(),
        "fieldSelector=spec.unheard%3Dof".to_owned(),
    ] {
        let answer = at(query.clone()).await;
        answer.refused(400, "BadRequest");
    }
    let token = ContinueToken::after("s0", 5).encode();
    let answer = at(format!("continue={token}&resourceVersion=4")).await;
    answer.refused(400, "BadRequest");
    for (query, cause) in [
        ("resourceVersionMatch=Exact", "FieldValueForbidden"),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "FieldValueForbidden",
        ),
        (
            "resourceVersionMatch=Other&resourceVersion=1",
            "FieldValueNotSupported",
        ),
        ("sendInitialEvents=true", "FieldValueForbidden"),
    ] {
        let answer = at(query.to_owned()).await;
        answer.refused(422, "Invalid");
        let status = answer.json();
        assert_eq!(status["details"]["causes"][0]["reason"], cause, "{query}");
        assert_eq!(status["details"]["group"], "meta.k8s.io", "{query}");
        assert_eq!(status["details"]["kind"], "ListOptions", "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_continue_token_is_replaced_by_an_inconsistent_one() {
    let cluster = with_secrets(4).await;
    let admin = cluster.admin();
    let first = admin.get(&format!("{SECRETS}?limit=2")).await.expect(200);
    let old = version(&first);
    admin.delete(&format!("{SECRETS}/s2")).await.expect(200);
    let current = cluster.store.current_revision().await.unwrap();
    cluster.store.compact(current).await.unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let late = format!("{SECRETS}?limit=2&continue={token}");
    let answer = admin.get(&late).await;
    let message = answer.refused(410, "Expired");
    assert!(message.starts_with("The provided continue parameter is too old"));
    let status = answer.json();
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = format!("{SECRETS}?limit=2&continue={token}");
    let rest = admin.get(&rest).await.expect(200);
    assert_eq!(names(&rest), ["s3"]);
    let exact = format!("{SECRETS}?resourceVersion={old}&resourceVersionMatch=Exact");
    let message = admin.get(&exact).await.refused(410, "Expired");
    assert_eq!(
        message,
        "The resourceVersion for the provided list is too old."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_a_list_is_newer_than_the_list() {
    let cluster = with_secrets(3).await;
    let writer = cluster.local_admin();
    let writing = tokio::spawn(async move {
        for number in 0..150 {
            let patch = json!({"metadata": {"labels": {"n": number.to_string()}}});
            let path = format!("{SECRETS}/s{}", number % 3);
            writer.patch(&path, "merge", &patch).await.expect(200);
        }
    });
    let reader = cluster.local_admin();
    while !writing.is_finished() {
        for query in ["", "?limit=2", "?resourceVersion=0"] {
            let list = reader.get(&format!("{SECRETS}{query}")).await.expect(200);
            for item in list["items"].as_array().unwrap() {
                assert!(version(item) <= version(&list), "{query}: {list}");
            }
        }
    }
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_includes_acknowledged_writes() {
    let cluster = Cluster::start().await;
    let admin = cluster.local_admin();
    for number in 0..50 {
        let name = format!("s{number:02}");
        let made = admin.post(SECRETS, &secret(&name)).await.expect(201);
        let list = admin.get(SECRETS).await.expect(200);
        assert!(names(&list).contains(&name));
        assert!(version(&list) >= version(&made));
        let path = format!("{SECRETS}/{name}");
        assert_eq!(admin.get(&path).await.expect(200), made);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_list_arrives_completely() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let long = "x".repeat(100_000);
    for number in 0..10 {
        let mut object = secret(&format!("s{number}"));
        object["stringData"] = json!({"long": long});
        admin.post(SECRETS, &object).await.expect(201);
    }
    let list = admin.get("/api/v1/secrets").await.expect(200);
    assert_eq!(names(&list).len(), 10);
    assert_eq!(list["kind"], "SecretList");
    let table = admin.with("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = table.get(SECRETS).await.expect(200);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().unwrap().len(), 10);
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let metadata = admin
        .with("accept", metadata)
        .get(SECRETS)
        .await
        .expect(200);
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert!(metadata["items"][0]["data"].is_null());
}
