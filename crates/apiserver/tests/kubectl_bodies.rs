//! Bodies that a real kubectl sent, decoded and compared with its JSON output.
//!
//! `data/kubectl-bodies.json` holds per command the base64 of the POSTed protobuf and what the
//! same command prints with `--dry-run=client -o json`; for reviews and tokens, which have no dry
//! run, what their flags say.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_apiserver::http::protobuf::decode;
use plimsoll_testkit::vectors::compare;
use serde_json::Value;

#[test]
fn kubectl_protobuf_bodies_decode_to_their_json() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("data/kubectl-bodies.json")).unwrap();
    let mut failures = Vec::new();
    for case in &recorded {
        let body = STANDARD.decode(case["body"].as_str().unwrap()).unwrap();
        let outcome = match decode(&body, "", "") {
            Ok(object) => compare(&object, &case["object"]),
            Err(error) => Err(vec![error.to_string()]),
        };
        failures.extend(
            outcome
                .err()
                .map(|lines| format!("{}: {lines:?}", case["command"])),
        );
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(recorded.len(), 23);
}
