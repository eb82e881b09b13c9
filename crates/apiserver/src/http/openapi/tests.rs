use super::*;
use crate::kinds::{self, Verb};

fn parsed(name: &str) -> Value {
    serde_json::from_slice(&document(name).unwrap().body).unwrap()
}

fn is_tagged(extension: &Value, group: &str, version: &str, kind: &str) -> bool {
    *extension == json!({"group": group, "version": version, "kind": kind})
}

#[test]
fn index_links_every_group() {
    let index: Value = serde_json::from_slice(&index().body).unwrap();
    for group in GROUPS {
        let name = group.path().trim_start_matches('/').to_owned();
        let url = index["paths"][&name]["serverRelativeURL"].as_str().unwrap();
        let expected = format!("/openapi/v3/{name}?hash={}", document(&name).unwrap().hash);
        assert_eq!(url, expected);
    }
    assert!(document("apis/nothing/v1").is_none());
}

/// What kubectl checks before it leaves field validation to the server.
#[test]
fn every_kind_that_is_patched_takes_field_validation() {
    for kind in kinds::all().filter(|kind| kind.allows(Verb::Patch)) {
        let group = kinds::group(kind.group, kind.version).unwrap();
        let document = parsed(group.path().trim_start_matches('/'));
        let paths = document["paths"].as_object().unwrap().values();
        let patches: Vec<&Value> = paths
            .filter_map(|path| path.get("patch"))
            .filter(|patch| {
                let tag = &patch["x-kubernetes-group-version-kind"];
                is_tagged(tag, kind.group, kind.version, kind.kind)
            })
            .collect();
        assert!(!patches.is_empty(), "{}", kind.kind);
        for patch in patches {
            let mut parameters = patch["parameters"].as_array().unwrap().iter();
            assert!(parameters.any(|p| p["name"] == "fieldValidation" && p["in"] == "query"));
        }
    }
}

/// What `kubectl explain` does: the path gives the kind, the kind gives the schema.
#[test]
fn every_listed_resource_can_be_explained() {
    for kind in kinds::all().filter(|kind| kind.allows(Verb::List)) {
        let group = kinds::group(kind.group, kind.version).unwrap();
        let document = parsed(group.path().trim_start_matches('/'));
        let path = format!("{}/{}", group.path(), kind.plural);
        let tag = &document["paths"][&path]["get"]["x-kubernetes-group-version-kind"];
        assert!(
            is_tagged(tag, kind.group, kind.version, kind.kind),
            "{path} {tag}"
        );
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let tagged: Vec<&String> = schemas
            .iter()
            .filter(|(_, schema)| {
                let tags = schema["x-kubernetes-group-version-kind"].as_array();
                tags.is_some_and(|tags| tags.contains(tag))
            })
            .map(|(name, _)| name)
            .collect();
        assert_eq!(tagged, [&kind.definition()], "{path}");
    }
}

#[test]
fn every_reference_resolves_and_has_no_siblings() {
    fn visit(value: &Value, schemas: &Value) {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            let name = target.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.get(name).is_some(), "{name}");
            assert_eq!(value.as_object().unwrap().len(), 1, "{value}");
        }
        match value {
            Value::Object(members) => members.values().for_each(|v| visit(v, schemas)),
            Value::Array(items) => items.iter().for_each(|v| visit(v, schemas)),
            _ => {}
        }
    }
    for group in GROUPS {
        let document = parsed(group.path().trim_start_matches('/'));
        visit(&document, &document["components"]["schemas"]);
    }
}

#[test]
fn lists_have_merge_strategies() {
    let schemas = &parsed("api/v1")["components"]["schemas"];
    let field = |ty: &str, field: &str| {
        schemas[format!("io.k8s.api.core.v1.{ty}")]["properties"][field].clone()
    };
    let containers = field("PodSpec", "containers");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let volumes = field("PodSpec", "volumes");
    assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
    let selector = &schemas["io.k8s.api.core.v1.NodeSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    // A list in a struct that only other structs have.
    let ports = field("Container", "ports");
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
}

#[test]
fn only_mandatory_fields_are_required() {
    let schemas = &parsed("api/v1")["components"]["schemas"];
    assert!(schemas["io.k8s.api.core.v1.Pod"].get("required").is_none());
    assert_eq!(
        schemas["io.k8s.api.core.v1.PodSpec"]["required"],
        json!(["containers"])
    );
}

#[test]
fn int_or_string_differs_from_int_and_string() {
    let schemas = &parsed("apis/apps/v1")["components"]["schemas"];
    let union = &schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(
        union["oneOf"],
        json!([{"type": "integer"}, {"type": "string"}])
    );
    assert_eq!(union["format"], "int-or-string");
}

#[test]
fn operation_ids_are_unique() {
    for group in GROUPS {
        let document = parsed(group.path().trim_start_matches('/'));
        let items = document["paths"].as_object().unwrap().values();
        let operations = items.flat_map(|item| item.as_object().unwrap().values());
        let mut ids: Vec<&str> = operations
            .filter_map(|o| o["operationId"].as_str())
            .collect();
        let total = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), total, "{}", group.name);
    }
    let apps = parsed("apis/apps/v1");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status";
    let id = &apps["paths"][path]["patch"]["operationId"];
    assert_eq!(id, "patchAppsV1NamespacedDeploymentStatus");
}

#[test]
fn documents_are_small() {
    let total: usize = DOCUMENTS.values().map(|document| document.body.len()).sum();
    assert!(total < 6 << 20, "{total} bytes");
}
