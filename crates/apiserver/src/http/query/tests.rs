use serde_json::json;

use super::*;
use crate::kinds;
use crate::machinery::decoding::FieldValidation;
use crate::machinery::patch::PatchType;
use crate::machinery::table::IncludeObject;

fn list(text: &str) -> Result<ListOptions, OptionsError> {
    list_named(text, None)
}

fn list_named(text: &str, name: Option<&str>) -> Result<ListOptions, OptionsError> {
    let pods = kinds::by_kind("v1", "Pod").unwrap();
    ListOptions::from_query(&Query::parse(text), pods, name)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, OptionsError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn escapes_are_decoded_and_malformed_pairs_skipped() {
    let query = Query::parse("a=1%2C2+3&b=%zz&c;d=1&=x&a=second&e");
    assert_eq!(query.first("a"), Some("1,2 3"));
    assert_eq!(query.all("a").count(), 2);
    assert_eq!(query.first("b"), None);
    assert_eq!(query.first("d"), None);
    assert_eq!(query.first("e"), Some(""));
}

#[test]
fn query_of_kubectl_get_is_a_plain_list() {
    let options = list("limit=500&fieldSelector=spec.nodeName%3Dn1").unwrap();
    assert_eq!(options.limit, 500);
    assert!(!options.is_watch);
    assert_eq!(options.field_selector.to_string(), "spec.nodeName=n1");
    assert!(!options.selects_everything());
}

#[test]
fn watch_from_zero_sends_initial_events() {
    let options = list("watch=true&allowWatchBookmarks=true").unwrap();
    assert_eq!(options.sends_initial_events, Some(true));
    assert_eq!(options.version_match, Some(VersionMatch::NotOlderThan));
    let options = list("watch=1&resourceVersion=7").unwrap();
    assert_eq!(options.sends_initial_events, None);
}

#[test]
fn only_false_and_0_are_false() {
    for (value, expected) in [
        ("false", false),
        ("FALSE", false),
        ("0", false),
        ("", true),
        ("no", true),
    ] {
        let options = list(&format!("watch={value}&resourceVersion=7")).unwrap();
        assert_eq!(options.is_watch, expected, "{value}");
    }
}

#[test]
fn a_version_match_needs_a_version_and_no_token() {
    let prefix = "ListOptions.meta.k8s.io \"\" is invalid: ";
    for (query, expected) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            "resourceVersionMatch=Newest&resourceVersion=1",
            "resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "sendInitialEvents=true",
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "watch=1&sendInitialEvents=true",
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ] {
        assert_eq!(
            refusal(list(query)),
            format!("{prefix}{expected}"),
            "{query}"
        );
    }
}

#[test]
fn parse_errors_have_go_messages() {
    assert_eq!(
        refusal(list("limit=abc")),
        "strconv.ParseInt: parsing \"abc\": invalid syntax"
    );
    assert_eq!(
        refusal(list("timeoutSeconds=99999999999999999999")),
        "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"
    );
    assert_eq!(
        refusal(list("fieldSelector=spec.x%3D1")),
        "field label not supported: spec.x"
    );
    assert_eq!(
        parse_resource_version("abc").unwrap_err().to_string(),
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
    );
    assert_eq!(parse_resource_version(""), Ok(0));
    assert!(parse_resource_version("+1").is_err());
}

#[test]
fn name_in_the_path_restricts_the_selector() {
    let options = list_named("watch=1", Some("p")).unwrap();
    assert_eq!(options.selected_name(), Some("p"));
    assert!(list_named("fieldSelector=metadata.name=p", Some("p")).is_ok());
    assert_eq!(
        refusal(list_named("fieldSelector=metadata.name=q", Some("p"))),
        "fieldSelector metadata.name doesn't match requested name"
    );
}

