use serde_json::json;

use super::*;
use crate::kinds;

/// Admits every object.
struct Anyone;

impl Admission for Anyone {
    fn admit(&mut self, _: &mut Value, _: Option<&Value>) -> Result<(), Status> {
        Ok(())
    }

    fn check(&mut self, _: &Value, _: Option<&Value>) -> Result<(), Status> {
        Ok(())
    }
}

const IDENTITY: Identity<'static> = Identity {
    uid: "u1",
    name_suffix: "bcdfg",
};

fn request(api_version: &str, kind: &str, part: Part, name: &'static str) -> Request<'static> {
    Request {
        kind: kinds::by_kind(api_version, kind).unwrap(),
        part,
        namespace: "ns",
        name,
        manager: "m",
        now: "2026-01-01T00:00:00Z",
        validation: FieldValidation::Warn,
        rules: Rules::default(),
    }
}

fn body(text: &str) -> Body<'_> {
    Body {
        bytes: text.as_bytes(),
        format: BodyFormat::Json,
    }
}

fn post(api_version: &str, kind: &str, object: &Value) -> Result<Accepted, Status> {
    let request = request(api_version, kind, Part::Main, "");
    let text = object.to_string();
    create(&request, body(&text), IDENTITY, &mut Anyone)
}

fn config_map() -> Value {
    let created = post(
        "v1",
        "ConfigMap",
        &json!({"metadata": {"name": "c"}, "data": {"a": "1"}}),
    );
    versioned(created.unwrap().object)
}

