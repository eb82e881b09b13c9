//! Names of certificate signers and trust bundles.
//!
//! Matches v1.36 pkg/apis/core/validation/names.go.

use std::collections::BTreeMap;

use plimsoll_core::object::syntax::check_label_key;
use plimsoll_core::problem::quoted;

use super::names::{dns_label, dns_subdomain};
use super::path::Path;
use super::problems::Problems;

const MAX_DOMAIN_BYTES: usize = 253;
const MAX_NAME_BYTES: usize = 571;
const DAY_SECONDS: i32 = 24 * 60 * 60;
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;

pub(super) fn check_signer_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    if name.is_empty() {
        return problems.required(path, "");
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return problems.invalid(path, name, detail);
    };
    if domain.len() > MAX_DOMAIN_BYTES {
        problems.too_long(path, MAX_DOMAIN_BYTES);
    }
    check_labels_of(domain, dns_label, path, problems);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        problems.invalid(path, domain, detail);
    }
    check_labels_of(rest, dns_subdomain, path, problems);
    if name.len() > MAX_NAME_BYTES {
        problems.too_long(path, MAX_NAME_BYTES);
    }
}

/// Reports the first label that is invalid.
fn check_labels_of(
    text: &str,
    check: fn(&str) -> Vec<String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let wrong = text.split('.').map(|label| (label, check(label)));
    if let Some((label, broken)) = wrong.into_iter().find(|(_, broken)| !broken.is_empty()) {
        for rule in broken {
            let detail = format!("validating label {}: {rule}", quoted(label));
            problems.invalid(path, text, detail);
        }
    }
}

/// A bundle's name holds the name of its signer with colons, if it has one.
pub(super) fn check_trust_bundle_name(name: &str) -> Vec<String> {
    match name.rsplit_once(':') {
        Some(("", _)) => {
            vec![
                "ClusterTrustBundle without signer name must not have \":\" in its name".to_owned(),
            ]
        }
        Some((_, rest)) => dns_subdomain(rest),
        None => dns_subdomain(name),
    }
}

/// The maximum lifetime of a certificate that a pod may request.
pub(super) fn max_certificate_seconds(signer: &str) -> i32 {
    let host = signer.split('/').next().unwrap_or_default();
    let is_kubernetes = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    if is_kubernetes {
        DAY_SECONDS
    } else {
        91 * DAY_SECONDS
    }
}

pub(super) fn check_user_annotations(
    annotations: &BTreeMap<String, String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut bytes = 0;
    for (key, value) in annotations {
        bytes += key.len() + value.len();
        let key = key.to_lowercase();
        if key.is_empty() {
            problems.required(path, "");
            continue;
        }
        let broken = check_label_key(&key);
        if broken.is_empty() && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            problems.invalid(path, &key, detail);
        }
        problems.invalid_each(path, &key, broken);
    }
    if bytes > MAX_ANNOTATIONS_BYTES {
        problems.too_long(path, MAX_ANNOTATIONS_BYTES);
    }
}
