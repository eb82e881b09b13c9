//! Names of images, made whole as docker does: `busybox` means
//! `docker.io/library/busybox:latest`.
//!
//! The grammar is that of the distribution project's reference package. It is read by hand: the
//! regular expression that others use for it takes megabytes of memory.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;

const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_OLD: &str = "index.docker.io";
const OFFICIAL: &str = "library/";
const DEFAULT_TAG: &str = "latest";
const LONGEST_NAME: usize = 255;
const LONGEST_TAG: usize = 128;

/// A whole name of an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Host and perhaps port.
    pub registry: String,
    /// Path in the registry.
    pub repository: String,
    /// What the registry calls one of the repository's images.
    pub version: Version,
}

/// Which image of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The one a tag points to at the moment.
    Tag(String),
    /// The image that has this manifest digest.
    Digest(Digest),
}

/// A text that names no image.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {name:?}: {problem}")]
pub struct InvalidName {
    name: String,
    problem: &'static str,
}

impl Reference {
    /// Registry and repository, without tag or digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The same repository's image with a digest.
    pub fn with_digest(&self, digest: Digest) -> Reference {
        Reference {
            version: Version::Digest(digest),
            ..self.clone()
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.registry, self.repository)?;
        match &self.version {
            Version::Tag(tag) => write!(out, ":{tag}"),
            Version::Digest(digest) => write!(out, "@{digest}"),
        }
    }
}

impl FromStr for Reference {
    type Err = InvalidName;

    /// A digest makes a tag beside it meaningless, so the tag is dropped.
    fn from_str(text: &str) -> Result<Reference, InvalidName> {
        let invalid = |problem| InvalidName {
            name: text.to_owned(),
            problem,
        };
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = digest.parse().map_err(|_| invalid("invalid digest"))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (registry, rest) = split_registry(rest);
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) if is_tag(tag) => (path, Some(tag)),
            Some(_) => return Err(invalid("invalid tag")),
            None => (rest, None),
        };
        if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(invalid("repository name must be lowercase"));
        }
        if !path.split('/').all(is_path_component) || !is_registry(registry) {
            return Err(invalid("invalid reference format"));
        }
        let is_official = registry == DOCKER_HUB && !path.contains('/');
        let repository = format!("{}{path}", if is_official { OFFICIAL } else { "" });
        if repository.len() > LONGEST_NAME {
            return Err(invalid(
                "repository name must not be more than 255 characters",
            ));
        }
        let version = match digest {
            Some(digest) => Version::Digest(digest),
            None => Version::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        };
        Ok(Reference {
            registry: registry.to_owned(),
            repository,
            version,
        })
    }
}

/// The first part is a registry if it could be a host: `localhost`, or something with a dot, a
/// port or an upper-case letter.
fn split_registry(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((host, rest)) if host == DOCKER_HUB_OLD => (DOCKER_HUB, rest),
        Some((host, rest)) if is_like_a_host(host) => (host, rest),
        _ => (DOCKER_HUB, name),
    }
}

fn is_like_a_host(part: &str) -> bool {
    part == "localhost"
        || part.contains(['.', ':'])
        || part.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// A host name, an IPv4 address or a bracketed IPv6 address, and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_port = port.is_empty() || {
        let digits = port.strip_prefix(':').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(is_label),
    };
    is_port && is_host
}

/// Lower-case letters and digits, with `.`, `_`, `__` or hyphens between them.
fn is_path_component(text: &str) -> bool {
    let is_word = |word: &str| {
        word.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let separators = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends_well(text.chars().next())
        && ends_well(text.chars().next_back())
        && text.split(['.', '_', '-']).all(is_word)
        && separators
            .into_iter()
            .all(|run| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|b| b == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= LONGEST_TAG
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn image_names_are_normalized() {
        let digest = format!("@sha256:{HEX}");
        for (text, whole) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("docker.io/busybox", "docker.io/library/busybox:latest"),
            (
                "index.docker.io/library/busybox",
                "docker.io/library/busybox:latest",
            ),
            ("grafana/grafana:v1", "docker.io/grafana/grafana:v1"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("localhost/app", "localhost/app:latest"),
            ("127.0.0.1:5000/a/b__c:x", "127.0.0.1:5000/a/b__c:x"),
            ("[::1]:5000/app", "[::1]:5000/app:latest"),
            ("REG/app", "REG/app:latest"),
            ("a---b/c.d_e", "docker.io/a---b/c.d_e:latest"),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), whole);
        }
        for (text, whole) in [
            ("busybox", "docker.io/library/busybox"),
            ("quay.io/x/y:v1", "quay.io/x/y"),
        ] {
            let reference: Reference = format!("{text}{digest}").parse().unwrap();
            assert_eq!(reference.to_string(), format!("{whole}{digest}"));
            assert_eq!(reference.name(), whole);
        }
    }

    #[test]
    fn invalid_image_references_are_refused_with_a_reason() {
        let long = format!("a/{}", "b".repeat(255));
        let long_tag = format!("a:{}", "b".repeat(129));
        for (text, problem) in [
            ("", "invalid reference format"),
            ("Busybox", "repository name must be lowercase"),
            ("a//b", "invalid reference format"),
            ("a/../b", "invalid reference format"),
            ("a___b", "invalid reference format"),
            ("a.-b", "invalid reference format"),
            ("-a", "invalid reference format"),
            ("a-", "invalid reference format"),
            ("a:", "invalid tag"),
            ("a:.b", "invalid tag"),
            ("a:b c", "invalid tag"),
            (&long_tag, "invalid tag"),
            ("host:port/a", "invalid reference format"),
            ("host.:5/a", "invalid reference format"),
            ("[::x]/a", "invalid reference format"),
            ("a@sha256:12", "invalid digest"),
            ("a@md5:12", "invalid digest"),
            (
                &long,
                "repository name must not be more than 255 characters",
            ),
        ] {
            let refused = text.parse::<Reference>().unwrap_err();
            assert_eq!(refused.problem, problem, "{text:?}");
            assert_eq!(
                refused.to_string(),
                format!("couldn't parse image name {text:?}: {problem}")
            );
        }
    }
}
