//! Names of container images.
//!
//! Matches v1.36 pkg/util/parsers/parsers.go and vendor/github.com/distribution/reference. The
//! grammar is read by hand: the regular expressions that upstream uses for it take megabytes of
//! memory.

use std::borrow::Cow;

/// The registry of names without one.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_OLD: &str = "index.docker.io";
/// Where the registry of names without one keeps images without a path.
const OFFICIAL: &str = "library/";
const LATEST: &str = "latest";
const MAX_PATH_BYTES: usize = 255;
const MAX_TAG_BYTES: usize = 128;

/// The parts of an image's name, with docker's defaults for registry and path: `busybox` is
/// `docker.io/library/busybox`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName<'a> {
    /// Host and perhaps port.
    pub registry: &'a str,
    /// The path in the registry.
    pub path: Cow<'a, str>,
    /// The tag.
    pub tag: Option<&'a str>,
    /// The digest.
    pub digest: Option<&'a str>,
}

/// A text that names no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {name:?}: {reason}")]
pub struct InvalidImageName {
    /// The text.
    pub name: String,
    /// Why it names no image.
    pub reason: Reason,
}

/// Why a text names no image, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It might be the id of a container.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Hexadecimal(String),
    /// The path has upper-case letters.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Uppercase(String),
    /// Some part is malformed.
    #[error("invalid reference format")]
    Format,
    /// The path is too long.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The digest does not have as many digits as its algorithm demands.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest has other characters than lower-case hexadecimal digits.
    #[error("invalid checksum digest format")]
    DigestFormat,
    /// The digest is of another algorithm than those of SHA-2.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
}

impl<'a> ImageName<'a> {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// If it is not the name of an image.
    pub fn parse(text: &'a str) -> Result<ImageName<'a>, InvalidImageName> {
        parts(text).map_err(|reason| InvalidImageName {
            name: text.to_owned(),
            reason,
        })
    }

    /// The tag, `latest` if there is neither tag nor digest.
    pub fn effective_tag(&self) -> Option<&'a str> {
        match (self.tag, self.digest) {
            (None, None) => Some(LATEST),
            (tag, _) => tag,
        }
    }
}

/// When an image is pulled unless the container has a pull policy: `Always` if it may change under
/// its name, which is if its tag is `latest`. An invalid name has no tag.
pub fn default_pull_policy(image: &str) -> &'static str {
    let name = ImageName::parse(image);
    match name.is_ok_and(|name| name.effective_tag() == Some(LATEST)) {
        true => "Always",
        false => "IfNotPresent",
    }
}

fn parts(text: &str) -> Result<ImageName<'_>, Reason> {
    if text.len() == 64 && text.bytes().all(is_lower_hex) {
        return Err(Reason::Hexadecimal(text.to_owned()));
    }
    let (registry, rest) = split_registry(text);
    let is_official = registry == DOCKER_HUB && !rest.contains('/');
    let whole = |path: &str| format!("{}{path}", if is_official { OFFICIAL } else { "" });
    let unversioned = rest.split(':').next().unwrap_or_default();
    if unversioned.to_lowercase() != unversioned {
        return Err(Reason::Uppercase(whole(unversioned)));
    }
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let is_well_formed = is_registry(registry)
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_like_a_digest);
    if !is_well_formed {
        return Err(Reason::Format);
    }
    let path = match is_official {
        true => Cow::Owned(whole(path)),
        false => Cow::Borrowed(path),
    };
    if path.len() > MAX_PATH_BYTES {
        return Err(Reason::TooLong);
    }
    digest.map_or(Ok(()), check_digest)?;
    Ok(ImageName {
        registry,
        path,
        tag,
        digest,
    })
}

/// The first part is a registry if it could be a host: `localhost`, or something with a dot, a
/// port or an upper-case letter.
fn split_registry(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((DOCKER_HUB_OLD, rest)) => (DOCKER_HUB, rest),
        Some((host, rest)) if is_like_a_host(host) => (host, rest),
        _ => (DOCKER_HUB, name),
    }
}

fn is_like_a_host(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':']) || part.to_lowercase() != part
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
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => {
            let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            !address.is_empty() && address.bytes().all(is_digit)
        }
        None => host.split('.').all(is_host_label),
    };
    is_port && is_host
}

