//! Credentials for registries, from the secrets of pods.
//!
//! Pure: from the contents of secrets and the name of an image to what is tried, most fitting
//! first. Matches v1.36 pkg/credentialprovider/keyring.go.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use plimsoll_runtime::wire::AuthConfig;
use serde::Deserialize;

/// Docker Hub as docker's own configuration calls it.
const DEFAULT_REGISTRY: &str = "index.docker.io/v1/";

#[derive(Debug, Default, Deserialize)]
struct Entry {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    auth: String,
}

#[derive(Debug, Deserialize)]
struct ConfigJson {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

/// What the secrets offer for an image. Secrets of other types, and what cannot be read in them,
/// are passed over as upstream does: other secrets may have the right answer.
pub(super) fn credentials_for(image: &str, secrets: &[impl AsRef<Secret>]) -> Vec<AuthConfig> {
    let mut keyring: BTreeMap<String, Vec<AuthConfig>> = BTreeMap::new();
    for secret in secrets {
        for (location, entry) in entries(secret.as_ref()) {
            if let Some(auth) = entry.into_auth() {
                keyring.entry(key_of(&location)).or_default().push(auth);
            }
        }
    }
    // Backwards, so that longer paths come before the hosts they begin with.
    let fitting = keyring.iter().rev().filter(|(key, _)| matches(key, image));
    let mut found: Vec<AuthConfig> = fitting.flat_map(|(_, auths)| auths.clone()).collect();
    if found.is_empty() && is_on_default_registry(image) {
        found = keyring.get(DEFAULT_REGISTRY).cloned().unwrap_or_default();
    }
    found
}

fn entries(secret: &Secret) -> BTreeMap<String, Entry> {
    let data = |key: &str| {
        secret
            .data
            .as_ref()?
            .get(key)
            .map(|bytes| bytes.0.as_slice())
    };
    match secret.type_.as_deref() {
        Some("kubernetes.io/dockerconfigjson") => {
            let config = data(".dockerconfigjson").map(serde_json::from_slice::<ConfigJson>);
            config
                .and_then(Result::ok)
                .map(|config| config.auths)
                .unwrap_or_default()
        }
        Some("kubernetes.io/dockercfg") => {
            let config = data(".dockercfg").map(serde_json::from_slice);
            config.and_then(Result::ok).unwrap_or_default()
        }
        _ => BTreeMap::new(),
    }
}

impl Entry {
    /// User and password, which `auth` may hold together.
    fn into_auth(self) -> Option<AuthConfig> {
        let (username, password) = if self.auth.is_empty() {
            (self.username, self.password)
        } else {
            let padded = STANDARD.decode(self.auth.trim());
            let unpadded =
                || base64::engine::general_purpose::STANDARD_NO_PAD.decode(self.auth.trim());
            let text = String::from_utf8(padded.or_else(|_| unpadded()).ok()?).ok()?;
            let (username, password) = text.split_once(':')?;
            (
                username.to_owned(),
                password.trim_end_matches('\0').to_owned(),
            )
        };
        Some(AuthConfig {
            username,
            password,
            ..AuthConfig::default()
        })
    }
}

/// Host and path of an entry's name; versions of the protocol are no path.
fn key_of(location: &str) -> String {
    let rest = location.strip_prefix("https://").unwrap_or(location);
    let rest = rest.strip_prefix("http://").unwrap_or(rest);
    if rest == DEFAULT_REGISTRY || rest == "index.docker.io" {
        return DEFAULT_REGISTRY.to_owned();
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path
        .strip_prefix("v1/")
        .or(path.strip_prefix("v2/"))
        .unwrap_or(path);
    let path = path.trim_end_matches('/');
    match path {
        "" | "v1" | "v2" => host.to_owned(),
        path => format!("{host}/{path}"),
    }
}

/// Whether the image is below the key; parts of the key's host may have wild cards.
fn matches(key: &str, image: &str) -> bool {
    let (key_host, key_path) = key.split_once('/').unwrap_or((key, ""));
    let (image_host, image_path) = image.split_once('/').unwrap_or((image, ""));
    let (key_host, key_port) = key_host.split_once(':').unwrap_or((key_host, ""));
    let (image_host, image_port) = image_host.split_once(':').unwrap_or((image_host, ""));
    if key_port != image_port || !image_path.starts_with(key_path) {
        return false;
    }
    let key_parts: Vec<&str> = key_host.split('.').collect();
    let image_parts: Vec<&str> = image_host.split('.').collect();
    key_parts.len() == image_parts.len()
        && key_parts
            .iter()
            .zip(&image_parts)
            .all(|(glob, part)| fits(glob, part))
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn fits(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| fits(after, &rest[at..]))
        }),
    }
}

fn is_on_default_registry(image: &str) -> bool {
    match image.split_once('/') {
        None => true,
        Some(("", _)) => false,
        Some(("docker.io" | "index.docker.io", _)) => true,
        Some((first, _)) => !first.contains(['.', ':']),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    struct Held(Secret);

    impl AsRef<Secret> for Held {
        fn as_ref(&self) -> &Secret {
            &self.0
        }
    }

    fn secret(auths: &str) -> Held {
        let json = format!("{{\"auths\":{auths}}}");
        let data = [(
            ".dockerconfigjson".to_owned(),
            ByteString(json.into_bytes()),
        )];
        Held(Secret {
            type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
            data: Some(data.into()),
            ..Secret::default()
        })
    }

    fn users(image: &str, auths: &str) -> Vec<String> {
        let found = credentials_for(image, &[secret(auths)]);
        found.into_iter().map(|auth| auth.username).collect()
    }

    #[test]
    fn longer_paths_are_tried_first() {
        let auths = r#"{"r.io": {"username": "host"}, "https://r.io/team": {"username": "team"},
                        "other.io": {"username": "other"}}"#;
        assert_eq!(users("r.io/team/app:1", auths), ["team", "host"]);
        assert_eq!(users("r.io/app", auths), ["host"]);
        assert_eq!(users("s.io/app", auths), Vec::<String>::new());
        assert_eq!(users("r.io:5000/app", auths), Vec::<String>::new());
    }

    #[test]
    fn hosts_may_have_wild_cards_part_by_part() {
        let auths = r#"{"*.r.io": {"username": "any"}}"#;
        assert_eq!(users("eu.r.io/app", auths), ["any"]);
        assert_eq!(users("a.b.r.io/app", auths), Vec::<String>::new());
        assert!(fits("e*u", "eau") && !fits("e*u", "eaux") && fits("*", ""));
    }

    #[test]
    fn credentials_may_be_one_auth_string() {
        let auths = r#"{"r.io/v2/": {"auth": "dXNlcjpwYXNz"}}"#;
        let found = credentials_for("r.io/x", &[secret(auths)]);
        assert_eq!(found[0].username, "user");
        assert_eq!(found[0].password, "pass");
    }

    #[test]
    fn images_without_a_registry_are_docker_hubs() {
        let auths = r#"{"https://index.docker.io/v1/": {"username": "hub"}}"#;
        for image in ["busybox", "library/busybox:1", "docker.io/library/busybox"] {
            assert_eq!(users(image, auths), ["hub"], "{image}");
        }
        assert_eq!(users("localhost:5000/busybox", auths), Vec::<String>::new());
    }

    #[test]
    fn unreadable_pull_secrets_are_skipped() {
        assert_eq!(users("r.io/x", "[]"), Vec::<String>::new());
        assert_eq!(
            users("r.io/x", r#"{"r.io": {"auth": "???"}}"#),
            Vec::<String>::new()
        );
    }
}
