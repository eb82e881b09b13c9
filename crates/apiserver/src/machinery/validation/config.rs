//! ConfigMaps and Secrets.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::metadata::{self, Scope};
use super::names::{NameRule, config_map_key};
use super::path::Path;
use super::problems::Problems;
use super::text;

/// The maximum size of all values together.
const MAX_BYTES: usize = 1 << 20;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn validate_config_map(map: &ConfigMap, problems: &mut Problems) {
    metadata::check(
        &map.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let mut bytes = 0;
    let path = Path::new("data");
    for (key, value) in map.data.iter().flatten() {
        problems.invalid_each(&path.key(key), key, config_map_key(key));
        if map
            .binary_data
            .as_ref()
            .is_some_and(|data| data.contains_key(key))
        {
            problems.invalid(
                &path.key(key),
                key,
                "duplicate of key present in binaryData",
            );
        }
        bytes += value.len();
    }
    let path = Path::new("binaryData");
    for (key, value) in map.binary_data.iter().flatten() {
        problems.invalid_each(&path.key(key), key, config_map_key(key));
        bytes += value.0.len();
    }
    if bytes > MAX_BYTES {
        problems.too_long(&Path::ROOT, MAX_BYTES);
    }
}

pub(super) fn validate_config_map_update(
    new: &ConfigMap,
    old: &ConfigMap,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if old.immutable == Some(true) {
        let is_changed = new.immutable != Some(true);
        problems.forbid_if(is_changed, &Path::new("immutable"), IMMUTABLE);
        problems.forbid_if(new.data != old.data, &Path::new("data"), IMMUTABLE);
        problems.forbid_if(
            new.binary_data != old.binary_data,
            &Path::new("binaryData"),
            IMMUTABLE,
        );
    }
    validate_config_map(new, problems);
}

pub(super) fn validate_secret(secret: &Secret, problems: &mut Problems) {
    metadata::check(
        &secret.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let path = Path::new("data");
    let mut bytes = 0;
    for (key, value) in secret.data.iter().flatten() {
        problems.invalid_each(&path.key(key), key, config_map_key(key));
        bytes += value.0.len();
    }
    if bytes > MAX_BYTES {
        problems.too_long(&path, MAX_BYTES);
    }
    let value = |key: &str| {
        secret
            .data
            .as_ref()
            .and_then(|data| data.get(key))
            .map(|v| &v.0)
    };
    let require = |key: &str, problems: &mut Problems| {
        if value(key).is_none() {
            problems.required(&path.key(key), "");
        }
    };
    match text(&secret.type_) {
        "kubernetes.io/service-account-token" => check_account_annotation(secret, problems),
        "kubernetes.io/dockercfg" => {
            check_json(value(".dockercfg"), &path.key(".dockercfg"), problems)
        }
        "kubernetes.io/dockerconfigjson" => {
            let key = ".dockerconfigjson";
            check_json(value(key), &path.key(key), problems);
        }
        "kubernetes.io/basic-auth"
            if value("username").is_none() && value("password").is_none() =>
        {
            require("username", problems);
            require("password", problems);
        }
        "kubernetes.io/ssh-auth" if value("ssh-privatekey").is_none_or(|key| key.is_empty()) => {
            problems.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            require("tls.crt", problems);
            require("tls.key", problems);
        }
        _ => {}
    }
}

fn check_account_annotation(secret: &Secret, problems: &mut Problems) {
    const KEY: &str = "kubernetes.io/service-account.name";
    let annotation = secret
        .metadata
        .annotations
        .as_ref()
        .and_then(|a| a.get(KEY));
    if annotation.is_none_or(String::is_empty) {
        let meta = Path::new("metadata");
        let annotations = meta.child("annotations");
        problems.required(&annotations.key(KEY), "");
    }
}

fn check_json(value: Option<&Vec<u8>>, path: &Path<'_>, problems: &mut Problems) {
    let Some(bytes) = value else {
        return problems.required(path, "");
    };
    if let Err(reason) = crate::machinery::decoding::check_json_object(bytes) {
        problems.invalid(path, "<secret contents redacted>", reason);
    }
}

pub(super) fn validate_secret_update(new: &Secret, old: &Secret, problems: &mut Problems) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    problems.immutable(&Path::new("type"), &text(&new.type_), &text(&old.type_));
    if old.immutable == Some(true) {
        let is_changed = new.immutable != Some(true);
        problems.forbid_if(is_changed, &Path::new("immutable"), IMMUTABLE);
        problems.forbid_if(new.data != old.data, &Path::new("data"), IMMUTABLE);
    }
    validate_secret(new, problems);
}