fn is_host_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Lower-case letters and digits, with `.`, `_`, `__` or hyphens between them.
fn is_path_component(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let mut separators = bytes.split(is_word);
    bytes.first().is_some_and(is_word)
        && bytes.last().is_some_and(is_word)
        && separators.all(|separator| {
            matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|b| *b == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG_BYTES
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

/// Words that begin with a letter, joined by one of `-_+.`; a colon; 32 hexadecimal digits or more.
fn is_like_a_digest(text: &str) -> bool {
    let is_word = |word: &str| {
        word.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.split_once(':').is_some_and(|(algorithm, digits)| {
        algorithm.split(['-', '_', '+', '.']).all(is_word)
            && digits.len() >= 32
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Checks a digest that looks like one.
fn check_digest(text: &str) -> Result<(), Reason> {
    let (algorithm, digits) = text.split_once(':').unwrap_or((text, ""));
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ if algorithm.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            return Err(Reason::DigestFormat);
        }
        _ => return Err(Reason::DigestAlgorithm),
    };
    match digits.len() == length {
        false => Err(Reason::DigestLength),
        true if digits.bytes().all(is_lower_hex) => Ok(()),
        true => Err(Reason::DigestFormat),
    }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_dockers_defaults() {
        let hex = "a".repeat(64);
        let digest = format!("sha256:{hex}");
        for (text, registry, path, tag) in [
            ("busybox", "docker.io", "library/busybox", None),
            ("busybox:1.36", "docker.io", "library/busybox", Some("1.36")),
            ("docker.io/busybox", "docker.io", "library/busybox", None),
            (
                "index.docker.io/busybox",
                "docker.io",
                "library/busybox",
                None,
            ),
            (
                "grafana/grafana:v1",
                "docker.io",
                "grafana/grafana",
                Some("v1"),
            ),
            (
                "registry.k8s.io/pause:3.10",
                "registry.k8s.io",
                "pause",
                Some("3.10"),
            ),
            ("localhost/app", "localhost", "app", None),
            (
                "127.0.0.1:5000/a/b__c:x",
                "127.0.0.1:5000",
                "a/b__c",
                Some("x"),
            ),
            ("[::1]:5000/app", "[::1]:5000", "app", None),
            ("REG/app", "REG", "app", None),
            ("a---b/c.d_e", "docker.io", "a---b/c.d_e", None),
        ] {
            for digest in [None, Some(digest.as_str())] {
                let text = match digest {
                    Some(digest) => format!("{text}@{digest}"),
                    None => text.to_owned(),
                };
                let expected = ImageName {
                    registry,
                    path: path.into(),
                    tag,
                    digest,
                };
                assert_eq!(ImageName::parse(&text), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn malformed_names_are_refused_in_upstreams_words() {
        let [long, long_tag] = [("a/", "b", 256), ("a:", "b", 129)]
            .map(|(start, rest, count)| format!("{start}{}", rest.repeat(count)));
        let hex = "a".repeat(64);
        let format = "invalid reference format";
        for (text, reason) in [
            ("", format),
            ("a b", format),
            ("a//b", format),
            ("a/../b", format),
            ("a___b", format),
            ("a.-b", format),
            ("-a", format),
            ("a-", format),
            ("a:", format),
            ("a:.b", format),
            ("a:b c", format),
            ("a:b:c", format),
            (&long_tag, format),
            ("host:port/a", format),
            ("host.:5/a", format),
            ("[::x]/a", format),
            ("[]/a", format),
            ("a@sha256:12", format),
            ("a@1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", format),
            (
                "Busybox",
                "invalid reference format: repository name (library/Busybox) must be lowercase",
            ),
            (
                "quay.io/X/y:v1",
                "invalid reference format: repository name (X/y) must be lowercase",
            ),
            (
                &long,
                "repository name must not be more than 255 characters",
            ),
            (
                &hex,
                &format!(
                    "invalid repository name ({hex}), cannot specify 64-byte hexadecimal strings"
                ),
            ),
            (
                "a@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "invalid checksum digest length",
            ),
            (
                &format!("a@sha256:{}", "A".repeat(64)),
                "invalid checksum digest format",
            ),
            (
                "a@md5:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "unsupported digest algorithm",
            ),
        ] {
            let refused = ImageName::parse(text).unwrap_err().to_string();
            let expected = format!("couldn't parse image name {text:?}: {reason}");
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn images_that_may_change_under_their_name_are_always_pulled() {
        let digest = format!("@sha256:{}", "a".repeat(64));
        for (name, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("host:5000/a/b", "Always"),
            (&format!("busybox:latest{digest}"), "Always"),
            ("busybox:1.36", "IfNotPresent"),
            (&format!("busybox{digest}"), "IfNotPresent"),
            ("no image", "IfNotPresent"),
        ] {
            assert_eq!(default_pull_policy(name), policy, "{name}");
        }
    }
}
