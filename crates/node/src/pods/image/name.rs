//! Names of images.
//!
//! The grammar is that of github.com/distribution/reference, which upstream parses names with.

/// Why a name is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {name:?}: {problem}")]
pub(super) struct InvalidName {
    name: String,
    problem: String,
}

/// The parts of a name.
struct Parts<'a> {
    path: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn split(name: &str) -> Parts<'_> {
    let (rest, digest) = match name.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (name, None),
    };
    // A colon before the last slash belongs to a port.
    let start = rest.rfind('/').map_or(0, |slash| slash + 1);
    match rest[start..].split_once(':') {
        Some((_, tag)) => Parts {
            path: &rest[..rest.len() - tag.len() - 1],
            tag: Some(tag),
            digest,
        },
        None => Parts {
            path: rest,
            tag: None,
            digest,
        },
    }
}

/// The name, with the tag `latest` if it has neither tag nor digest.
pub(super) fn with_tag(name: &str) -> Result<String, InvalidName> {
    check(name).map_err(|problem| InvalidName {
        name: name.to_owned(),
        problem,
    })?;
    let parts = split(name);
    match (parts.tag, parts.digest) {
        (None, None) => Ok(format!("{name}:latest")),
        _ => Ok(name.to_owned()),
    }
}

/// When an image is pulled unless the container has a pull policy: `latest` changes, others do not.
pub(super) fn default_policy(name: &str) -> &'static str {
    let parts = split(name);
    match (parts.tag, parts.digest) {
        (None, None) | (Some("latest"), None) => "Always",
        _ => "IfNotPresent",
    }
}

fn check(name: &str) -> Result<(), String> {
    const INVALID: &str = "invalid reference format";
    let parts = split(name);
    let invalid = || Err(INVALID.to_owned());
    let is_tag = |tag: &str| {
        let mut bytes = tag.bytes();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        tag.len() <= 128
            && bytes.next().is_some_and(is_word)
            && bytes.all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
    };
    if parts.tag.is_some_and(|tag| !is_tag(tag)) || parts.digest.is_some_and(|d| !is_digest(d)) {
        return invalid();
    }
    if parts.path.len() == 64
        && parts
            .path
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        let path = parts.path;
        return Err(format!(
            "invalid repository name ({path}), cannot specify 64-byte hexadecimal strings"
        ));
    }
    let mut components: Vec<&str> = parts.path.split('/').collect();
    let first = components[0];
    let is_domain = components.len() > 1
        && (first.contains(['.', ':'])
            || first == "localhost"
            || first.bytes().any(|b| b.is_ascii_uppercase()));
    if is_domain {
        if !is_domain_name(first) {
            return invalid();
        }
        components.remove(0);
    }
    if components.iter().all(|component| is_component(component)) {
        return Ok(());
    }
    let lower = components.join("/").to_ascii_lowercase();
    if lower.split('/').all(is_component) {
        return Err(format!(
            "{INVALID}: repository name ({}) must be lowercase",
            if is_domain || components.len() > 1 {
                components.join("/")
            } else {
                format!("library/{}", components.join("/"))
            }
        ));
    }
    invalid()
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty() && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

fn is_domain_name(domain: &str) -> bool {
    let host = match domain.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(']') || !port.contains(']') => {
            if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
                return false;
            }
            host
        }
        _ => domain,
    };
    if let Some(address) = host.strip_prefix('[') {
        return address
            .strip_suffix(']')
            .is_some_and(|a| a.parse::<std::net::Ipv6Addr>().is_ok());
    }
    host.split('.').all(|label| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Lower-case words joined by `.`, `_`, `__` or any number of `-`.
fn is_component(component: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let has_good_ends = bytes.first().is_some_and(is_word) && bytes.last().is_some_and(is_word);
    let mut separators = bytes
        .split(is_word)
        .filter(|separator| !separator.is_empty());
    has_good_ends
        && separators.all(|separator| {
            separator == b"."
                || separator == b"_"
                || separator == b"__"
                || separator.iter().all(|byte| *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_tag_and_digest_mean_the_latest() {
        let digest = format!("busybox@sha256:{}", "a".repeat(64));
        for (name, with_latest, policy) in [
            ("busybox", "busybox:latest", "Always"),
            ("busybox:latest", "busybox:latest", "Always"),
            ("busybox:1.36", "busybox:1.36", "IfNotPresent"),
            ("host:5000/a/b", "host:5000/a/b:latest", "Always"),
            (
                "localhost/a__b.c--d:x",
                "localhost/a__b.c--d:x",
                "IfNotPresent",
            ),
            (&digest, &digest, "IfNotPresent"),
        ] {
            assert_eq!(with_tag(name).as_deref(), Ok(with_latest));
            assert_eq!(default_policy(name), policy, "{name}");
        }
    }

    #[test]
    fn malformed_names_are_refused_with_upstreams_words() {
        for (name, problem) in [
            ("", "invalid reference format"),
            ("a:b:c", "invalid reference format"),
            ("a//b", "invalid reference format"),
            ("a b", "invalid reference format"),
            ("a@sha256:short", "invalid reference format"),
            (
                "FAILED_IMAGE",
                "invalid reference format: repository name (library/FAILED_IMAGE) must be lowercase",
            ),
        ] {
            let error = with_tag(name).unwrap_err().to_string();
            let expected = format!("couldn't parse image name {name:?}: {problem}");
            assert_eq!(error, expected);
        }
    }
}