fn versioned(mut object: Value) -> Value {
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

fn put(object: &Value, old: &Value, now: &'static str) -> Result<Accepted, Status> {
    let request = Request {
        now,
        ..request("v1", "ConfigMap", Part::Main, "c")
    };
    let text = object.to_string();
    update(&request, body(&text), old, &mut Anyone)
}

const LATER: &str = "2026-01-02T00:00:00Z";

#[test]
fn a_new_object_has_its_managers() {
    let map = config_map();
    assert_eq!(
        map["metadata"]["managedFields"],
        json!([{
            "manager": "m", "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }])
    );
}

#[test]
fn write_without_changes_returns_the_old_object() {
    let old = config_map();
    let mut unversioned = old.clone();
    remove(&mut unversioned["metadata"], "resourceVersion");
    assert_eq!(put(&old, &old, LATER).unwrap().object, unversioned);
}

#[test]
fn empty_managed_fields_reset_ownership() {
    let old = config_map();
    for list in [json!([]), json!([{}])] {
        let mut new = old.clone();
        new["metadata"]["managedFields"] = list;
        let object = put(&new, &old, LATER).unwrap().object;
        assert_eq!(object["metadata"].get("managedFields"), None);
    }
}

#[test]
fn wrong_resource_version_conflicts_and_empty_one_matches() {
    let old = config_map();
    let mut new = old.clone();
    new["metadata"]["resourceVersion"] = json!("6");
    let status = put(&new, &old, LATER).unwrap_err();
    assert_eq!((status.code, status.reason), (409, "Conflict"));
    remove(&mut new["metadata"], "resourceVersion");
    assert_eq!(put(&new, &old, LATER).unwrap().resource_version, None);
    new["metadata"]["resourceVersion"] = json!("x");
    let status = put(&new, &old, LATER).unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (500, "strconv.ParseUint: parsing \"x\": invalid syntax")
    );
}

#[test]
fn missing_resource_version_error_names_the_resource() {
    let lease = post(
        "coordination.k8s.io/v1",
        "Lease",
        &json!({"metadata": {"name": "l"}}),
    );
    let old = versioned(lease.unwrap().object);
    let mut new = old.clone();
    remove(&mut new["metadata"], "resourceVersion");
    let request = request("coordination.k8s.io/v1", "Lease", Part::Main, "l");
    let text = new.to_string();
    let status = update(&request, body(&text), &old, &mut Anyone).unwrap_err();
    assert_eq!(
        status.message,
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
}

#[test]
fn wrong_uid_conflicts() {
    let old = config_map();
    let mut new = old.clone();
    new["metadata"]["uid"] = json!("u2");
    let status = put(&new, &old, LATER).unwrap_err();
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"c\": StorageError: invalid object, Code: 4, \
         Key: /registry/configmaps/ns/c, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: u2, UID in object meta: u1"
    );
}

#[test]
fn create_with_resource_version_is_rejected() {
    let map = json!({"metadata": {"name": "c", "resourceVersion": "3"}});
    let status = post("v1", "ConfigMap", &map).unwrap_err();
    assert_eq!((status.code, status.reason), (500, ""));
    let map = json!({"metadata": {"name": "", "resourceVersion": "3"}});
    assert_eq!(post("v1", "ConfigMap", &map).unwrap_err().code, 422);
}

#[test]
fn names_are_generated_from_the_prefix() {
    let map = json!({"metadata": {"generateName": "c-"}});
    let created = post("v1", "ConfigMap", &map).unwrap();
    assert_eq!(created.object["metadata"]["name"], "c-bcdfg");
}

#[test]
fn duplicate_owner_references_are_removed() {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    let map = json!({"metadata": {"name": "c", "ownerReferences": [owner, owner]}});
    let created = post("v1", "ConfigMap", &map).unwrap();
    assert_eq!(
        created.object["metadata"]["ownerReferences"],
        json!([owner])
    );
    assert!(created.warnings[0].ends_with("duplicate UID(s) observed: u"));
}

#[test]
fn errors_carry_warnings() {
    let map = json!({"metadata": {"name": "C"}, "colour": 1});
    let status = post("v1", "ConfigMap", &map).unwrap_err();
    assert_eq!(status.warnings, ["unknown field \"colour\""]);
}

#[test]
fn apply_creates_a_missing_object_unless_it_has_a_uid() {
    let request = request("v1", "ConfigMap", Part::Main, "c");
    let apply = |text: &str| {
        let (force, old) = (false, None);
        let admission = &mut Anyone;
        patch(
            &request,
            PatchType::Apply,
            force,
            body(text),
            old,
            IDENTITY,
            admission,
        )
    };
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: '1'\n  a: '2'\n";
    let created = apply(yaml).unwrap();
    assert!(created.is_new);
    assert_eq!(created.object["data"]["a"], "2");
    assert_eq!(created.warnings, ["line 6: key \"a\" already set in map"]);
    let status = apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: x}}");
    assert_eq!(
        status.unwrap_err().message,
        "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided object \
         specified uid x, and no existing object was found"
    );
}

#[test]
fn other_patch_types_do_not_create() {
    let request = request("v1", "ConfigMap", Part::Main, "c");
    let outcome = patch(
        &request,
        PatchType::Merge,
        false,
        body("{}"),
        None,
        IDENTITY,
        &mut Anyone,
    );
    assert_eq!(outcome.unwrap_err().code, 404);
}

#[test]
fn scale_changes_replicas_and_their_manager() {
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let old = versioned(post("apps/v1", "Deployment", &deployment).unwrap().object);
    let mut scale = scale_of(&old);
    assert_eq!(scale["status"]["selector"], "a=b");
    scale["spec"]["replicas"] = json!(3);
    let request = Request {
        manager: "scaler",
        ..request("apps/v1", "Deployment", Part::Scale, "d")
    };
    let text = scale.to_string();
    let written = update(&request, body(&text), &old, &mut Anyone).unwrap();
    assert_eq!(written.object["spec"]["replicas"], 3);
    assert_eq!(written.object["metadata"]["generation"], 2);
    let entries = written.object["metadata"]["managedFields"].as_array();
    let scaler = entries
        .unwrap()
        .iter()
        .find(|entry| entry["manager"] == "scaler");
    assert_eq!(scaler.unwrap()["subresource"], "scale");
    assert_eq!(
        scaler.unwrap()["fieldsV1"],
        json!({"f:spec": {"f:replicas": {}}})
    );
}

#[test]
fn server_changes_keep_managers() {
    let old = config_map();
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    let request = Request {
        manager: "",
        ..request("v1", "ConfigMap", Part::Main, "c")
    };
    let written = replace(&request, new, &old, &mut Anyone).unwrap();
    assert_eq!(
        written.object["metadata"]["managedFields"],
        old["metadata"]["managedFields"]
    );
}

#[test]
fn service_without_ports_is_rejected_and_valid_one_gets_families() {
    let bad = json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}}});
    let status = post("v1", "Service", &bad).unwrap_err();
    assert_eq!(
        status.message,
        "Service \"s\" is invalid: spec.ports: Required value"
    );
    let good = json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"},
        "ports": [{"port": 80}]}});
    let service = post("v1", "Service", &good).unwrap().object;
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 80);
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(service["spec"]["internalTrafficPolicy"], "Cluster");
}

#[test]
fn an_event_keeps_the_managers_of_its_other_encoding() {
    let event = json!({"metadata": {"name": "e", "namespace": "ns"}, "involvedObject": {"namespace": "ns"},
        "message": "a", "type": "Normal", "reason": "R"});
    let mut old = versioned(post("v1", "Event", &event).unwrap().object);
    let kind = kinds::by_kind("events.k8s.io/v1", "Event").unwrap();
    from_stored(kind, &mut old);
    assert_eq!(old["note"], "a");
    let request = Request {
        manager: "other",
        ..request("events.k8s.io/v1", "Event", Part::Main, "e")
    };
    let text = json!({"metadata": {"labels": {"x": "y"}}}).to_string();
    let merge = PatchType::Merge;
    let patched = patch(
        &request,
        merge,
        false,
        body(&text),
        Some(&old),
        IDENTITY,
        &mut Anyone,
    );
    let mut object = patched.unwrap().object;
    to_stored(kind, &mut object);
    assert_eq!(object["message"], "a");
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let versions: Vec<&Value> = entries.iter().map(|entry| &entry["apiVersion"]).collect();
    assert!(versions.contains(&&json!("v1")), "{versions:?}");
    let first = entries
        .iter()
        .find(|entry| entry["manager"] == "m")
        .unwrap();
    assert_eq!(first["fieldsV1"]["f:message"], json!({}));
}
