//! Chains of patches: the result of one is the input of the next, and every stored result can be
//! decoded as clients decode it.
//!
//! `PROPTEST_CASES=1000000 cargo test -p plimsoll-apiserver --test fuzz chains -- --nocapture` runs
//! a million chains. `PLIMSOLL_SEED` is the number of the first, which a failure prints.

use std::ops::AddAssign;
use std::sync::OnceLock;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use k8s_openapi::api::rbac::v1::Role;
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::core::{DynamicObject, ObjectList};
use plimsoll_apiserver::bounds;
use plimsoll_apiserver::cache::{encode, encode_with_revision};
use plimsoll_apiserver::kinds;
use plimsoll_apiserver::store::MAX_TXN_BYTES;
use serde::de::DeserializeOwned;

use super::*;

/// The number of chains in a normal run.
const USUAL: u64 = 1_000;

/// The longest chain of patches.
const LONGEST: usize = 6;

/// An object that chains of patches begin with.
struct Beginning {
    kind: &'static Kind,
    object: Value,
    read: fn(&[u8]) -> Result<(), serde_json::Error>,
}

fn read_as<K: DeserializeOwned>(json: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<K>(json).map(|_| ())
}

fn beginning<K: DeserializeOwned>(version: &str, kind: &str, object: Value) -> Beginning {
    let kind = kinds::by_kind(version, kind).unwrap();
    let mut object = object;
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(version);
    object["metadata"] = json!({"name": "p", "labels": {"a": "b"}, "annotations": {"a": "b"}});
    let object = created(kind, object.to_string().as_bytes(), BodyFormat::Json);
    Beginning {
        kind,
        object: object.unwrap_or_else(|| panic!("{} is valid", kind.kind)),
        read: read_as::<K>,
    }
}

