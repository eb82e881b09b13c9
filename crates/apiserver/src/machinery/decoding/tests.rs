use serde_json::json;

use super::*;

fn pods() -> GroupVersionKind {
    crate::kinds::by_kind("v1", "Pod")
        .unwrap()
        .group_version_kind()
}

fn decode_pod(body: &str, validation: FieldValidation) -> Result<Decoded, String> {
    decode(body.as_bytes(), BodyFormat::Json, pods(), validation).map_err(|error| error.to_string())
}

fn reason(spec: &str) -> String {
    let body = format!("{{\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"spec\": {spec}}}");
    let error = decode_pod(&body, FieldValidation::Strict).unwrap_err();
    let prefix = "Pod in version \"v1\" cannot be handled as a Pod: ";
    error.strip_prefix(prefix).unwrap_or(&error).to_owned()
}

#[test]
fn unknown_and_duplicate_fields_are_errors_warnings_or_nothing() {
    let body = r#"{"spec": {"foo": 1, "containers": [{"name": "a", "x": 2}], "nodeName": "n", "nodeName": "m"}}"#;
    let findings = [
        "unknown field \"spec.foo\"",
        "unknown field \"spec.containers[0].x\"",
        "duplicate field \"spec.nodeName\"",
    ];
    assert_eq!(
        decode_pod(body, FieldValidation::Strict).unwrap_err(),
        format!(
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: {}",
            findings.join(", ")
        )
    );
    let decoded = decode_pod(body, FieldValidation::Warn).unwrap();
    assert_eq!(decoded.warnings, findings);
    assert_eq!(decoded.object["spec"]["nodeName"], json!("m"));
    assert_eq!(
        decode_pod(body, FieldValidation::Ignore).unwrap().warnings,
        [""; 0]
    );
}

#[test]
fn first_wrong_type_is_reported_as_in_go() {
    assert_eq!(
        reason(r#"{"containers": [{"image": false}], "nodeName": 1}"#),
        "json: cannot unmarshal bool into Go struct field Container.spec.containers.image of type string"
    );
    assert_eq!(
        reason(r#"{"volumes": [{"emptyDir": "x"}]}"#),
        "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource"
    );
    assert_eq!(
        reason(r#"{"restartPolicy": 5, "containers": {}}"#),
        "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"
    );
    assert_eq!(
        reason(r#"{"priority": 1.5}"#),
        "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32"
    );
}

#[test]
fn invalid_quantity_aborts_decoding() {
    assert_eq!(
        reason(r#"{"nodeName": 1, "overhead": {"cpu": "x"}}"#),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn non_objects_are_unrecognized() {
    assert_eq!(
        decode_pod("{", FieldValidation::Strict).unwrap_err(),
        "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input ({)"
    );
    assert!(
        decode_pod("[1]", FieldValidation::Strict)
            .unwrap_err()
            .contains("cannot unmarshal array")
    );
}

#[test]
fn another_kind_is_refused() {
    assert_eq!(
        decode_pod(
            r#"{"kind": "Pod", "apiVersion": "v2"}"#,
            FieldValidation::Strict
        )
        .unwrap_err(),
        "Pod in version \"v2\" cannot be handled as a Pod: no kind \"Pod\" is registered for version \"v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
    assert_eq!(
        decode_pod(
            r#"{"kind": "Deployment", "apiVersion": "apps/v1"}"#,
            FieldValidation::Strict
        )
        .unwrap_err(),
        "the API version in the data (apps/v1) does not match the expected API version (v1)"
    );
}

#[test]
fn yaml_bodies_are_decoded() {
    let body = b"kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - name: a\n    resources: {limits: {cpu: 1}}\n";
    let decoded = decode(body, BodyFormat::Yaml, pods(), FieldValidation::Strict).unwrap();
    assert_eq!(
        decoded.object["spec"]["containers"][0]["resources"]["limits"],
        json!({"cpu": "1"})
    );
}

#[test]
fn empty_body_is_an_empty_object() {
    let decoded = decode_pod("null", FieldValidation::Strict).unwrap();
    assert_eq!(decoded.object["kind"], json!("Pod"));
}

#[test]
fn evictions_of_old_clients_are_accepted() {
    let kind = GroupVersionKind {
        group: "policy",
        version: "v1",
        kind: "Eviction",
    };
    let read = |version: &str| {
        let body = format!(r#"{{"kind":"Eviction","apiVersion":"policy/{version}"}}"#);
        decode(
            body.as_bytes(),
            BodyFormat::Json,
            kind,
            FieldValidation::Strict,
        )
    };
    assert_eq!(read("v1beta1").unwrap().object["apiVersion"], "policy/v1");
    assert!(read("v1alpha1").is_err());
}
