//! Properties of patches and applies; no input makes them panic.

use plimsoll_apiserver::machinery::apply::{FieldManager, FieldSet};
use plimsoll_apiserver::machinery::decoding::{FieldValidation, parse_json};
use plimsoll_apiserver::machinery::patch::{
    PatchType, apply_patch, json_patch, merge_patch, strategic_merge_patch,
};
use plimsoll_apiserver::machinery::schema::decode::Source;
use plimsoll_apiserver::machinery::schema::{StructId, decode, schema};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const KINDS: [(&str, &str); 6] = [
    ("v1", "Pod"),
    ("v1", "Node"),
    ("v1", "ConfigMap"),
    ("v1", "LimitRange"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ControllerRevision"),
];

/// Names that patches and types use, so that random JSON has an effect.
fn name() -> impl Strategy<Value = String> {
    let known = [
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "labels",
        "finalizers",
        "managedFields",
        "ownerReferences",
        "uid",
        "spec",
        "status",
        "containers",
        "ports",
        "containerPort",
        "resources",
        "limits",
        "cpu",
        "taints",
        "key",
        "conditions",
        "type",
        "data",
        "template",
        "op",
        "path",
        "from",
        "value",
        "creationTimestamp",
        "f:a",
        "k:{\"a\":1}",
        "v:1",
        ".",
    ];
    prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-z/~$.]{0,4}",
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(
            [
                "",
                "delete",
                "replace",
                "merge",
                "a",
                "add",
                "copy",
                "move",
                "/a",
                "/metadata/name",
                "100m",
                "Apply"
            ]
            .as_slice()
        )
        .prop_map(Value::from),
        "\\PC{0,3}".prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(name(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(name(), any_json(), 0..5).prop_map(|map| map.into_iter().collect())
}

fn any_kind() -> impl Strategy<Value = StructId> {
    proptest::sample::select(KINDS.as_slice())
        .prop_map(|(version, kind)| schema().kind(version, kind).expect("a known kind"))
}

/// JSON without nulls, as documents are.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from)
    ];
    let inner = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    btree_map("[a-d]", inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// The merge patch that transforms `old` into `new`.
fn merge_difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return new.clone();
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(key.clone(), merge_difference(before, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// A pod's merged lists and maps, all names distinct.
fn pod() -> impl Strategy<Value = Value> {
    let environment = btree_map("[A-E]", "[a-c]", 0..4);
    let container = ("[x-z]", environment);
    let containers = btree_map("[a-e]", container, 1..5)
        .prop_map(Vec::from_iter)
        .prop_shuffle();
    let finalizers = btree_set("[f-i]", 0..4)
        .prop_map(Vec::from_iter)
        .prop_shuffle();
    let labels = btree_map("[l-n]", "[a-c]", 0..3);
    (containers, finalizers, labels).prop_map(|(containers, finalizers, labels)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, (image, environment))| {
                let env: Vec<Value> = environment
                    .into_iter()
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect();
                json!({"name": name, "image": image, "env": env})
            })
            .collect();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": labels, "finalizers": finalizers},
            "spec": {"containers": containers},
        })
    })
}

/// The strategic merge patch that transforms the list `old` into `new`, with items identified by
/// name.
fn list_difference(key: &str, old: &[Value], new: &[Value], patch: &mut Map<String, Value>) {
    let order: Vec<Value> = new
        .iter()
        .map(|item| json!({"name": item["name"]}))
        .collect();
    let has = |list: &[Value], item: &Value| list.iter().any(|other| other["name"] == item["name"]);
    let mut changes: Vec<Value> = Vec::new();
    for item in new {
        let Some(before) = old.iter().find(|before| before["name"] == item["name"]) else {
            changes.push(item.clone());
            continue;
        };
        let mut change = Map::from_iter([("name".to_owned(), item["name"].clone())]);
        for (field, value) in item.as_object().expect("an object") {
            match (value, before.get(field)) {
                (Value::Array(new), Some(Value::Array(old))) => {
                    list_difference(field, old, new, &mut change);
                }
                (value, _) => {
                    change.insert(field.clone(), value.clone());
                }
            }
        }
        changes.push(Value::Object(change));
    }
    for gone in old.iter().filter(|item| !has(new, item)) {
        changes.push(json!({"name": gone["name"], "$patch": "delete"}));
    }
    if !(changes.is_empty() && old.is_empty()) {
        patch.insert(format!("$setElementOrder/{key}"), Value::Array(order));
        patch.insert(key.to_owned(), Value::Array(changes));
    }
}

