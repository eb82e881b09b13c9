use super::*;

fn parsed(document: &Document) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let entries = list.as_array().unwrap();
    entries.iter().find(|entry| entry[key] == name).unwrap()
}

#[test]
fn only_the_core_group_has_no_name() {
    let core = parsed(aggregated_core());
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert!(core["items"][0]["metadata"].get("name").is_none());
    let groups = parsed(aggregated_groups());
    let names = groups["items"].as_array().unwrap().iter();
    assert!(
        names
            .clone()
            .all(|group| group["metadata"]["name"].is_string())
    );
    assert!(
        names
            .clone()
            .all(|group| group["versions"][0]["freshness"] == "Current")
    );
}

#[test]
fn discovery_has_evictions_in_both_forms() {
    let core = parsed(aggregated_core());
    let pods = named(
        &core["items"][0]["versions"][0]["resources"],
        "resource",
        "pods",
    );
    let eviction = named(&pods["subresources"], "subresource", "eviction");
    let expected = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
    assert_eq!(eviction["responseKind"], expected);

    let legacy = resource_list("", "v1").unwrap();
    let eviction = named(&legacy["resources"], "name", "pods/eviction");
    assert_eq!(eviction["group"], "policy");
    assert_eq!(eviction["kind"], "Eviction");
    assert_eq!(eviction["verbs"], json!(["create"]));
}

#[test]
fn resources_are_listed_as_upstream_lists_them() {
    let list = resource_list("", "v1").unwrap();
    assert!(list.get("apiVersion").is_none());
    assert_eq!(
        named(&list["resources"], "name", "configmaps"),
        &json!({
            "kind": "ConfigMap", "name": "configmaps", "namespaced": true, "shortNames": ["cm"],
            "singularName": "configmap", "storageVersionHash": "qFsyl6wFWjQ=",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        })
    );
    assert_eq!(resource_list("apps", "v1").unwrap()["apiVersion"], "v1");
    assert!(resource_list("apps", "v1beta1").is_none());
}

#[test]
fn events_are_one_store_in_both_groups() {
    let hash = |group| {
        let list = resource_list(group, "v1").unwrap();
        named(&list["resources"], "name", "events")["storageVersionHash"].clone()
    };
    assert_eq!(hash(""), "r2yiGXH7wu8=");
    assert_eq!(hash("events.k8s.io"), "r2yiGXH7wu8=");
}

#[test]
fn groups_name_their_preferred_version() {
    let batch = group("batch").unwrap();
    assert_eq!(batch["kind"], "APIGroup");
    assert_eq!(batch["preferredVersion"]["groupVersion"], "batch/v1");
    assert!(group("").is_none());
    assert!(group("nothing.example").is_none());
    let list = group_list();
    assert!(
        named(&list["groups"], "name", "batch")
            .get("kind")
            .is_none()
    );
}

#[test]
fn known_document_matches_its_etag() {
    let document = aggregated_groups();
    assert!(document.is_known(&document.etag()));
    assert!(!document.is_known(&aggregated_core().etag()));
    assert!(document.etag().starts_with('"') && document.hash.len() == 128);
}

#[test]
fn the_version_reads_as_kubernetes() {
    let version: Value = serde_json::from_str(&version()).unwrap();
    let text = version["gitVersion"].as_str().unwrap();
    assert!(text.starts_with("v1.36.4+plimsoll-"), "{text}");
    assert!(version.as_object().unwrap().values().all(Value::is_string));
}
