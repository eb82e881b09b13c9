use k8s_openapi::ByteString;
use plimsoll_core::problem::Problem;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::kinds::{self, Kind};
use crate::machinery::validation::{Rules, validate_create};

const NOTHING: [&str; 0] = [];

fn kind() -> &'static Kind {
    let kind = kinds::by_kind("certificates.k8s.io/v1", "CertificateSigningRequest");
    kind.expect("signing requests are served")
}

fn csr() -> Value {
    let key = KeyPair::generate().unwrap();
    let request = CertificateParams::default().serialize_request(&key);
    let pem = request.unwrap().pem().unwrap();
    json!({
        "metadata": {"name": "Any name: goes"},
        "spec": {
            "request": ByteString(pem.into_bytes()),
            "signerName": "example.com/signer",
            "usages": ["client auth"],
        },
        "status": {},
    })
}

fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn created(csr: &Value) -> Vec<String> {
    texts(&validate_create(kind(), csr, Rules::default()))
}

#[test]
fn csr_needs_a_signature_a_signer_and_usages() {
    assert_eq!(created(&csr()), NOTHING);
    let mut wrong = csr();
    wrong["spec"] = json!({
        "request": "bm90aGluZw==",
        "signerName": "kubernetes.io/legacy-unknown",
        "usages": ["client auth", "spying", "client auth"],
        "expirationSeconds": 599,
    });
    let found = created(&wrong);
    assert_eq!(
        found[0],
        "spec.request: Invalid value: \"bm90aGluZw==\": PEM block type must be CERTIFICATE REQUEST"
    );
    assert!(found[1].starts_with(
        "spec.usages[1]: Unsupported value: \"spying\": supported values: \"any\", \"cert sign\""
    ));
    assert_eq!(
        found[2..],
        [
            "spec.usages[2]: Duplicate value: \"client auth\"",
            "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy \
             signerName is not allowed via this API version",
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 \
             seconds (10 minutes)",
        ]
    );
    let mut bare = csr();
    bare["spec"]["usages"] = json!([]);
    bare["spec"]["signerName"] = json!("");
    assert_eq!(
        created(&bare),
        [
            "spec.usages: Required value",
            "spec.signerName: Required value"
        ]
    );
}

fn updated(new: &Value, old: &Value, part: Part) -> Vec<String> {
    let mut problems = Problems::default();
    let read = |csr: &Value| serde_json::from_value(csr.clone()).unwrap();
    validate_update(&read(new), &read(old), part, &mut problems);
    texts(&problems.into_vec())
}

#[test]
fn approval_and_certificate_are_set_through_their_subresources() {
    let mut old = csr();
    old["metadata"]["resourceVersion"] = json!("1");
    let mut approved = old.clone();
    approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True"}]);
    assert_eq!(updated(&approved, &old, Part::Approval), NOTHING);
    assert_eq!(
        updated(&approved, &old, Part::Status),
        ["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]
    );
    assert_eq!(
        updated(&old, &approved, Part::Approval),
        ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]
    );
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    let mut issued = approved.clone();
    issued["status"]["certificate"] = json!(ByteString(certificate.pem().into_bytes()));
    assert_eq!(updated(&issued, &approved, Part::Status), NOTHING);
    assert_eq!(
        updated(&issued, &approved, Part::Approval),
        ["status.certificate: Forbidden: updates may not set certificate content"]
    );
    let mut other = issued.clone();
    other["status"]["certificate"] = json!("bm90aGluZw==");
    assert_eq!(
        updated(&other, &issued, Part::Status),
        [
            "status.certificate: Invalid value: \"<certificate data>\": must contain at least one \
             CERTIFICATE PEM block",
            "status.certificate: Forbidden: updates may not modify existing certificate content",
        ]
    );
}

#[test]
fn csr_cannot_be_approved_and_denied() {
    let old = csr();
    let mut new = old.clone();
    new["status"]["conditions"] = json!([
        {"type": "Approved", "status": "False"},
        {"type": "Denied", "status": "True"},
        {"type": "", "status": ""},
    ]);
    let found = updated(&new, &old, Part::Approval);
    assert_eq!(
        found[..4],
        [
            "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
            "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are \
             mutually exclusive",
            "status.conditions[2].type: Required value",
            "status.conditions[2].status: Required value",
        ]
    );
}