fn beginnings() -> &'static [Beginning] {
    static ALL: OnceLock<Vec<Beginning>> = OnceLock::new();
    ALL.get_or_init(|| {
        let template = json!({"containers": [{"name": "main", "image": "i"}]});
        let labels = json!({"a": "b"});
        let deployment = json!({"spec": {"replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template}}});
        let opaque = json!({"opaque": {"driver": "d.example.org", "parameters": {"a": {}}}});
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        vec![
            beginning::<ConfigMap>("v1", "ConfigMap", json!({"data": {"a": "b"}})),
            beginning::<Secret>("v1", "Secret", json!({"data": {"a": "Yg=="}})),
            beginning::<Pod>("v1", "Pod", json!({"spec": template})),
            beginning::<Node>("v1", "Node", json!({"spec": {}})),
            beginning::<Deployment>("apps/v1", "Deployment", deployment),
            beginning::<Lease>("coordination.k8s.io/v1", "Lease", json!({"spec": {}})),
            beginning::<Role>(
                "rbac.authorization.k8s.io/v1",
                "Role",
                json!({"rules": rules}),
            ),
            beginning::<DeviceClass>(
                "resource.k8s.io/v1",
                "DeviceClass",
                json!({"spec": {"config": [opaque]}}),
            ),
        ]
    })
}

const WORDS: &[&str] = &[
    "a",
    "b",
    "name",
    "labels",
    "annotations",
    "finalizers",
    "data",
    "spec",
    "status",
    "managedFields",
    "fieldsV1",
    "f:a",
    "f:metadata",
    "k:{\"name\":\"main\"}",
    "v:1",
    ".",
    "-",
    "0",
    "containers",
    "env",
    "value",
    "taints",
    "rules",
    "parameters",
    "x/y",
    "~",
    "",
];

/// Paths of values of any shape in one kind or another.
const ROOMY: &[&str] = &[
    "/metadata/managedFields/0/fieldsV1",
    "/metadata/annotations",
    "/spec/config/0/opaque/parameters",
    "/data",
    "",
];

struct Patcher(fastrand::Rng);

impl Patcher {
    fn word(&mut self) -> &'static str {
        WORDS[self.0.usize(0..WORDS.len())]
    }

    /// Any value, sometimes as deep as allowed and deeper.
    fn value(&mut self, depth: usize) -> Value {
        match self.0.u8(0..16) {
            0 => Value::Null,
            1 => json!(self.0.bool()),
            2 => json!(self.0.i64(-2..9)),
            3 => json!(self.0.f64() * 1e300),
            4..9 if depth < 5 => {
                let count = self.0.usize(0..3);
                (0..count)
                    .map(|_| (self.word().to_owned(), self.value(depth + 1)))
                    .collect()
            }
            9 if depth < 5 => (0..self.0.usize(0..3))
                .map(|_| self.value(depth + 1))
                .collect(),
            10 => {
                let levels = self.0.usize(1..bounds::MAX_DEPTH + 4);
                (0..levels).fold(json!({}), |inner, _| json!({"f:a": inner}))
            }
            _ => json!(self.word()),
        }
    }

    /// A pointer into the object, mostly to an existing value.
    fn pointer(&mut self, object: &Value) -> String {
        let mut pointer = match self.0.u8(0..2) {
            0 => ROOMY[self.0.usize(0..ROOMY.len())].to_owned(),
            _ => String::new(),
        };
        let mut at = object.pointer(&pointer).unwrap_or(&Value::Null);
        while self.0.u8(0..5) > 0 {
            let (key, next) = match at {
                Value::Object(members) if !members.is_empty() => {
                    let Some((key, next)) = members.iter().nth(self.0.usize(0..members.len()))
                    else {
                        break;
                    };
                    (key.replace('~', "~0").replace('/', "~1"), next)
                }
                Value::Array(items) if !items.is_empty() => {
                    let index = self.0.usize(0..items.len());
                    (index.to_string(), &items[index])
                }
                _ => break,
            };
            pointer.push('/');
            pointer.push_str(&key);
            at = next;
        }
        if self.0.u8(0..3) == 0 {
            pointer.push('/');
            pointer.push_str(self.word());
        }
        pointer
    }

    fn operations(&mut self, object: &Value) -> Value {
        let mut operations = Vec::new();
        for _ in 0..self.0.usize(1..4) {
            let (path, from) = (self.pointer(object), self.pointer(object));
            match self.0.u8(0..10) {
                0 => operations.push(json!({"op": "remove", "path": path})),
                1 => operations.push(json!({"op": "move", "from": from, "path": path})),
                2 => operations.push(json!({"op": "copy", "from": from, "path": path})),
                3 => operations.push(json!({"op": "test", "path": path, "value": self.value(3)})),
                4..6 => {
                    // Existing values are moved below a new object, again and again.
                    let parent = ROOMY[self.0.usize(0..ROOMY.len())];
                    let (below, beside) = (format!("{parent}/a"), format!("{parent}/b"));
                    operations.push(json!({"op": "add", "path": below, "value": {}}));
                    let op = if self.0.bool() { "move" } else { "copy" };
                    let most = if self.0.u8(0..8) == 0 {
                        bounds::MAX_DEPTH + 10
                    } else {
                        12
                    };
                    for _ in 0..self.0.usize(1..most) {
                        operations.push(json!({"op": "add", "path": beside, "value": {}}));
                        let inside = format!("{beside}/a");
                        operations.push(json!({"op": op, "from": below, "path": inside}));
                        operations.push(json!({"op": "move", "from": beside, "path": below}));
                    }
                }
                _ => {
                    let op = if self.0.bool() { "add" } else { "replace" };
                    operations.push(json!({"op": op, "path": path, "value": self.value(0)}));
                }
            }
        }
        Value::Array(operations)
    }

    /// An object with values at a few paths; null removes.
    fn merge(&mut self, object: &Value, is_strategic: bool) -> Value {
        let mut patch = json!({});
        for _ in 0..self.0.usize(1..3) {
            let pointer = self.pointer(object);
            let mut at = &mut patch;
            for part in pointer.split('/').skip(1) {
                let part = part.replace("~1", "/").replace("~0", "~");
                if !at.is_object() {
                    *at = json!({});
                }
                if is_strategic && self.0.u8(0..12) == 0 {
                    let directive = match self.0.u8(0..4) {
                        0 => ("$patch".to_owned(), json!("delete")),
                        1 => ("$retainKeys".to_owned(), json!([part])),
                        2 => (
                            format!("$setElementOrder/{part}"),
                            json!([{"name": "main"}]),
                        ),
                        _ => (format!("$deleteFromPrimitiveList/{part}"), json!(["a"])),
                    };
                    at[directive.0] = directive.1;
                }
                at = &mut at[part];
            }
            *at = self.value(0);
        }
        if !patch.is_object() {
            patch = json!({});
        }
        patch
    }

    fn patch(&mut self, sort: PatchType, kind: &Kind, object: &Value) -> Value {
        match sort {
            PatchType::Json => self.operations(object),
            PatchType::Merge => self.merge(object, false),
            PatchType::Strategic => self.merge(object, true),
            PatchType::Apply => {
                let mut applied = self.merge(object, false);
                applied["kind"] = json!(kind.kind);
                applied["apiVersion"] = json!(kind.api_version());
                if !applied["metadata"].is_object() {
                    applied["metadata"] = json!({});
                }
                applied["metadata"]["name"] = json!("p");
                if let Some(meta) = applied["metadata"].as_object_mut() {
                    meta.remove("managedFields");
                }
                applied
            }
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    patches: u64,
    stored: u64,
    too_deep: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.patches += other.patches;
        self.stored += other.stored;
        self.too_deep += other.too_deep;
    }
}

/// Applies a patch as the server does: the encoded object if it is stored.
fn patched(patcher: &mut Patcher, kind: &'static Kind, old: &Value) -> Result<Vec<u8>, u16> {
    let sort = PATCHES[patcher.0.usize(0..PATCHES.len())];
    let bytes = patcher.patch(sort, kind, old).to_string();
    let body = Body {
        bytes: bytes.as_bytes(),
        format: BodyFormat::Json,
    };
    let part = Part::Main;
    let cluster = Cluster::default();
    let admission = &mut BuiltIn {
        kind,
        part,
        cluster: &cluster,
    };
    let managers = ["m", "n", "kubectl"];
    let request = Request {
        manager: managers[patcher.0.usize(0..managers.len())],
        ..request(kind, part, "p")
    };
    let force = patcher.0.bool();
    let made = patch(&request, sort, force, body, Some(old), IDENTITY, admission);
    let made = made.map_err(|status| status.code)?;
    let stored = encode(&made.object);
    if bounds::check(&stored).is_err() {
        return Err(422);
    }
    if stored.len() > MAX_TXN_BYTES {
        return Err(413);
    }
    Ok(encode_with_revision(&stored, 2).to_vec())
}

fn chain(seed: u64) -> Tally {
    let mut patcher = Patcher(fastrand::Rng::with_seed(seed));
    let all = beginnings();
    let Beginning { kind, object, read } = &all[patcher.0.usize(0..all.len())];
    let mut old = as_stored(object.clone());
    let mut last = Vec::new();
    let mut tally = Tally::default();
    for _ in 0..patcher.0.usize(1..=LONGEST) {
        tally.patches += 1;
        match patched(&mut patcher, kind, &old) {
            Ok(json) => {
                tally.stored += 1;
                let unreadable = |error| panic!("chain {seed}: {error} in {}", text(&json));
                read(&json).unwrap_or_else(unreadable);
                old = serde_json::from_slice(&json).unwrap_or_else(|error| {
                    panic!("chain {seed}: {error} in {}", text(&json));
                });
                last = json;
            }
            Err(code) => {
                assert!((400..600).contains(&code), "chain {seed}: {code}");
                tally.too_deep += u64::from(code == 422);
            }
        }
    }
    if !last.is_empty() {
        let item = text(&last);
        let list = format!(
            r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"2"}},"items":[{item},{item}]}}"#
        );
        let read: ObjectList<DynamicObject> = serde_json::from_str(&list)
            .unwrap_or_else(|error| panic!("chain {seed}: {error} in {list}"));
        assert_eq!(read.items.len(), 2, "chain {seed}");
        let event = format!(r#"{{"type":"MODIFIED","object":{item}}}"#);
        let event: Result<kube::core::WatchEvent<DynamicObject>, _> = serde_json::from_str(&event);
        assert!(event.is_ok(), "chain {seed}: {event:?} in {item}");
    }
    tally
}

fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn chained_patches_leave_every_object_decodable() {
    let chains = number("PROPTEST_CASES").unwrap_or(USUAL);
    let first = number("PLIMSOLL_SEED").unwrap_or_else(|| u64::from(fastrand::u32(..)) << 32);
    beginnings();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let run = |thread| {
            let mut tally = Tally::default();
            for number in (thread..chains).step_by(usize::try_from(threads).unwrap()) {
                tally += chain(first + number);
            }
            tally
        };
        let running: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        let ended = running.into_iter();
        ended
            .map(|thread| thread.join().expect("each chain passes"))
            .collect()
    });
    let mut total = Tally::default();
    tallies.into_iter().for_each(|tally| total += tally);
    let Tally {
        patches,
        stored,
        too_deep,
    } = total;
    println!(
        "{chains} chains from {first} on: {patches} patches, {stored} stored and read back, \
         {too_deep} refused with 422, 0 unreadable"
    );
    assert!(
        stored * 8 > patches,
        "most patches do nothing: {stored} of {patches}"
    );
}
