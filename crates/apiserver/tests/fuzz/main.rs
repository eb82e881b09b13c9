//! Arbitrary input for every parser of client data: it may be rejected, but must not panic or
//! hang.
//!
//! `scripts/test fuzz` runs each on many inputs; `PROPTEST_CASES` sets another number.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chains;
mod shape;

use plimsoll_apiserver::http::negotiation::{Endpoint, body_format, negotiate_output};
use plimsoll_apiserver::http::query::{
    ContinueToken, DeleteOptions, ListOptions, Query, WriteOptions,
};
use plimsoll_apiserver::kinds::{self, Kind};
use plimsoll_apiserver::machinery::admission::{BuiltIn, Cluster};
use plimsoll_apiserver::machinery::apply::{FieldManager, FieldSet, check_managed_fields};
use plimsoll_apiserver::machinery::table::{
    IncludeObject, MetaVersion, Options, partial_object_metadata, table,
};
use plimsoll_apiserver::machinery::write::{
    Body, BodyFormat, FieldValidation, Identity, Part, PatchType, Request, Rules, create,
    from_stored, patch, to_stored, update,
};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shape::Shaper;

const PATCHES: [PatchType; 4] = [
    PatchType::Json,
    PatchType::Merge,
    PatchType::Strategic,
    PatchType::Apply,
];

fn stored_kinds() -> Vec<&'static Kind> {
    kinds::all().filter(|kind| kind.storage.is_some()).collect()
}

fn request(kind: &'static Kind, part: Part, name: &'static str) -> Request<'static> {
    Request {
        kind,
        part,
        namespace: if kind.is_namespaced() { "n" } else { "" },
        name,
        manager: "m",
        now: "2026-01-01T00:00:00Z",
        validation: FieldValidation::Warn,
        rules: Rules::default(),
    }
}

const IDENTITY: Identity<'_> = Identity {
    uid: "u",
    name_suffix: "bcdfg",
};

fn created(kind: &'static Kind, bytes: &[u8], format: BodyFormat) -> Option<Value> {
    let cluster = Cluster::default();
    let part = Part::Main;
    let admission = &mut BuiltIn {
        kind,
        part,
        cluster: &cluster,
    };
    let request = request(kind, part, "");
    match create(&request, Body { bytes, format }, IDENTITY, admission) {
        Ok(accepted) => Some(accepted.object),
        Err(status) => {
            assert!((400..600).contains(&status.code), "{}", status.to_json());
            None
        }
    }
}

/// All operations on an existing object.
fn change(kind: &'static Kind, part: Part, bytes: &[u8], old: &Value) {
    let cluster = Cluster::default();
    let admission = &mut BuiltIn {
        kind,
        part,
        cluster: &cluster,
    };
    let request = request(kind, part, "p");
    let format = BodyFormat::Json;
    let _ = update(&request, Body { bytes, format }, old, admission);
    for sort in PATCHES {
        let body = Body { bytes, format };
        let _ = patch(&request, sort, true, body, Some(old), IDENTITY, admission);
    }
}

/// The object with the metadata of stored objects.
fn as_stored(mut object: Value) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({"name": "p"});
    }
    object["metadata"]["resourceVersion"] = json!("1");
    object
}

fn print(kind: &Kind, object: &Value) {
    for include_object in [
        IncludeObject::None,
        IncludeObject::Metadata,
        IncludeObject::Object,
    ] {
        let options = Options {
            now: Timestamp::from_secs(1_800_000_000),
            include_object,
            version: MetaVersion::V1,
            has_headers: true,
        };
        let printed = table(kind.group, kind.kind, object, &options);
        assert_eq!(printed["kind"], "Table");
        let list = json!({"items": [object, object]});
        table(kind.group, kind.kind, &list, &options);
    }
    partial_object_metadata(object, MetaVersion::V1);
}

const QUERY: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "watch",
    "timeoutSeconds",
    "sendInitialEvents",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "gracePeriodSeconds",
    "propagationPolicy",
    "force",
    "=",
    "&",
    "%",
    "%3D",
    "%zz",
    "+",
    ";",
    "All",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "Exact",
    "NotOlderThan",
    "a=b",
    "a in (b,c)",
    "!a",
    "spec.nodeName=x",
    "metadata.name",
    "\u{e9}",
    "\0",
];

fn near(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let near = proptest::collection::vec(proptest::sample::select(words), 0..24);
    prop_oneof![
        1 => any::<String>(),
        3 => near.prop_map(|words| words.concat()),
    ]
}

