//! Parsing client input always ends, with a value or an error.

#![expect(clippy::unwrap_used, reason = "a failed property is a failed test")]

use plimsoll_apiserver::http::negotiation::{Endpoint, body_format, negotiate_output};
use plimsoll_apiserver::http::protobuf::decode;
use plimsoll_apiserver::http::query::{
    ContinueToken, DeleteOptions, ListOptions, PatchOptions, Query, WriteOptions, include_object,
    parse_resource_version,
};
use plimsoll_apiserver::kinds;
use plimsoll_apiserver::machinery::patch::PatchType;
use plimsoll_apiserver::machinery::table::{IncludeObject, MetaVersion, Options, table};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The size of a decoded value, which no body may inflate.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            members
                .iter()
                .map(|(k, v)| k.len() + size(v))
                .sum::<usize>()
                + 1
        }
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::String(text) => text.len() + 1,
        _ => 1,
    }
}

fn kind() -> impl Strategy<Value = &'static kinds::Kind> {
    proptest::sample::select(kinds::all().collect::<Vec<_>>())
}

/// Bytes that look like fields more often than by chance.
fn fields() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        (1_u8..16, any::<u8>()).prop_map(|(number, byte)| vec![number << 3, byte & 0x7f]),
        (1_u8..16, vec(any::<u8>(), 0..12)).prop_map(|(number, bytes)| message(number, &bytes)),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        (1_u8..16, vec(inner, 0..6)).prop_map(|(number, parts)| message(number, &parts.concat()))
    })
}

fn message(number: u8, bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(127)];
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("2026-01-02T03:04:05Z")),
    ];
    let name = proptest::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "conditions",
        "containers",
        "initContainers",
        "containerStatuses",
        "initContainerStatuses",
        "state",
        "terminated",
        "waiting",
        "reason",
        "type",
        "labels",
        "annotations",
        "selector",
        "creationTimestamp",
        "hard",
        "used",
        "cpu",
        "ports",
        "ownerReferences",
        "series",
        "eventTime",
        "items",
    ]);
    leaf.prop_recursive(5, 48, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_rejected(bytes in vec(any::<u8>(), 0..512), kind in kind()) {
        let _ = decode(&bytes, &kind.api_version(), kind.kind);
        let body = [b"k8s\0", bytes.as_slice()].concat();
        let _ = decode(&body, &kind.api_version(), kind.kind);
    }

    #[test]
    fn decoded_size_is_bounded_by_body_size(parts in vec(fields(), 0..8), kind in kind()) {
        let raw = parts.concat();
        let raw = &raw[..raw.len().min(16_383)];
        let length = raw.len();
        let low = u8::try_from(length & 0x7f).unwrap() | 0x80;
        let high = u8::try_from(length >> 7).unwrap();
        let body = [b"k8s\0\x12".as_slice(), &[low, high], raw].concat();
        if let Ok(object) = decode(&body, &kind.api_version(), kind.kind) {
            // A name of the API per field of two bytes, and no more.
            prop_assert!(size(&object) <= 200 + 64 * length);
        }
    }

    #[test]
    fn any_query_is_parsed_or_rejected(text in "\\PC{0,120}", kind in kind(), name in ".{0,20}") {
        let query = Query::parse(&text);
        let _ = ListOptions::from_query(&query, kind, Some(&name));
        let _ = DeleteOptions::from_query(&query);
        let _ = include_object(&query);
    }

    #[test]
    fn any_value_of_a_known_option_is_parsed_or_rejected(
        values in vec(("(watch|limit|continue|resourceVersion|resourceVersionMatch|labelSelector|fieldSelector|sendInitialEvents|timeoutSeconds|dryRun|fieldManager|fieldValidation|force|propagationPolicy|gracePeriodSeconds|orphanDependents|includeObject)", "\\PC{0,16}"), 0..6),
        kind in kind(),
    ) {
        let text: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = Query::parse(&text.join("&"));
        let _ = ListOptions::from_query(&query, kind, None);
        let _ = WriteOptions::for_create(&query);
        for patch in [PatchType::Json, PatchType::Merge, PatchType::Strategic, PatchType::Apply] {
            let _ = PatchOptions::from_query(&query, patch);
        }
        let _ = DeleteOptions::from_query(&query);
        let _ = parse_resource_version(query.first("resourceVersion").unwrap_or_default());
    }

    #[test]
    fn any_continue_token_is_parsed_or_rejected(text in "\\PC{0,80}") {
        let _ = ContinueToken::decode(&text);
    }

    #[test]
    fn continue_token_round_trips(key in "[a-z0-9.-]{1,20}(/[a-z0-9-]{1,20})?", version in 1..i64::MAX) {
        prop_assume!(key.split('/').all(|part| part != "." && part != ".."));
        let token = ContinueToken::after(&key, version);
        prop_assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
    }

    #[test]
    fn any_accept_header_is_negotiated_or_rejected(
        header in "([a-z*]{0,12}[/;=,. ]{0,2}){0,12}|\\PC{0,80}",
        content_type in "\\PC{0,40}",
    ) {
        for endpoint in [Endpoint::Plain, Endpoint::Objects, Endpoint::Watch, Endpoint::Discovery] {
            let _ = negotiate_output(&header, endpoint);
        }
        let _ = body_format(&content_type);
        let _ = PatchType::from_content_type(&content_type);
    }

    #[test]
    fn any_object_has_a_cell_per_column(object in json_value(), kind in kind(), now in any::<i64>()) {
        let options = Options {
            now: Timestamp::from_nanos(now),
            include_object: IncludeObject::None,
            version: MetaVersion::V1,
            has_headers: true,
        };
        let table = table(kind.group, kind.kind, &object, &options);
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        for row in table["rows"].as_array().unwrap() {
            prop_assert_eq!(row["cells"].as_array().unwrap().len(), columns);
        }
    }
}

#[test]
fn cost_of_a_long_accept_header_is_bounded() {
    let header = "a/b;q=0.5,".repeat(100_000);
    assert!(negotiate_output(&header, Endpoint::Objects).is_err());
}
