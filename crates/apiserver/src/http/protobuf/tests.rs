use std::collections::BTreeMap;

use k8s_pb::api::apps::v1 as apps;
use k8s_pb::api::authorization::v1 as authorization;
use k8s_pb::api::core::v1 as core;
use k8s_pb::api::policy::v1 as policy;
use k8s_pb::apimachinery::pkg::api::resource::Quantity;
use k8s_pb::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_pb::apimachinery::pkg::runtime::{RawExtension, TypeMeta, Unknown};
use k8s_pb::apimachinery::pkg::util::intstr::IntOrString;
use prost::Message;
use serde_json::json;

use super::*;
use crate::kinds;
use crate::machinery::schema::Shape;

/// The body that a typed client would send.
fn body(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
    let envelope = Unknown {
        type_meta: Some(TypeMeta {
            api_version: Some(api_version.to_owned()),
            kind: Some(kind.to_owned()),
        }),
        raw: Some(message.encode_to_vec()),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    [MAGIC, &envelope.encode_to_vec()].concat()
}

fn check(api_version: &str, kind: &str, message: &impl Message, mut expected: Value) {
    expected["apiVersion"] = json!(api_version);
    expected["kind"] = json!(kind);
    let decoded = decode(&body(api_version, kind, message), "", "").unwrap();
    assert_eq!(decoded, expected);
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// As Go writes it: fields that are not pointers are there even when empty.
fn metadata(name: &str) -> Option<meta::ObjectMeta> {
    Some(meta::ObjectMeta {
        name: text(name),
        generate_name: text(""),
        namespace: text(""),
        self_link: text(""),
        uid: text(""),
        resource_version: text(""),
        generation: Some(0),
        creation_timestamp: Some(meta::Time::default()),
        ..Default::default()
    })
}

fn quantity(amount: &str) -> Quantity {
    Quantity {
        string: text(amount),
    }
}

#[test]
fn body_of_kubectl_create_decodes_to_json() {
    let namespace = core::Namespace {
        metadata: metadata("n"),
        spec: Some(core::NamespaceSpec::default()),
        status: Some(core::NamespaceStatus {
            phase: text(""),
            conditions: vec![],
        }),
    };
    check(
        "v1",
        "Namespace",
        &namespace,
        json!({"metadata": {"name": "n"}}),
    );
    let secret = core::Secret {
        metadata: metadata("s"),
        data: BTreeMap::from([("key".to_owned(), b"value".to_vec())]),
        r#type: text("Opaque"),
        ..Default::default()
    };
    let expected =
        json!({"metadata": {"name": "s"}, "data": {"key": "dmFsdWU="}, "type": "Opaque"});
    check("v1", "Secret", &secret, expected);
}

#[test]
fn zero_is_kept_only_for_pointers() {
    let deployment = apps::Deployment {
        metadata: metadata("d"),
        spec: Some(apps::DeploymentSpec {
            replicas: Some(0),
            min_ready_seconds: Some(0),
            paused: Some(false),
            strategy: Some(apps::DeploymentStrategy {
                r#type: text(""),
                rolling_update: Some(apps::RollingUpdateDeployment {
                    max_unavailable: Some(IntOrString {
                        r#type: Some(1),
                        int_val: Some(0),
                        str_val: text("25%"),
                    }),
                    max_surge: Some(IntOrString {
                        r#type: Some(0),
                        int_val: Some(0),
                        str_val: text(""),
                    }),
                }),
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let expected = json!({"metadata": {"name": "d"}, "spec": {"replicas": 0, "strategy":
        {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}}}});
    check("apps/v1", "Deployment", &deployment, expected);
}

fn container() -> core::Container {
    core::Container {
        name: text("c"),
        image: text("i"),
        ports: vec![core::ContainerPort {
            container_port: Some(80),
            host_port: Some(0),
            ..Default::default()
        }],
        resources: Some(core::ResourceRequirements {
            requests: BTreeMap::from([("cpu".to_owned(), quantity("0.5"))]),
            ..Default::default()
        }),
        liveness_probe: Some(core::Probe {
            handler: Some(core::ProbeHandler {
                http_get: Some(core::HttpGetAction {
                    path: text("/"),
                    port: Some(IntOrString {
                        r#type: Some(0),
                        int_val: Some(-1),
                        str_val: None,
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            period_seconds: Some(7),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[test]
fn inlined_messages_are_flattened_and_empty_pointers_kept() {
    let pod = core::Pod {
        metadata: Some(meta::ObjectMeta {
            creation_timestamp: Some(meta::Time {
                seconds: Some(1_767_323_045),
                nanos: Some(0),
            }),
            labels: BTreeMap::from([
                ("a".to_owned(), "b".to_owned()),
                ("empty".to_owned(), String::new()),
            ]),
            ..metadata("p").unwrap()
        }),
        spec: Some(core::PodSpec {
            containers: vec![container()],
            volumes: vec![core::Volume {
                name: text("v"),
                volume_source: Some(core::VolumeSource {
                    empty_dir: Some(core::EmptyDirVolumeSource {
                        medium: text(""),
                        size_limit: None,
                    }),
                    ..Default::default()
                }),
            }],
            security_context: Some(core::PodSecurityContext {
                supplemental_groups: vec![0, 5],
                run_as_non_root: Some(false),
                ..Default::default()
            }),
            ..Default::default()
        }),
        status: Some(core::PodStatus::default()),
    };
    let expected = json!({
        "metadata": {"name": "p", "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"a": "b", "empty": ""}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": -1}, "periodSeconds": 7}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "securityContext": {"supplementalGroups": [0, 5], "runAsNonRoot": false},
        },
    });
    check("v1", "Pod", &pod, expected);
}

#[test]
fn embedded_documents_and_microseconds_are_kept() {
    let revision = apps::ControllerRevision {
        metadata: Some(meta::ObjectMeta {
            managed_fields: vec![meta::ManagedFieldsEntry {
                manager: text("m"),
                fields_v1: Some(meta::FieldsV1 {
                    raw: Some(br#"{"f:data":{}}"#.to_vec()),
                }),
                ..Default::default()
            }],
            ..metadata("r").unwrap()
        }),
        data: Some(RawExtension {
            raw: Some(br#"{"spec":{"a":[1]}}"#.to_vec()),
        }),
        revision: Some(3),
    };
    let expected = json!({"metadata": {"name": "r", "managedFields":
        [{"manager": "m", "fieldsV1": {"f:data": {}}}]}, "data": {"spec": {"a": [1]}}, "revision": 3});
    check("apps/v1", "ControllerRevision", &revision, expected);
    let event = core::Event {
        metadata: metadata("e"),
        event_time: Some(meta::MicroTime {
            seconds: Some(1_767_323_045),
            nanos: Some(120_000_000),
        }),
        ..Default::default()
    };
    let expected = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-02T03:04:05.120000Z"});
    check("v1", "Event", &event, expected);
}

#[test]
fn lists_in_maps_are_unwrapped() {
    let review = authorization::SubjectAccessReview {
        spec: Some(authorization::SubjectAccessReviewSpec {
            user: text("u"),
            extra: BTreeMap::from([(
                "scopes".to_owned(),
                authorization::ExtraValue {
                    items: vec!["a".to_owned(), "b".to_owned()],
                },
            )]),
            ..Default::default()
        }),
        ..Default::default()
    };
    let expected = json!({"spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}});
    check(
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        &review,
        expected,
    );
}

#[test]
fn delete_options_belong_to_every_group() {
    let options = meta::DeleteOptions {
        grace_period_seconds: Some(0),
        propagation_policy: text("Background"),
        dry_run: vec!["All".to_owned()],
        ..Default::default()
    };
    for api_version in ["v1", "apps/v1", "policy/v1"] {
        let expected =
            json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"]});
        check(api_version, "DeleteOptions", &options, expected);
    }
    let eviction = policy::Eviction {
        metadata: metadata("p"),
        delete_options: Some(options),
    };
    for api_version in ["policy/v1", "policy/v1beta1"] {
        let expected = json!({"metadata": {"name": "p"}, "deleteOptions":
            {"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"]}});
        check(api_version, "Eviction", &eviction, expected);
    }
}

#[test]
fn request_supplies_type_missing_in_the_envelope() {
    let map = core::ConfigMap {
        data: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        ..Default::default()
    };
    let decoded = decode(&body("", "", &map), "v1", "ConfigMap").unwrap();
    assert_eq!(
        decoded,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}})
    );
    let refusal = decode(&body("v1", "Cake", &map), "v1", "ConfigMap").unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "no kind \"Cake\" is registered for version \"v1\""
    );
}

#[test]
fn repeated_message_is_merged() {
    let part = |spec| core::Pod {
        spec: Some(spec),
        ..Default::default()
    };
    let first = part(core::PodSpec {
        node_name: text("n1"),
        containers: vec![core::Container::default()],
        ..Default::default()
    });
    let second = part(core::PodSpec {
        node_name: text("n2"),
        containers: vec![core::Container::default()],
        ..Default::default()
    });
    let raw = [first.encode_to_vec(), second.encode_to_vec()].concat();
    let envelope = Unknown {
        raw: Some(raw),
        ..Default::default()
    };
    let body = [MAGIC, &envelope.encode_to_vec()].concat();
    let decoded = decode(&body, "v1", "Pod").unwrap();
    assert_eq!(
        decoded["spec"],
        json!({"nodeName": "n2", "containers": [{}, {}]})
    );
}

#[test]
fn malformed_bodies_are_rejected_with_go_messages() {
    let refusal = |body: &[u8]| decode(body, "v1", "Pod").unwrap_err().to_string();
    assert_eq!(refusal(b""), "empty data");
    assert_eq!(
        refusal(b"{}"),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(refusal(b"k8s\0"), "empty body");
    // A field of five bytes of which none are there.
    assert_eq!(refusal(b"k8s\0\x12\x05"), "unexpected EOF");
    assert_eq!(refusal(b"k8s\0\x0f"), "proto: illegal wireType 7");
    assert_eq!(refusal(b"k8s\0\x0c"), "proto: unexpected end of group");
    assert_eq!(refusal(b"k8s\0\x00"), "proto: illegal tag 0 (wire type 0)");
    // `metadata` as a number.
    assert_eq!(
        refusal(b"k8s\0\x12\x02\x08\x01"),
        "proto: wrong wireType = 0 for field Metadata"
    );
    let node = core::Node {
        status: Some(core::NodeStatus {
            capacity: BTreeMap::from([("cpu".to_owned(), quantity("much"))]),
            ..Default::default()
        }),
        ..Default::default()
    };
    let refusal = decode(&body("v1", "Node", &node), "", "")
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("capacity: quantities must match"),
        "{refusal}"
    );
}

#[test]
fn number_of_parts_is_limited() {
    let pod = core::PodSpec {
        containers: vec![core::Container::default(); 300_000],
        ..Default::default()
    };
    let pod = core::Pod {
        spec: Some(pod),
        ..Default::default()
    };
    let refusal = decode(&body("v1", "Pod", &pod), "", "").unwrap_err();
    assert_eq!(refusal, DecodeError::TooManyParts { limit: 262_144 });
}

/// Every field of every kind has its number, so nothing a client sends is dropped; and no struct
/// contains itself, so the depth of a message is bounded by the table.
#[test]
fn the_table_is_complete_and_has_no_cycles() {
    fn visit(id: StructId, path: &mut Vec<StructId>) {
        assert!(
            !path.contains(&id),
            "{} contains itself",
            schema().get(id).name
        );
        path.push(id);
        for field in &schema().get(id).fields {
            let is_type = matches!(field.name, "apiVersion" | "kind");
            let ty = schema().get(id).name;
            assert!(is_type || !field.numbers.is_empty(), "{ty}.{}", field.name);
            visit_shape(&field.ty.shape, path);
        }
        path.pop();
    }
    fn visit_shape(shape: &Shape, path: &mut Vec<StructId>) {
        match shape {
            Shape::Struct(id) => visit(*id, path),
            Shape::Pointer(ty) | Shape::List(ty) | Shape::Map(ty) => visit_shape(&ty.shape, path),
            _ => {}
        }
    }
    for kind in kinds::all().filter(|kind| kind.group != "metrics.k8s.io") {
        visit(
            struct_of(&kind.api_version(), kind.kind).unwrap(),
            &mut Vec::new(),
        );
        for subresource in kind
            .subresources
            .iter()
            .filter(|sub| !sub.kind.ends_with("Options"))
        {
            let (group, version) = subresource
                .group_version
                .unwrap_or((kind.group, kind.version));
            let api_version = kinds::group_version(group, version);
            assert!(
                struct_of(&api_version, subresource.kind).is_some(),
                "{}",
                subresource.kind
            );
        }
    }
}
