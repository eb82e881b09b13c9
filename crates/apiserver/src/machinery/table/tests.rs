use super::*;
use crate::kinds;

fn options() -> Options {
    Options {
        now: Timestamp::from_rfc3339("2026-01-02T03:04:05Z").unwrap(),
        include_object: IncludeObject::Metadata,
        version: MetaVersion::V1,
        has_headers: true,
    }
}

fn list() -> Value {
    json!({"kind": "ConfigMapList", "apiVersion": "v1",
    "metadata": {"resourceVersion": "7", "continue": "x", "remainingItemCount": 3},
    "items": [
        {"metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:03:05Z"}, "data": {"k": "v"}},
        {"metadata": {"name": "b"}, "binaryData": {"k": "dg=="}},
    ]})
}

#[test]
fn list_becomes_rows_and_keeps_its_continue_token() {
    let table = table("", "ConfigMap", &list(), &options());
    assert_eq!(table["metadata"], list()["metadata"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "60s"]));
    assert_eq!(table["rows"][1]["cells"], json!(["b", 1, "<unknown>"]));
    assert_eq!(
        table["rows"][1]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "b"}})
    );
}

#[test]
fn rows_include_the_requested_part_of_the_object() {
    let object = list()["items"][0].clone();
    let row = |include_object| {
        let options = Options {
            include_object,
            ..options()
        };
        table("", "ConfigMap", &object, &options)["rows"][0]["object"].clone()
    };
    assert_eq!(row(IncludeObject::Object), object);
    assert_eq!(row(IncludeObject::None), Value::Null);
}

#[test]
fn later_watch_events_have_no_column_definitions() {
    let options = Options {
        has_headers: false,
        ..options()
    };
    let event = table("", "ConfigMap", &list()["items"][0], &options);
    assert_eq!(event["columnDefinitions"], Value::Null);
    assert_eq!(event["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn kinds_without_a_printer_show_name_and_creation() {
    let object = json!({"metadata": {"name": "l", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let table = table("", "LimitRange", &object, &options());
    assert_eq!(table["columnDefinitions"][1]["name"], "Created At");
    assert_eq!(table["columnDefinitions"][1]["type"], "date");
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["l", "2026-01-01T00:00:00Z"])
    );
}

#[test]
fn every_kind_prints_an_empty_object_with_a_cell_per_column() {
    for kind in kinds::all() {
        let table = table(kind.group, kind.kind, &json!({}), &options());
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        assert_eq!(
            table["rows"][0]["cells"].as_array().unwrap().len(),
            columns,
            "{}",
            kind.kind
        );
    }
}

#[test]
fn column_descriptions_match_upstream() {
    for kind in kinds::all() {
        let table = table(kind.group, kind.kind, &json!({}), &options());
        for column in table["columnDefinitions"].as_array().unwrap() {
            let is_described = column["description"] != "";
            assert!(
                is_described || column["name"] == "Handler",
                "{} {column}",
                kind.kind
            );
        }
    }
}

#[test]
fn metadata_alone_is_sent_for_objects_and_lists() {
    let partial = partial_object_metadata_list(&list(), MetaVersion::V1);
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(partial["items"][1]["metadata"], json!({"name": "b"}));
    let pods = kinds::by_kind("v1", "Pod").unwrap();
    assert_eq!(
        NotAnObject::new(pods).to_string(),
        "you requested PartialObjectMetadata, but the requested object is a list (*core.PodList)"
    );
}
