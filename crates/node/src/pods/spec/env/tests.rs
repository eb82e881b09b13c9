use serde_json::{Value, json};

use super::*;
use crate::pods::spec::testing::{node, pod_with};
use crate::volumes::{MemorySources, MountedVolume};

fn sources() -> MemorySources {
    let sources = MemorySources::default();
    let meta = |name: &str| json!({"namespace": "ns", "name": name});
    let config = json!({"metadata": meta("config"), "data": {"A": "a", "B": "b-$(A)"}});
    sources.put_config_map(serde_json::from_value(config).unwrap());
    let secret = json!({"metadata": meta("secret"), "data": {"S": "c2VjcmV0", "RAW": "/w=="}});
    sources.put_secret(serde_json::from_value(secret).unwrap());
    let service = json!({
        "metadata": {"namespace": "default", "name": "kubernetes"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]},
    });
    sources.put_service(serde_json::from_value(service).unwrap());
    sources
}

async fn made(container: Value, spec: Value) -> Result<Environment, SpecError> {
    let mut container = container;
    container["name"] = json!("c");
    let mut spec = spec;
    spec["nodeName"] = json!("node-1");
    spec["containers"] = json!([container]);
    let pod = pod_with(spec);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vars"), "FROM_FILE='in file'\n").unwrap();
    let volume = MountedVolume {
        path: dir.path().to_owned(),
        plugin: "kubernetes.io~empty-dir",
        inner_name: "files".to_owned(),
        is_read_only: false,
        is_managed: true,
        is_in_memory: false,
        claim: None,
    };
    let input = EnvInput {
        node: &node("/var/lib/kubelet"),
        pod: &pod,
        container: &pod.spec.as_ref().unwrap().containers[0],
        pod_ips: &["fd00::2".to_owned(), "10.1.0.2".to_owned()],
        volumes: &[("files".to_owned(), volume)].into_iter().collect(),
    };
    environment(&input, &sources()).await
}

/// The variables besides those of Services.
async fn check(container: Value, want: &[(&str, &str)]) {
    let got = made(container.clone(), json!({})).await.unwrap();
    let own: Vec<(&str, String)> = got
        .iter()
        .filter(|(name, _)| !name.starts_with("KUBERNETES_"))
        .map(|(name, value)| (name.as_str(), String::from_utf8(value.clone()).unwrap()))
        .collect();
    let want: Vec<(&str, String)> = want
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    assert_eq!(own, want, "{container}");
}

async fn refused(container: Value) -> String {
    made(container, json!({})).await.unwrap_err().to_string()
}

#[tokio::test]
async fn later_variables_see_earlier_ones_and_services() {
    check(
        json!({"env": [
            {"name": "FIRST", "value": "1"},
            {"name": "BOTH", "value": "$(FIRST)-$(LATER)-$$(FIRST)"},
            {"name": "LATER", "value": "2"},
            {"name": "API", "value": "https://$(KUBERNETES_SERVICE_HOST)"},
            {"name": "NOTHING"},
            {"name": "FIRST", "value": "$(FIRST)1"},
        ]}),
        &[
            ("API", "https://10.0.0.1"),
            ("BOTH", "1-$(LATER)-$(FIRST)"),
            ("FIRST", "11"),
            ("LATER", "2"),
            ("NOTHING", ""),
        ],
    )
    .await;
}

#[tokio::test]
async fn env_from_precedes_env_and_is_not_expanded() {
    check(
        json!({
            "envFrom": [
                {"configMapRef": {"name": "config"}},
                {"prefix": "P_", "configMapRef": {"name": "config"}},
                {"configMapRef": {"name": "missing", "optional": true}},
                {"secretRef": {"name": "missing", "optional": true}},
            ],
            "env": [{"name": "A", "value": "own"}, {"name": "C", "value": "$(B)"}],
        }),
        &[
            ("A", "own"),
            ("B", "b-$(A)"),
            ("C", "b-$(A)"),
            ("P_A", "a"),
            ("P_B", "b-$(A)"),
        ],
    )
    .await;
}

