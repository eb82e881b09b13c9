//! Malformed bodies of all kinds.

use http::Method;
use serde_json::json;

use super::caller::Caller;
use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, PODS, config_map, pod};
use super::slow_watchers::resident_mib;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Posts a body, and asserts a client error.
async fn refused(caller: &Caller, path: &str, media_type: &str, body: impl Into<Vec<u8>>) -> u16 {
    let body = body.into();
    let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
    let answer = caller.send(Method::POST, path, media_type, body).await;
    let status = answer.json();
    assert_eq!(status["kind"], "Status", "{media_type} {shown}: {status}");
    assert!(
        (400..500).contains(&answer.code),
        "{media_type} {shown}: {status}"
    );
    answer.code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_bodies_are_rejected() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let whole = pod("p").to_string();
    for cut in (1..whole.len()).step_by(7) {
        refused(&admin, PODS, JSON, &whole.as_bytes()[..cut]).await;
    }
    for (media_type, body) in [
        (JSON, &b""[..]),
        (JSON, b"null"),
        (JSON, b"[]"),
        (JSON, b"\"text\""),
        (JSON, b"5"),
        (JSON, b"{}{}"),
        (JSON, b"{\"metadata\": 5}"),
        (JSON, b"{\"metadata\": {\"name\": \"\xff\xfe\"}}"),
        (JSON, b"{\"metadata\": {\"name\": \"a\\ud800\"}}"),
        (JSON, b"\xef\xbb\xbf{}"),
        (YAML, b"a: [1, 2"),
        (YAML, b"- x"),
        (YAML, b"a: &a [*a]"),
        (YAML, b"\xff\xfe\x00"),
        (YAML, b"a: b\n--- \nc: d"),
        (PROTOBUF, b""),
        (PROTOBUF, b"k8s\0"),
        (
            PROTOBUF,
            b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        (
            PROTOBUF,
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\xff\x7f",
        ),
        (PROTOBUF, b"not protobuf at all"),
        ("text/plain", b"x"),
        ("application/cbor", b"\xd9\xd9\xf7\xa0"),
        ("application/json;charset", b"{}"),
        ("/", b"{}"),
    ] {
        refused(&admin, CONFIG_MAPS, media_type, body).await;
    }
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let twice = b"{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}";
    assert_eq!(refused(&admin, &strict, JSON, twice).await, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_and_deep_bodies_are_rejected_cheaply() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let before = resident_mib();
    let limit = 3 * 1024 * 1024;
    let mut big = config_map("big");
    big["data"] = json!({"d": "x".repeat(limit)});
    let answer = admin.post(CONFIG_MAPS, &big).await;
    answer.refused(413, "RequestEntityTooLarge");
    // Within the limit of bodies, beyond that of objects.
    big["data"] = json!({"d": "x".repeat(1_200_000)});
    let answer = admin.post(CONFIG_MAPS, &big).await;
    assert!(matches!(answer.code, 413 | 422), "{}", answer.code);
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        format!("{{\"metadata\":{{\"name\":\"deep\"}},\"data\":{open}1{close}}}")
    };
    refused(&admin, CONFIG_MAPS, JSON, deep("[", "]")).await;
    refused(&admin, CONFIG_MAPS, JSON, deep("{\"a\":", "}")).await;
    refused(&admin, CONFIG_MAPS, YAML, deep("[", "]")).await;
    refused(&admin, CONFIG_MAPS, YAML, deep("{a: ", "}")).await;
    // References that would expand a thousandfold.
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        let uses = vec![format!("*{before}"); 10].join(", ");
        bomb.push_str(&format!("{name}: &{name} [{uses}]\n"));
    }
    bomb.push_str("metadata: {name: bomb}\n");
    refused(
        &admin,
        &format!("{CONFIG_MAPS}?fieldValidation=Strict"),
        YAML,
        bomb,
    )
    .await;
    let grown = resident_mib().saturating_sub(before);
    assert!(grown < 200, "{grown} MiB for bodies that were refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_numbers_are_rejected() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for number in [
        "1e400",
        "-1e400",
        "99999999999999999999999999999999999999",
        "9223372036854775808",
        "1.5",
        "-9223372036854775809",
        &"9".repeat(100_000),
    ] {
        let body = pod("p").to_string().replacen(
            "\"spec\":{",
            &format!("\"spec\":{{\"terminationGracePeriodSeconds\":{number},"),
            1,
        );
        refused(&admin, PODS, JSON, body).await;
    }
    for quantity in [
        "1e999999999",
        "99999999999999999999E",
        "-1",
        "0x10",
        "NaN",
        "1Gi1",
    ] {
        let mut pod = pod("q");
        pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": quantity}});
        let answer = admin.post(PODS, &pod).await;
        assert!(
            matches!(answer.code, 201 | 400 | 422),
            "{quantity}: {}",
            answer.code
        );
        admin.delete(&format!("{PODS}/q")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inapplicable_patches_are_rejected() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p?fieldManager=m");
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let copies: Vec<_> = (0..20_000)
        .map(|n| json!({"op": "copy", "from": "/spec", "path": format!("/metadata/annotations/{n}")}))
        .collect();
    let copies = json!(copies).to_string();
    for (sort, body) in [
        ("json-patch+json", "{}"),
        ("json-patch+json", "[{\"op\":\"test\"}]"),
        ("json-patch+json", "[{\"op\":\"odd\",\"path\":\"/a\"}]"),
        (
            "json-patch+json",
            "[{\"op\":\"remove\",\"path\":\"/none/at/all\"}]",
        ),
        (
            "json-patch+json",
            "[{\"op\":\"add\",\"path\":\"/spec/containers/99\",\"value\":1}]",
        ),
        (
            "json-patch+json",
            "[{\"op\":\"add\",\"path\":\"/spec/containers/-99\",\"value\":1}]",
        ),
        (
            "json-patch+json",
            "[{\"op\":\"move\",\"from\":\"/spec\",\"path\":\"/spec/a\"}]",
        ),
        ("json-patch+json", &copies),
        ("merge-patch+json", "[]"),
        ("merge-patch+json", "5"),
        ("merge-patch+json", "{"),
        ("merge-patch+json", &deep),
        ("strategic-merge-patch+json", "[]"),
        (
            "strategic-merge-patch+json",
            "{\"spec\":{\"containers\":5}}",
        ),
        (
            "strategic-merge-patch+json",
            "{\"spec\":{\"containers\":[{\"$patch\":\"odd\",\"name\":\"main\"}]}}",
        ),
        (
            "strategic-merge-patch+json",
            "{\"$setElementOrder/spec\":[{}]}",
        ),
        ("strategic-merge-patch+json", &deep),
        ("apply-patch+yaml", ""),
        ("apply-patch+yaml", "- x"),
        ("apply-patch+yaml", "kind: Pod"),
        (
            "apply-patch+yaml",
            "{apiVersion: v1, kind: Secret, metadata: {name: p}}",
        ),
        (
            "apply-patch+yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, managedFields: [{}]}}",
        ),
        ("apply-patch+yaml", &deep),
    ] {
        let media_type = format!("application/{sort}");
        let answer = admin.send(Method::PATCH, &path, &media_type, body).await;
        let shown = &body[..body.len().min(80)];
        let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]).into_owned();
        // Upstream responds to some of these with 500, too; never with success.
        assert!(answer.code >= 400, "{sort} {shown}: {} {text}", answer.code);
    }
    assert_eq!(admin.get(&format!("{PODS}/p")).await.code, 200);
}
