//! Certificate signing requests.
//!
//! Matches v1.36 pkg/apis/certificates/validation/validation.go. The rule that approval conditions
//! are not modified is left out: the strategy keeps them as they are.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use plimsoll_core::problem::quoted;
use x509_parser::pem::Pem;

use crate::auth::signing_request::SigningRequest;

use super::Part;
use super::metadata::{self, Scope};
use super::names::NameRule;
use super::path::Path;
use super::problems::{Problems, json};
use super::signer::check_signer_name;

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SHORTEST_SECONDS: i32 = 600;

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) fn validate(csr: &CertificateSigningRequest, problems: &mut Problems) {
    check(csr, problems);
    check_certificate(csr, problems);
}

pub(super) fn validate_update(
    new: &CertificateSigningRequest,
    old: &CertificateSigningRequest,
    part: Part,
    problems: &mut Problems,
) {
    check(new, problems);
    let certificates = (certificate(new), certificate(old));
    let is_new_certificate = certificates.0 != certificates.1;
    if is_new_certificate {
        check_certificate(new, problems);
    }
    let status = Path::new("status");
    let path = status.child("conditions");
    let count = |csr, sort| conditions(csr).iter().filter(|c| c.type_ == sort).count();
    for sort in ["Approved", "Denied", "Failed"] {
        if count(new, sort) < count(old, sort) {
            let sort = quoted(sort);
            let detail = format!("updates may not remove a condition of type {sort}");
            problems.forbidden(&path, detail);
        }
    }
    for sort in ["Approved", "Denied"] {
        if part != Part::Approval && count(new, sort) > count(old, sort) {
            let sort = quoted(sort);
            problems.forbidden(
                &path,
                format!("updates may not add a condition of type {sort}"),
            );
        }
    }
    if is_new_certificate {
        let path = status.child("certificate");
        if part != Part::Status {
            problems.forbidden(&path, "updates may not set certificate content");
        } else if !certificates.1.is_empty() {
            problems.forbidden(&path, "updates may not modify existing certificate content");
        }
    }
    metadata::check_update(&new.metadata, &old.metadata, problems);
}

fn check(csr: &CertificateSigningRequest, problems: &mut Problems) {
    metadata::check(&csr.metadata, Scope::Cluster, NameRule::Any, problems);
    let spec = Path::new("spec");
    let request = SigningRequest::from_pem(&csr.spec.request.0);
    if let Err(error) = request.and_then(|request| request.check_signature()) {
        let path = spec.child("request");
        problems.invalid(&path, json(&csr.spec.request), error.to_string());
    }
    check_usages(csr.spec.usages.as_deref().unwrap_or_default(), problems);
    let path = spec.child("signerName");
    let signer = csr.spec.signer_name.as_str();
    if signer == LEGACY_SIGNER {
        let detail = "the legacy signerName is not allowed via this API version";
        problems.invalid(&path, signer, detail);
    } else {
        check_signer_name(signer, &path, problems);
    }
    let seconds = csr.spec.expiration_seconds;
    if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        problems.invalid(&spec.child("expirationSeconds"), seconds, detail);
    }
    check_conditions(conditions(csr), problems);
}

fn check_usages(usages: &[String], problems: &mut Problems) {
    let spec = Path::new("spec");
    let path = spec.child("usages");
    if usages.is_empty() {
        problems.required(&path, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        problems.one_of(&path.index(index), usage, &USAGES);
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in usages.iter().enumerate() {
        if !seen.insert(usage) {
            problems.duplicate(&path.index(index), usage);
        }
    }
}

fn check_conditions(conditions: &[CertificateSigningRequestCondition], problems: &mut Problems) {
    let status = Path::new("status");
    let list = status.child("conditions");
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = list.index(index);
        let sort = condition.type_.as_str();
        problems.require_text(&path.child("type"), sort);
        let allowed: &[&str] = match sort {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        match condition.status.as_str() {
            "" => problems.required(&path.child("status"), ""),
            given => problems.one_of(&path.child("status"), given, allowed),
        }
        let other = match sort {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            problems.invalid(&list, sort, detail);
        }
        if !seen.insert(sort) {
            problems.duplicate(&path.child("type"), sort);
        }
    }
}

fn check_certificate(csr: &CertificateSigningRequest, problems: &mut Problems) {
    if let Err(detail) = check_pem(certificate(csr)) {
        let status = Path::new("status");
        problems.invalid(&status.child("certificate"), "<certificate data>", detail);
    }
}

fn check_pem(pem: &[u8]) -> Result<(), String> {
    if pem.is_empty() {
        return Ok(());
    }
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(pem) {
        let Ok(block) = block else { break };
        if block.label != "CERTIFICATE" {
            let label = quoted(&block.label);
            return Err(format!(
                "only CERTIFICATE PEM blocks are allowed, found {label}"
            ));
        }
        if block.parse_x509().is_err() {
            return Err("x509: malformed certificate".to_owned());
        }
        blocks += 1;
    }
    if blocks == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

fn certificate(csr: &CertificateSigningRequest) -> &[u8] {
    let status = csr.status.as_ref();
    let certificate = status.and_then(|status| status.certificate.as_ref());
    certificate.map_or(&[], |certificate| &certificate.0)
}

fn conditions(csr: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    let status = csr.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default()
}

#[cfg(test)]
mod tests;
