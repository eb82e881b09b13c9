//! Objects of the right shape with unusual values.
//!
//! Random JSON rarely passes the decoder. These objects are generated from the served OpenAPI
//! schemas, so that they reach validation: the fields exist, and mostly have their type.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use plimsoll_apiserver::http::openapi;
use plimsoll_apiserver::kinds::Kind;
use serde_json::{Map, Value, json};

const TEXTS: &[&str] = &[
    "",
    "a",
    "p",
    "web",
    "main",
    "A b",
    "-",
    "a.b/c",
    "x/y/z",
    "é",
    "\u{0}",
    "\n",
    "0",
    "1",
    "-1",
    "100m",
    "1Gi",
    "1.5",
    "1e400",
    "-5Mi",
    "9223372036854775808",
    "10%",
    "100%",
    "101%",
    "-1%",
    "10s",
    "5m",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "fe80::/129",
    "Always",
    "Never",
    "OnFailure",
    "IfNotPresent",
    "NoSchedule",
    "NoExecute",
    "PreferNoSchedule",
    "Equal",
    "Exists",
    "In",
    "NotIn",
    "DoesNotExist",
    "Gt",
    "Lt",
    "TCP",
    "UDP",
    "SCTP",
    "RollingUpdate",
    "Recreate",
    "OnDelete",
    "Parallel",
    "Indexed",
    "NonIndexed",
    "FailJob",
    "Count",
    "Ignore",
    "True",
    "False",
    "Unknown",
    "Running",
    "Succeeded",
    "Failed",
    "metadata.name",
    "metadata.labels['a']",
    "limits.cpu",
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "example.org/gpu",
    "hugepages-2Mi",
    "kubernetes.io/hostname",
    "ClusterIP",
    "NodePort",
    "LoadBalancer",
    "None",
    "ExternalName",
    "Container",
    "Pod",
    "Opaque",
    "kubernetes.io/tls",
    "* * * * *",
    "@every 5s",
    "TZ=UTC 0 0 * * *",
    "Europe/Berlin",
    "RuntimeDefault",
    "Localhost",
    "f:metadata",
    "FieldsV1",
    "Apply",
    "Update",
    "system-node-critical",
    "PreemptLowerPriority",
    "ScheduleAnyway",
    "DoNotSchedule",
    "v1",
    "apps/v1",
    "rbac.authorization.k8s.io",
    "Role",
    "ClusterRole",
    "User",
    "Group",
    "Deployment",
    "aGVsbG8=",
    "not base64!",
    "{}",
    "[]",
    "null",
];

const KEYS: &[&str] = &[
    "a",
    "app",
    "cpu",
    "memory",
    "pods",
    "requests.cpu",
    "limits.memory",
    "count/pods",
    "nodePort",
    "kubernetes.io/config.mirror",
    "example.org/x",
    "",
    "A b",
    ".",
    "f:metadata",
    "k:{\"name\":\"a\"}",
    "v:\"a\"",
    "i:0",
    "hugepages-2Mi",
    "ephemeral-storage",
    "node.kubernetes.io/x",
];

const INTEGERS: &[i64] = &[
    -1,
    0,
    1,
    2,
    3,
    30,
    80,
    443,
    65_535,
    65_536,
    2_000_001_000,
    2_147_483_647,
    -2_147_483_648,
    2_147_483_648,
    i64::MAX,
    i64::MIN,
];

const MAX_DEPTH: usize = 14;

/// Generates values from schemas.
pub(crate) struct Shaper {
    rng: fastrand::Rng,
    schemas: &'static Map<String, Value>,
}

impl Shaper {
    /// Objects of a kind; the same seed generates the same objects.
    pub(crate) fn new(kind: &Kind, seed: u64) -> Shaper {
        Shaper {
            rng: fastrand::Rng::with_seed(seed),
            schemas: schemas(kind.group, kind.version),
        }
    }