fn strategic_difference(old: &Value, new: &Value) -> Map<String, Value> {
    let list = |pod: &Value, path: &str| -> Vec<Value> {
        let list = pod.pointer(path).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let mut spec = Map::new();
    list_difference(
        "containers",
        &list(old, "/spec/containers"),
        &list(new, "/spec/containers"),
        &mut spec,
    );
    let before = list(old, "/metadata/finalizers");
    let after = list(new, "/metadata/finalizers");
    let mut metadata = Map::new();
    metadata.insert(
        "labels".to_owned(),
        merge_difference(&old["metadata"]["labels"], &new["metadata"]["labels"]),
    );
    if before != after {
        let gone: Vec<&Value> = before.iter().filter(|item| !after.contains(item)).collect();
        let added: Vec<&Value> = after.iter().filter(|item| !before.contains(item)).collect();
        metadata.insert("$setElementOrder/finalizers".to_owned(), json!(after));
        metadata.insert(
            "$deleteFromPrimitiveList/finalizers".to_owned(),
            json!(gone),
        );
        if !added.is_empty() {
            metadata.insert("finalizers".to_owned(), json!(added));
        }
    }
    Map::from_iter([
        ("metadata".to_owned(), Value::Object(metadata)),
        ("spec".to_owned(), Value::Object(spec)),
    ])
}

/// Empty lists are left out, as decoding leaves them.
fn read(pod: &Value) -> Value {
    let kind = schema().kind("v1", "Pod").expect("a known kind");
    decode(kind, pod, Source::Text).expect("a pod").value
}

proptest! {
    #[test]
    fn merge_diff_transforms_old_to_new(old in document(), new in document()) {
        let patch = merge_difference(&old, &new);
        prop_assert_eq!(merge_patch(old, patch), new);
    }

    #[test]
    fn strategic_diff_transforms_old_to_new(old in pod(), new in pod()) {
        let patch = strategic_difference(&old, &new);
        let kind = schema().kind("v1", "Pod").expect("a known kind");
        let original = old.as_object().expect("an object").clone();
        let merged = strategic_merge_patch(kind, original, patch).expect("a sound patch");
        prop_assert_eq!(read(&Value::Object(merged)), read(&new));
    }

    #[test]
    fn apply_is_idempotent(live in pod(), applied in pod(), other in pod()) {
        let pods = FieldManager::new("v1", "Pod", "").expect("a known kind");
        let live = pods.update(None, read(&live), "creator", NOW);
        let once = pods.apply(Some(&live), &applied, "m", true, NOW).expect("forced");
        let twice = pods.apply(Some(&once), &applied, "m", false, NOW).expect("no conflict with oneself");
        prop_assert_eq!(&once, &twice);
        // Fields that a manager applies are present, whatever others had.
        let third = pods.apply(Some(&twice), &other, "n", true, NOW).expect("forced");
        for container in other["spec"]["containers"].as_array().expect("a list") {
            let kept = third["spec"]["containers"].as_array().expect("a list").iter()
                .find(|kept| kept["name"] == container["name"]);
            prop_assert_eq!(&kept.expect("applied")["image"], &container["image"]);
        }
    }

    #[test]
    fn applying_nothing_removes_own_fields(live in pod(), applied in pod()) {
        let pods = FieldManager::new("v1", "Pod", "").expect("a known kind");
        let live = pods.update(None, read(&live), "creator", NOW);
        let Ok(once) = pods.apply(Some(&live), &applied, "m", false, NOW) else {
            return Ok(()); // A conflict; nothing was written.
        };
        let nothing = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let back = pods.apply(Some(&once), &nothing, "m", false, NOW).expect("no conflict");
        let by_name = |pod: &Value| {
            let mut containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
            containers.sort_by_key(|container| container["name"].to_string());
            for container in &mut containers {
                if let Some(env) = container["env"].as_array_mut() {
                    env.sort_by_key(|variable| variable["name"].to_string());
                }
            }
            containers
        };
        prop_assert_eq!(by_name(&back), by_name(&live));
    }

    #[test]
    fn json_patches_never_panic(
        document in any_json(),
        operations in vec(any_object(), 0..5),
    ) {
        let _ = json_patch(document, &operations);
    }

    #[test]
    fn merge_patches_never_panic(document in any_json(), patch in any_json()) {
        let _ = merge_patch(document, patch);
    }

    #[test]
    fn strategic_patches_never_panic(kind in any_kind(), original in any_object(), patch in any_object()) {
        let _ = strategic_merge_patch(kind, original, patch);
    }

    #[test]
    fn decoding_never_panics_and_is_stable(kind in any_kind(), object in any_object()) {
        for source in [Source::Text, Source::Maps] {
            if let Ok(decoded) = decode(kind, &Value::Object(object.clone()), source) {
                let again = decode(kind, &decoded.value, source).expect("what Go writes it reads");
                prop_assert_eq!(again.value, decoded.value);
                prop_assert!(again.unknown.is_empty());
            }
        }
    }

    #[test]
    fn applies_never_panic(
        (version, kind) in proptest::sample::select(KINDS.as_slice()),
        live in any_object(),
        applied in any_object(),
        force in any::<bool>(),
    ) {
        let manager = FieldManager::new(version, kind, "").expect("a known kind");
        let mut applied = applied;
        applied.insert("apiVersion".to_owned(), json!(version));
        applied.insert("kind".to_owned(), json!(kind));
        let (live, applied) = (Value::Object(live), Value::Object(applied));
        let _ = manager.apply(Some(&live), &applied, "m", force, NOW);
        let _ = manager.update(Some(&live), applied, "m", NOW);
    }

    #[test]
    fn field_sets_never_panic_and_round_trip(fields in any_json()) {
        if let Ok(set) = FieldSet::from_fields_v1(&fields) {
            prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
        }
    }

    #[test]
    fn bodies_never_panic(bytes in vec(any::<u8>(), 0..64), text in "[\\[\\]{}\":,0-9a-z\\\\. -]{0,32}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let parsed = parse_json(bytes);
            if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
                prop_assert_eq!(parsed.expect("JSON").value, value);
            }
        }
    }

    #[test]
    fn requests_never_panic(
        kind in any_kind(),
        current in any_object(),
        patch in any_json(),
        text in "\\PC{0,16}",
        strict in any::<bool>(),
    ) {
        let validation = if strict { FieldValidation::Strict } else { FieldValidation::Ignore };
        let current = Value::Object(current);
        for patch_type in [PatchType::Json, PatchType::Merge, PatchType::Strategic] {
            for bytes in [patch.to_string(), text.clone()] {
                let _ = apply_patch(kind, patch_type, &current, bytes.as_bytes(), validation);
            }
        }
    }
}
