//! Deeply nested objects: no request stores an object that clients cannot decode.

use http::Method;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use plimsoll_apiserver::bounds::MAX_DEPTH;
use serde_json::{Value, json};

use super::caller::{Answer, Caller};
use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, PODS, config_map, pod};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// This many nested objects, as text: values of that depth cannot be handled by recursion.
fn nested(levels: usize) -> String {
    let (open, close) = ("{\"f:a\":".repeat(levels - 1), "}".repeat(levels - 1));
    format!("{open}{{}}{close}")
}

/// An object, as text, with a manager of fields that are deeply nested.
fn managed(mut object: Value, levels: usize) -> String {
    object["metadata"]["managedFields"] = json!([{
        "manager": "m", "operation": "Update", "apiVersion": object["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": "HERE", "time": "2026-01-01T00:00:00Z",
    }]);
    object.to_string().replace("\"HERE\"", &nested(levels))
}

fn revision(name: &str, levels: usize) -> String {
    let data = nested(levels);
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"{name}"}},"revision":1,"data":{data}}}"#
    )
}

fn deployment() -> Value {
    let template = pod("unused");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
        },
    })
}

/// A field of a protobuf message that is text, bytes or a message.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let mut out = vec![(number << 3) | 2];
    if number > 15 {
        out = vec![(number << 3) | 2 | 0x80, number >> 4];
    }
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

/// The same as [`managed`] of a config map, as typed clients send it.
fn protobuf(name: &str, levels: usize) -> Vec<u8> {
    let entry = [
        field(1, "m"),
        field(2, "Update"),
        field(3, "v1"),
        field(6, "FieldsV1"),
        field(7, field(1, nested(levels))),
    ];
    let metadata = [field(1, name), field(17, entry.concat())];
    let message = field(1, metadata.concat());
    let of_type = [field(1, "v1"), field(2, "ConfigMap")];
    let envelope = [field(1, of_type.concat()), field(2, message)];
    [b"k8s\0".to_vec(), envelope.concat()].concat()
}

/// Asserts a client error, with a reason.
fn refused(what: &str, answer: &Answer) {
    let status = answer.json();
    assert!(
        (400..500).contains(&answer.code),
        "{what}: {} {status}",
        answer.code
    );
    assert_eq!(status["kind"], "Status", "{what}: {status}");
    let message = status["message"].as_str().unwrap();
    let is_reported = message.contains("max depth") || message.contains("recursion limit");
    assert!(
        is_reported || message.contains("levels deep"),
        "{what}: {message}"
    );
}

