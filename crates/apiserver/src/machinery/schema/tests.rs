use serde_json::{Value, json};

use super::canonical::empty;
use super::decode::Source;
use super::*;

fn read(version: &str, kind: &str, object: &Value) -> Result<Decoded, String> {
    let id = schema().kind(version, kind).unwrap();
    decode(id, object, Source::Text).map_err(|error| error.to_string())
}

#[test]
fn all_kinds_have_their_type_and_metadata() {
    assert!(schema().kinds().count() > 50);
    for (version, kind) in schema().kinds() {
        let definition = schema().get(schema().kind(version, kind).unwrap());
        for field in ["apiVersion", "kind"] {
            assert!(
                definition.field(field).is_some(),
                "{version} {kind} has no {field}"
            );
        }
    }
}

#[test]
fn list_keys_are_fields_of_the_items() {
    for definition in &schema().structs {
        for field in &definition.fields {
            let keys = match &field.list {
                ListType::Map(keys) => keys.clone(),
                _ => Vec::new(),
            };
            let merge_key = Some(field.patch.merge_key).filter(|key| !key.is_empty());
            for key in keys.into_iter().chain(merge_key) {
                let Shape::List(item) = &field.ty.pointee().shape else {
                    panic!("{}.{} is no list", definition.name, field.name);
                };
                let Shape::Struct(id) = item.shape else {
                    panic!("{}.{} holds no structs", definition.name, field.name);
                };
                assert!(
                    schema().get(id).field(key).is_some(),
                    "{}.{}",
                    definition.name,
                    field.name
                );
            }
        }
    }
}

#[test]
fn new_node_has_fields_without_omitempty() {
    let id = schema().kind("v1", "Node").unwrap();
    assert_eq!(
        *empty(id),
        json!({
            "metadata": {},
            "spec": {},
            "status": {
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                "nodeInfo": {
                    "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "",
                    "osImage": "", "containerRuntimeVersion": "", "kubeletVersion": "",
                    "kubeProxyVersion": "", "operatingSystem": "", "architecture": "",
                },
            },
        })
    );
}

#[test]
fn decoding_drops_the_same_fields_as_go() {
    let decoded = read(
        "v1",
        "ConfigMap",
        &json!({
            "metadata": {"name": "c", "labels": {}, "creationTimestamp": null},
            "data": {"a": null, "b": "x"},
            "binaryData": {"k": "dh=="},
            "colour": 1,
        }),
    )
    .unwrap();
    assert_eq!(
        decoded.value,
        json!({"metadata": {"name": "c"}, "data": {"a": "", "b": "x"}, "binaryData": {"k": "dg=="}})
    );
    assert_eq!(decoded.unknown, ["colour"]);
}

#[test]
fn quantities_and_times_are_normalized() {
    let decoded = read(
        "v1",
        "Node",
        &json!({"status": {
            "capacity": {"cpu": "1000m", "pods": 110},
            "conditions": [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T01:00:00+01:00"}],
        }}),
    )
    .unwrap();
    let status = &decoded.value["status"];
    assert_eq!(status["capacity"], json!({"cpu": "1", "pods": "110"}));
    assert_eq!(
        status["conditions"],
        json!([{
            "type": "Ready",
            "status": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": null,
        }])
    );
}

#[test]
fn type_errors_have_go_messages() {
    for (object, want) in [
        (
            json!({"spec": {"containers": [{"ports": [{"hostPort": "x"}]}]}}),
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.hostPort of type int32",
        ),
        (
            json!({"spec": {"priority": 1.5}}),
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            json!({"spec": {"overhead": {"cpu": "x"}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            json!([]),
            "json: cannot unmarshal array into Go value of type v1.Pod",
        ),
    ] {
        assert_eq!(read("v1", "Pod", &object), Err(want.to_owned()));
    }
}

#[test]
fn unstructured_converter_has_its_own_messages() {
    let id = schema().kind("v1", "Pod").unwrap();
    for (spec, want) in [
        (
            json!({"nodeSelector": "x"}),
            "cannot restore map from string",
        ),
        (json!({"containers": {}}), "cannot restore slice from map"),
        (json!({"affinity": 1}), "cannot restore struct from: int64"),
        (
            json!({"restartPolicy": 1}),
            "cannot convert int64 to v1.RestartPolicy",
        ),
        (json!({"hostNetwork": "x"}), "unrecognized type: bool"),
        (json!({"priority": 1.5}), "cannot convert float64 to int32"),
    ] {
        let error = decode(id, &json!({"spec": spec}), Source::Maps).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
    let decoded = decode(id, &json!({"spec": {"priority": 5.0}}), Source::Maps).unwrap();
    assert_eq!(decoded.value["spec"]["priority"], json!(5));
}

#[test]
fn objects_are_written_in_go_s_order() {
    let id = schema().kind("v1", "Pod").unwrap();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"uid": "u", "name": "p", "annotations": {"b": "<", "a": "&"}},
    });
    assert_eq!(
        encode::encode(id, &pod),
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"u","annotations":{"a":"\u0026","b":"\u003c"}}}"#
    );
}