#[tokio::test]
async fn env_values_are_read_from_keys_fields_resources_and_files() {
    let from = |name: &str, from: Value| json!({"name": name, "valueFrom": from});
    check(
        json!({
            "resources": {"limits": {"cpu": "1500m"}},
            "env": [
                from("KEY", json!({"configMapKeyRef": {"name": "config", "key": "A"}})),
                from("SECRET", json!({"secretKeyRef": {"name": "secret", "key": "S"}})),
                from("NODE", json!({"fieldRef": {"fieldPath": "spec.nodeName"}})),
                from("IP", json!({"fieldRef": {"fieldPath": "status.podIP"}})),
                from("IPS", json!({"fieldRef": {"fieldPath": "status.podIPs"}})),
                from("HOST", json!({"fieldRef": {"fieldPath": "status.hostIP"}})),
                from("CPU", json!({"resourceFieldRef": {"resource": "limits.cpu"}})),
                from("MEMORY",
                    json!({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}})),
                from("FILE", json!({"fileKeyRef":
                    {"volumeName": "files", "path": "vars", "key": "FROM_FILE"}})),
                from("GONE", json!({"configMapKeyRef":
                    {"name": "config", "key": "zz", "optional": true}})),
                from("GONE", json!({"secretKeyRef":
                    {"name": "missing", "key": "zz", "optional": true}})),
                from("GONE", json!({"fileKeyRef":
                    {"volumeName": "files", "path": "vars", "key": "NO", "optional": true}})),
            ],
        }),
        &[
            ("CPU", "2"),
            ("FILE", "in file"),
            ("HOST", "192.0.2.1"),
            ("IP", "10.1.0.2"),
            ("IPS", "10.1.0.2,fd00::2"),
            ("KEY", "a"),
            ("MEMORY", "8"),
            ("NODE", "node-1"),
            ("SECRET", "secret"),
        ],
    )
    .await;
}

#[tokio::test]
async fn secrets_may_be_any_bytes() {
    let container = json!({"env": [
        {"name": "RAW", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "RAW"}}},
        {"name": "MORE", "value": "<$(RAW)>"},
    ]});
    let got = made(container, json!({})).await.unwrap();
    assert_eq!(got["RAW"], [0xff]);
    assert_eq!(got["MORE"], b"<\xff>");
}

#[tokio::test]
async fn missing_references_are_named_as_upstream() {
    let env = |from: Value| json!({"env": [{"name": "X", "valueFrom": from}]});
    for (container, want) in [
        (
            json!({"envFrom": [{"configMapRef": {"name": "missing"}}]}),
            "configmap \"missing\" not found",
        ),
        (
            json!({"envFrom": [{"secretRef": {"name": "missing"}}]}),
            "secret \"missing\" not found",
        ),
        (
            env(json!({"configMapKeyRef": {"name": "config", "key": "zz"}})),
            "couldn't find key zz in ConfigMap ns/config",
        ),
        (
            env(json!({"secretKeyRef": {"name": "secret", "key": "zz"}})),
            "couldn't find key zz in Secret ns/secret",
        ),
        (
            env(json!({"secretKeyRef": {"name": "missing", "key": "zz"}})),
            "secret \"missing\" not found",
        ),
        (
            env(json!({"fieldRef": {"fieldPath": "spec.x"}})),
            "field label not supported: spec.x",
        ),
        (
            env(json!({"fileKeyRef": {"volumeName": "no", "path": "p", "key": "k"}})),
            "cannot find the volume \"no\" referenced by FileKeyRef",
        ),
        (
            env(json!({"fileKeyRef": {"volumeName": "files", "path": "../x", "key": "k"}})),
            "couldn't parse env file",
        ),
    ] {
        assert_eq!(refused(container).await, want);
    }
}

#[tokio::test]
async fn the_api_server_is_known_even_without_service_links() {
    let got = made(json!({}), json!({"enableServiceLinks": false})).await;
    let got = got.unwrap();
    assert_eq!(got["KUBERNETES_SERVICE_HOST"], b"10.0.0.1");
    assert_eq!(got["KUBERNETES_SERVICE_PORT"], b"443");
}

#[test]
fn sub_paths_need_a_value_for_every_name() {
    let environment: Environment = [("A", "1"), ("EMPTY", "")]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
        .collect();
    assert_eq!(expand_sub_path("x/$(A)/$$", &environment).unwrap(), "x/1/$");
    let error = expand_sub_path("$(Z)/$(EMPTY)/$(A)/$(Z)", &environment).unwrap_err();
    assert_eq!(error.to_string(), "missing value for EMPTY, Z");
}