/// Every stored object can be decoded by kube-rs, in a GET and in lists.
async fn readable(caller: &Caller) {
    for path in [CONFIG_MAPS, PODS, REVISIONS, DEPLOYMENTS] {
        let list = caller.get(path).await.expect(200);
        for item in list["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            caller.get(&format!("{path}/{name}")).await.expect(200);
        }
        let media_type = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let table = format!("{path}?includeObject=Object");
        caller
            .with("accept", media_type)
            .get(&table)
            .await
            .expect(200);
    }
    let all = ListParams::default();
    let config_maps: Api<ConfigMap> = Api::all(caller.client());
    config_maps.list(&all).await.unwrap();
    let revisions: Api<ControllerRevision> = Api::all(caller.client());
    revisions.list(&all).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chained_moves_do_not_crash_the_process() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut object = config_map("c");
    object["data"] = json!({"a": "b"});
    admin.post(CONFIG_MAPS, &object).await.expect(201);
    // Each chain moves the data below a deep value, and that to the place of the data.
    let deep = "/a".repeat(50);
    let value: Value = serde_json::from_str(&nested(50).replace("f:a", "a")).unwrap();
    let chain = json!([
        {"op": "add", "path": "/x", "value": value},
        {"op": "move", "from": "/data", "path": format!("/x{deep}")},
        {"op": "move", "from": "/x", "path": "/data"},
    ]);
    let chain = chain.to_string();
    let chain = &chain[1..chain.len() - 1];
    let chains = vec![chain; 945_000 / chain.len()].join(",");
    let path = format!("{CONFIG_MAPS}/c");
    let media_type = "application/json-patch+json";
    let body = format!("[{chains}]");
    let answer = admin.send(Method::PATCH, &path, media_type, body).await;
    answer.refused(422, "Invalid");
    refused("chained moves", &answer);
    // Operations that do not use `from` do not resolve it.
    let from = "/a".repeat(1_000_000);
    let body = json!([{"op": "add", "path": "/data", "value": {"a": "b"}, "from": from}]);
    let answer = admin
        .send(Method::PATCH, &path, media_type, body.to_string())
        .await;
    assert_eq!(answer.expect(200)["data"]["a"], "b");
    readable(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_path_stores_an_undecodable_object() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin
        .post(CONFIG_MAPS, &config_map("old"))
        .await
        .expect(201);
    admin.post(PODS, &pod("old")).await.expect(201);
    admin.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let scale = admin
        .get(&format!("{DEPLOYMENTS}/d/scale"))
        .await
        .expect(200);
    let (old_map, old_pod) = (format!("{CONFIG_MAPS}/old"), format!("{PODS}/old"));
    let status = format!("{PODS}/old/status");
    let scale_path = format!("{DEPLOYMENTS}/d/scale");
    let merge = "application/merge-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    let json_patch = "application/json-patch+json";
    let apply = "application/apply-patch+yaml";
    for levels in [MAX_DEPTH - 3, 100, 127, 128, 200, 300, 9_000] {
        let map = managed(config_map("new"), levels);
        let entries = managed(json!({"apiVersion": "v1", "metadata": {}}), levels);
        let deep = nested(levels);
        let revision_as_yaml = format!("{}\n", revision("r", levels + 3));
        let operation = format!(
            r#"[{{"op":"add","path":"/metadata/managedFields/0/fieldsV1","value":{deep}}}]"#
        );
        let ways: Vec<(&str, Method, &str, &str, Vec<u8>)> = vec![
            ("POST", Method::POST, CONFIG_MAPS, JSON, map.clone().into()),
            (
                "POST YAML",
                Method::POST,
                CONFIG_MAPS,
                YAML,
                map.clone().into(),
            ),
            (
                "POST protobuf",
                Method::POST,
                CONFIG_MAPS,
                PROTOBUF,
                protobuf("new", levels),
            ),
            (
                "POST of data",
                Method::POST,
                REVISIONS,
                JSON,
                revision("r", levels + 3).into(),
            ),
            (
                "POST of data as YAML",
                Method::POST,
                REVISIONS,
                YAML,
                revision_as_yaml.into(),
            ),
            (
                "PUT",
                Method::PUT,
                &old_map,
                JSON,
                managed(config_map("old"), levels).into(),
            ),
            (
                "PUT status",
                Method::PUT,
                &status,
                JSON,
                managed(pod("old"), levels).into(),
            ),
            (
                "PUT scale",
                Method::PUT,
                &scale_path,
                JSON,
                managed(scale.clone(), levels).into(),
            ),
            (
                "merge",
                Method::PATCH,
                &old_map,
                merge,
                entries.clone().into(),
            ),
            (
                "strategic",
                Method::PATCH,
                &old_pod,
                strategic,
                entries.clone().into(),
            ),
            (
                "merge status",
                Method::PATCH,
                &status,
                merge,
                entries.clone().into(),
            ),
            (
                "JSON patch",
                Method::PATCH,
                &old_pod,
                json_patch,
                operation.into(),
            ),
        ];
        for dry_run in ["", "?dryRun=All"] {
            for (way, method, path, media_type, body) in &ways {
                let path = format!("{path}{dry_run}");
                let answer = admin
                    .send(method.clone(), &path, media_type, body.clone())
                    .await;
                // The depth of the body is that of its values and of the objects around them.
                let is_scale = *way == "PUT scale" && answer.code == 200 && levels < 100;
                if !is_scale {
                    refused(&format!("{way}{dry_run} of {levels} levels"), &answer);
                }
            }
            let path = format!(
                "{REVISIONS}/applied?fieldManager=m&{}",
                dry_run.trim_matches('?')
            );
            let body = revision("applied", levels + 3);
            let answer = admin.send(Method::PATCH, &path, apply, body).await;
            refused(&format!("apply of {levels} levels"), &answer);
        }
    }
    readable(&admin).await;
    // The in-process client passes the same check.
    let local = cluster.local_admin();
    let map = managed(config_map("new"), 100);
    refused(
        "local",
        &local.send(Method::POST, CONFIG_MAPS, JSON, map).await,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deepest_objects_are_stored_and_read_back() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    // Below the braces of the object and `data`.
    let body = revision("deepest", MAX_DEPTH - 1);
    admin
        .send(Method::POST, REVISIONS, JSON, body)
        .await
        .expect(201);
    let body = revision("too-deep", MAX_DEPTH);
    refused(
        "one more",
        &admin.send(Method::POST, REVISIONS, JSON, body).await,
    );
    let map = managed(config_map("deepest"), MAX_DEPTH - 4);
    admin
        .send(Method::POST, CONFIG_MAPS, JSON, map)
        .await
        .expect(201);
    readable(&admin).await;
}