    /// An object of the kind, with its type and mostly a name.
    pub(crate) fn object(&mut self, kind: &Kind) -> Value {
        let schema = self.schemas.values().find(|schema| {
            let names = schema["x-kubernetes-group-version-kind"].as_array();
            names.into_iter().flatten().any(|name| {
                name["group"] == kind.group
                    && name["version"] == kind.version
                    && name["kind"] == kind.kind
            })
        });
        let mut object = match schema {
            Some(schema) => self.value(schema, 0),
            None => json!({}),
        };
        if !object.is_object() {
            object = json!({});
        }
        object["kind"] = json!(kind.kind);
        object["apiVersion"] = json!(kind.api_version());
        if self.rng.u8(0..10) > 0 {
            if !object["metadata"].is_object() {
                object["metadata"] = json!({});
            }
            object["metadata"]["name"] = json!("p");
            if let Some(meta) = object["metadata"].as_object_mut() {
                meta.remove("namespace");
                meta.remove("resourceVersion");
                meta.remove("uid");
            }
        }
        object
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.rng.u8(0..100) == 0 {
            return self.anything();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return match self.schemas.get(name) {
                Some(schema) if depth < MAX_DEPTH => self.value(schema, depth + 1),
                _ => Value::Null,
            };
        }
        for combined in ["allOf", "oneOf", "anyOf"] {
            if let Some(choices) = schema[combined].as_array()
                && let Some(choice) = choices.get(self.rng.usize(0..choices.len().max(1)))
            {
                return self.value(choice, depth);
            }
        }
        match schema["type"].as_str() {
            Some("object") => self.members(schema, depth),
            Some("array") => {
                let count = self.rng.usize(0..3);
                (0..count)
                    .map(|_| self.value(&schema["items"], depth + 1))
                    .collect()
            }
            Some("string") => json!(self.text(schema)),
            Some("integer") => json!(INTEGERS[self.rng.usize(0..INTEGERS.len())]),
            Some("number") => json!(self.rng.f64() * 100.0),
            Some("boolean") => json!(self.rng.bool()),
            _ => self.anything(),
        }
    }

    fn members(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        let required = schema["required"].as_array();
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // Deep objects get few fields, so that generation ends.
        let chance = u8::try_from(60 / (depth + 1)).unwrap_or(1).max(6);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted =
                depth == 0 || required.contains(&name.as_str()) && self.rng.u8(0..20) > 0;
            if (is_wanted || self.rng.u8(0..100) < chance) && depth < MAX_DEPTH {
                members.insert(name.clone(), self.value(field, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.rng.usize(0..3) {
                let key = KEYS[self.rng.usize(0..KEYS.len())].to_owned();
                members.insert(key, self.value(&schema["additionalProperties"], depth + 1));
            }
        }
        Value::Object(members)
    }

    fn text(&mut self, schema: &Value) -> String {
        let allowed = schema["enum"].as_array();
        if let Some(allowed) = allowed.filter(|_| self.rng.u8(0..5) > 0)
            && let Some(text) = allowed.get(self.rng.usize(0..allowed.len().max(1)))
        {
            return text.as_str().unwrap_or_default().to_owned();
        }
        TEXTS[self.rng.usize(0..TEXTS.len())].to_owned()
    }

    /// A value of any type.
    pub(crate) fn anything(&mut self) -> Value {
        match self.rng.u8(0..7) {
            0 => Value::Null,
            1 => json!(self.rng.bool()),
            2 => json!(INTEGERS[self.rng.usize(0..INTEGERS.len())]),
            3 => json!(self.rng.f64() * 1e300),
            4 => json!([]),
            5 => json!({KEYS[self.rng.usize(0..KEYS.len())]: 1}),
            _ => json!(TEXTS[self.rng.usize(0..TEXTS.len())]),
        }
    }

    /// An object with a few changes, some of which are valid.
    pub(crate) fn changed(&mut self, object: &Value, kind: &Kind) -> Value {
        let other = self.object(kind);
        let mut changed = object.clone();
        self.mix(&mut changed, &other);
        if let Some(meta) = changed["metadata"].as_object_mut() {
            meta.insert("name".to_owned(), json!("p"));
        }
        changed
    }

    fn mix(&mut self, into: &mut Value, from: &Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (name, value) in from {
                    match (into.get_mut(name), self.rng.u8(0..4)) {
                        (Some(inner), 0..3) => self.mix(inner, value),
                        (None, 0) => drop(into.insert(name.clone(), value.clone())),
                        (Some(_), _) if self.rng.bool() => drop(into.remove(name)),
                        _ => {}
                    }
                }
            }
            (Value::Array(into), Value::Array(from)) => {
                for (one, other) in into.iter_mut().zip(from) {
                    self.mix(one, other);
                }
                if self.rng.bool() {
                    into.extend(from.iter().cloned());
                }
            }
            (into, from) => {
                if self.rng.u8(0..3) == 0 {
                    *into = from.clone();
                }
            }
        }
    }
}

/// The schemas of a group and version.
fn schemas(group: &str, version: &str) -> &'static Map<String, Value> {
    type All = BTreeMap<(String, String), &'static Map<String, Value>>;
    static ALL: OnceLock<All> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut all = BTreeMap::new();
        for group in plimsoll_apiserver::kinds::GROUPS {
            let path = group.path();
            let Some(document) = openapi::document(path.trim_start_matches('/')) else {
                continue;
            };
            let mut parsed: Value = serde_json::from_slice(&document.body).unwrap();
            if let Value::Object(schemas) = parsed["components"]["schemas"].take() {
                let key = (group.name.to_owned(), group.version.to_owned());
                all.insert(key, &*Box::leak(Box::new(schemas)));
            }
        }
        all
    });
    all[&(group.to_owned(), version.to_owned())]
}
