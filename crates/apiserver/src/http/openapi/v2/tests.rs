use prost::Message;

use super::message::{Document, Schema};

fn read() -> Document {
    Document::decode(super::document().body.as_ref()).unwrap()
}

fn definition(name: &str) -> Schema {
    let schemas = read().definitions.unwrap().named;
    let found = schemas.into_iter().find(|schema| schema.name == name);
    found.and_then(|schema| schema.value).unwrap()
}

fn property(schema: &Schema, name: &str) -> Schema {
    let properties = schema.properties.clone().unwrap().named;
    let found = properties
        .into_iter()
        .find(|property| property.name == name);
    found.and_then(|property| property.value).unwrap()
}

#[test]
fn schemas_are_tagged_with_their_kind() {
    let pod = definition("io.k8s.api.core.v1.Pod");
    let tag = pod
        .extensions
        .iter()
        .find(|e| e.name == "x-kubernetes-group-version-kind");
    let tag = tag.and_then(|tag| tag.value.clone()).unwrap().yaml;
    assert_eq!(tag, r#"[{"group":"","kind":"Pod","version":"v1"}]"#);
    let spec = property(&pod, "spec");
    assert_eq!(spec.reference, "#/definitions/io.k8s.api.core.v1.PodSpec");
    assert!(!spec.description.is_empty());
}

#[test]
fn lists_have_merge_strategies() {
    let spec = definition("io.k8s.api.core.v1.PodSpec");
    let containers = property(&spec, "containers");
    let key = containers
        .extensions
        .iter()
        .find(|e| e.name == "x-kubernetes-patch-merge-key");
    assert_eq!(
        key.and_then(|key| key.value.clone()).unwrap().yaml,
        "\"name\""
    );
    assert_eq!(containers.ty.unwrap().value, ["array"]);
    let item = &containers.items.unwrap().schema[0];
    assert_eq!(item.reference, "#/definitions/io.k8s.api.core.v1.Container");
}

#[test]
fn quantities_are_texts() {
    let quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity");
    assert_eq!(quantity.ty.unwrap().value, ["string"]);
}

#[test]
fn patches_support_dry_run() {
    let paths = read().paths.unwrap().path;
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let found = paths.into_iter().find(|item| item.name == path);
    let patch = found.and_then(|item| item.value).unwrap().patch.unwrap();
    let names = patch.parameters.into_iter().map(|item| {
        let parameter = item.parameter.unwrap().non_body.unwrap();
        parameter.query.unwrap().name
    });
    assert!(names.into_iter().any(|name| name == "dryRun"));
}