proptest! {
    #[test]
    fn arbitrary_objects_get_a_response(
        kind in proptest::sample::select(stored_kinds()),
        seed in any::<u64>(),
    ) {
        let mut shaper = Shaper::new(kind, seed);
        let object = shaper.object(kind);
        let text = object.to_string();
        print(kind, &object);
        let first = created(kind, text.as_bytes(), BodyFormat::Json);
        created(kind, text.as_bytes(), BodyFormat::Yaml);
        let mut old = as_stored(first.unwrap_or_else(|| object.clone()));
        let new = shaper.changed(&old, kind).to_string();
        for part in [Part::Main, Part::Status, Part::Resize, Part::EphemeralContainers,
            Part::Finalize, Part::Scale, Part::Approval] {
            change(kind, part, new.as_bytes(), &old);
        }
        print(kind, &old);
        to_stored(kind, &mut old);
        from_stored(kind, &mut old);
        print(kind, &old);
    }

    #[test]
    fn arbitrary_bodies_get_a_response(
        kind in proptest::sample::select(stored_kinds()),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        seed in any::<u64>(),
    ) {
        let mut framed = b"k8s\0".to_vec();
        framed.extend_from_slice(&bytes);
        for format in [BodyFormat::Json, BodyFormat::Yaml, BodyFormat::Protobuf] {
            created(kind, &bytes, format);
            created(kind, &framed, format);
        }
        // A valid body with one changed byte.
        let mut text = Shaper::new(kind, seed).object(kind).to_string().into_bytes();
        let at = usize::try_from(seed % text.len() as u64).unwrap();
        text[at] = bytes.first().copied().unwrap_or_default();
        created(kind, &text, BodyFormat::Json);
        created(kind, &text, BodyFormat::Yaml);
        change(kind, Part::Main, &text, &json!({"metadata": {"name": "p", "resourceVersion": "1"}}));
    }

    #[test]
    fn arbitrary_managed_fields_get_a_response(
        kind in proptest::sample::select(stored_kinds()),
        seed in any::<u64>(),
    ) {
        let mut shaper = Shaper::new(kind, seed);
        let (live, applied) = (shaper.object(kind), shaper.object(kind));
        let mut entry = |subresource: &str| {
            let mut fields = json!({});
            for path in ["f:metadata", "f:spec", "f:a", "."] {
                fields[path] = shaper.anything();
            }
            json!({"manager": "m", "operation": "Apply", "apiVersion": kind.api_version(),
                "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource,
                "time": shaper.anything()})
        };
        let entries = vec![entry(""), entry("status")];
        let _ = check_managed_fields(&entries);
        for entry in &entries {
            let _ = FieldSet::from_fields_v1(&entry["fieldsV1"]);
        }
        let mut live = as_stored(live);
        live["metadata"]["managedFields"] = json!(entries);
        let version = kind.api_version();
        if let Some(manager) = FieldManager::new(&version, kind.kind, "") {
            let now = "2026-01-01T00:00:00Z";
            manager.update(Some(&live), applied.clone(), "other", now);
            let _ = manager.apply(Some(&live), &applied, "m", true, now);
            let _ = manager.apply(None, &applied, "m", false, now);
        }
    }

    #[test]
    fn arbitrary_queries_get_a_response(
        text in near(QUERY),
        kind in proptest::sample::select(stored_kinds()),
    ) {
        let query = Query::parse(&text);
        let _ = ListOptions::from_query(&query, kind, None);
        let _ = ListOptions::from_query(&query, kind, Some("p"));
        let _ = WriteOptions::for_create(&query);
        let _ = WriteOptions::for_update(&query);
        let _ = DeleteOptions::from_query(&query);
        let _ = negotiate_output(&text, Endpoint::Objects);
        let _ = negotiate_output(&text, Endpoint::Watch);
        let _ = body_format(&text);
    }

    #[test]
    fn arbitrary_continue_tokens_get_a_response(
        text in any::<String>(), version in any::<i64>(), start in any::<String>(),
    ) {
        let _ = ContinueToken::decode(&text);
        let token = ContinueToken { resource_version: version, start_key: start };
        if let Ok(read) = ContinueToken::decode(&token.encode()) {
            // A token cannot leave the listed kind.
            prop_assert!(!read.start_key.split('/').any(|part| part == ".."));
if !read.start_key.is_empty() {
                prop_assert_eq!(ContinueToken::decode(&read.encode()).unwrap(), read);
            }
        }
    }
}
