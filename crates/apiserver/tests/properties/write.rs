//! No request makes the write path panic.

use plimsoll_apiserver::kinds::{self, Kind};
use plimsoll_apiserver::machinery::admission::{BuiltIn, Cluster};
use plimsoll_apiserver::machinery::decoding::decode;
use plimsoll_apiserver::machinery::write::{
    Body, BodyFormat, FieldValidation, Identity, Part, PatchType, Request, Rules, create, patch,
    update,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Field names that exist, so that random objects reach validation.
const FIELDS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "containers",
    "initContainers",
    "name",
    "image",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "ports",
    "containerPort",
    "hostPort",
    "volumes",
    "emptyDir",
    "projected",
    "sources",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "tolerations",
    "selector",
    "matchLabels",
    "labels",
    "hard",
    "annotations",
    "strategy",
    "type",
    "rollingUpdate",
    "maxUnavailable",
    "jobTemplate",
    "schedule",
    "livenessProbe",
    "httpGet",
    "port",
    "env",
    "value",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "securityContext",
    "topologySpreadConstraints",
    "schedulingGates",
    "priorityClassName",
    "limits",
    "completions",
    "podFailurePolicy",
    "rules",
    "onExitCodes",
    "data",
    "taints",
    "podCIDR",
    "capacity",
    "creationTimestamp",
    "ownerReferences",
    "finalizers",
    "conditions",
    "podIPs",
    "ip",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-zA-Z0-9./=%:_-]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "100m",
            "1Gi",
            "25%",
            "In",
            "Always",
            "Never",
            "2026-01-01T00:00:00Z"
        ])
        .prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(7, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(FIELDS), inner), 0..5).prop_map(
                |members| {
                    members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect()
                }
            ),
        ]
    })
}

fn kinds() -> Vec<&'static Kind> {
    kinds::all().filter(|kind| kind.storage.is_some()).collect()
}

/// An object that could be in the store.
fn stored(object: &Value, kind: &Kind) -> Value {
    let text = object.to_string();
    let of = kind.group_version_kind();
    let ignore = FieldValidation::Ignore;
    match decode(text.as_bytes(), BodyFormat::Json, of, ignore) {
        Ok(decoded) => decoded.object,
        Err(_) => json!({"metadata": {"name": "p", "resourceVersion": "1"}, "spec": {}}),
    }
}

fn write(bytes: &[u8], old: &Value, kind: &'static Kind) {
    let cluster = Cluster::default();
    let identity = Identity {
        uid: "u",
        name_suffix: "bcdfg",
    };
    for part in [
        Part::Main,
        Part::Status,
        Part::Resize,
        Part::EphemeralContainers,
        Part::Finalize,
        Part::Scale,
    ] {
        let request = Request {
            kind,
            part,
            namespace: "n",
            name: "p",
            manager: "m",
            now: "2026-01-01T00:00:00Z",
            validation: FieldValidation::Warn,
            rules: Rules::default(),
        };
        let admission = &mut BuiltIn {
            kind,
            part,
            cluster: &cluster,
        };
        for format in [BodyFormat::Json, BodyFormat::Yaml, BodyFormat::Protobuf] {
            let body = Body { bytes, format };
            let post = Request {
                name: "",
                ..request
            };
            if let Err(status) = create(&post, body, identity, admission) {
                assert!(status.to_json().is_object());
            }
            let _ = update(&request, body, old, admission);
        }
        let body = Body {
            bytes,
            format: BodyFormat::Json,
        };
        for patch_type in [
            PatchType::Json,
            PatchType::Merge,
            PatchType::Strategic,
            PatchType::Apply,
        ] {
            for old in [Some(old), None] {
                let _ = patch(&request, patch_type, false, body, old, identity, admission);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_get_a_response(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        kind in prop::sample::select(kinds()),
    ) {
        write(&bytes, &json!({}), kind);
    }

    #[test]
    fn any_object_gets_a_response(
        (mut new, mut old) in (object(), object()),
        kind in prop::sample::select(kinds()),
    ) {
        for object in [&mut new, &mut old] {
            if object.is_object() {
                let meta = &mut object["metadata"];
                if !meta.is_object() {
                    *meta = json!({"resourceVersion": "1"});
                }
                meta["name"] = json!("p");
            }
        }
        write(new.to_string().as_bytes(), &stored(&old, kind), kind);
        write(old.to_string().as_bytes(), &stored(&new, kind), kind);
    }
}