#[test]
fn write_options_are_parsed() {
    let query = Query::parse("fieldManager=kubectl-create&fieldValidation=Strict&dryRun=All");
    let options = WriteOptions::for_create(&query).unwrap();
    assert_eq!(options.field_manager, "kubectl-create");
    assert_eq!(options.field_validation, FieldValidation::Strict);
    assert!(options.is_dry_run);
    let query = Query::parse("fieldValidation=Loose&dryRun=Some&fieldManager=a%01");
    assert_eq!(
        refusal(WriteOptions::for_update(&query)),
        "UpdateOptions.meta.k8s.io \"\" is invalid: \
         [fieldManager: Invalid value: \"a\\x01\": invalid character U+0001 (at position 1), \
         dryRun: Unsupported value: [\"Some\"]: supported values: \"All\", \
         fieldValidation: Unsupported value: \"Loose\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]"
    );
    let query = Query::parse(&format!("fieldManager={}", "a".repeat(129)));
    assert_eq!(
        refusal(WriteOptions::for_create(&query)),
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
    );
}

#[test]
fn force_needs_apply_and_apply_needs_a_manager() {
    let forced = Query::parse("force=true");
    assert_eq!(
        refusal(PatchOptions::from_query(&forced, PatchType::Merge)),
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
    assert_eq!(
        refusal(PatchOptions::from_query(&forced, PatchType::Apply)),
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let query = Query::parse("force=true&fieldManager=kubectl");
    assert!(
        PatchOptions::from_query(&query, PatchType::Apply)
            .unwrap()
            .force
    );
}

#[test]
fn delete_options_are_equal_from_query_and_body() {
    let query = Query::parse("gracePeriodSeconds=0&propagationPolicy=Foreground&uid=u&dryRun=All");
    let body = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u"}, "dryRun": ["All"]});
    let options = DeleteOptions::from_query(&query).unwrap();
    assert_eq!(DeleteOptions::from_body(&body).unwrap(), options);
    assert_eq!(options.propagation, Some(Propagation::Foreground));
    assert_eq!(
        refusal(DeleteOptions::from_body(
            &json!({"propagationPolicy": "Sideways", "orphanDependents": true})
        )),
        "DeleteOptions.meta.k8s.io \"\" is invalid: \
         [propagationPolicy: Invalid value: \"Sideways\": orphanDependents and deletionPropagation cannot be both set, \
         propagationPolicy: Unsupported value: \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"]"
    );
}

#[test]
fn tables_include_metadata_by_default() {
    let read = |text| include_object(&Query::parse(text));
    assert_eq!(read(""), Ok(IncludeObject::Metadata));
    assert_eq!(read("includeObject=Object"), Ok(IncludeObject::Object));
    assert_eq!(
        read("includeObject=Half").unwrap_err().to_string(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Half\": must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn continue_token_matches_upstream_and_round_trips() {
    let token = ContinueToken::after("default/p", 42);
    // {"v":"meta.k8s.io/v1","rv":42,"start":"default/p\u0000"}
    let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDIsInN0YXJ0IjoiZGVmYXVsdC9wXHUwMDAwIn0";
    assert_eq!(token.encode(), text);
    assert_eq!(ContinueToken::decode(text), Ok(token));
}

#[test]
fn continue_token_cannot_leave_its_kind() {
    let decode = |json: &str| {
        use base64::Engine;
        let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json);
        ContinueToken::decode(&text).map_err(|error| error.to_string())
    };
    for start in ["../secrets/s", "a//b", "a/./b", "a/", "/.."] {
        let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{start}"}}"#);
        assert_eq!(
            decode(&json),
            Err(format!("continue key is not valid: {start}"))
        );
    }
    assert_eq!(
        decode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#).unwrap_err(),
        "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
    );
    assert_eq!(
        decode(r#"{"v":"meta.k8s.io/v9","rv":1,"start":"a"}"#).unwrap_err(),
        "continue key is not valid: server does not recognize this encoded version meta.k8s.io/v9"
    );
    assert_eq!(
        ContinueToken::decode("!").unwrap_err().to_string(),
        "continue key is not valid: illegal base64 data at input byte 0"
    );
}
