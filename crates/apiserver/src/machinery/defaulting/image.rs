//! Image names and tags.
//!
//! Matches v1.36 pkg/util/parsers and vendor/github.com/distribution/reference.

/// The longest repository path.
const MAX_PATH_BYTES: usize = 255;

/// `Always` for images that may change under their name: those with the tag `latest`, or with no
/// tag and no digest. An invalid name has no tag.
pub(super) fn default_pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// The tag, `latest` if there is neither tag nor digest. `None` for a name with only a digest
/// and for an invalid image name.
fn tag(image: &str) -> Option<&str> {
    if image.len() == 64 && image.bytes().all(is_lower_hex) {
        return None;
    }
    let (domain, remainder) = split_domain(image);
    let (name, digest) = match remainder.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (remainder, None),
    };
    let (path, tag) = match name
        .rfind(':')
        .filter(|colon| !name[*colon..].contains('/'))
    {
        Some(colon) => (&name[..colon], Some(&name[colon + 1..])),
        None => (name, None),
    };
    let path_bytes = path.len()
        + if domain.is_none() && !path.contains('/') {
            "library/".len()
        } else {
            0
        };
    let is_name = domain.is_none_or(is_domain_with_port)
        && path.split('/').all(is_path_component)
        && path_bytes <= MAX_PATH_BYTES
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if !is_name {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

/// The registry, if the first part looks like one, and the rest.
fn split_domain(image: &str) -> (Option<&str>, &str) {
    match image.split_once('/') {
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.to_lowercase() != first =>
        {
            (Some(first), rest)
        }
        _ => (None, image),
    }
}

fn is_domain_with_port(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((address, port)) => {
                let is_address = !address.is_empty()
                    && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
                return is_address && is_optional_port(port);
            }
            None => return false,
        },
        None => domain
            .find(':')
            .map_or((domain, ""), |colon| domain.split_at(colon)),
    };
    host.split('.').all(is_domain_component) && is_optional_port(port)
}

fn is_optional_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty()
        || digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn is_domain_component(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Lower-case letters and digits with single separators between: `.`, `_`, `__` or dashes.
fn is_path_component(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separators = text.split(is_plain);
    let (first, last) = (text.chars().next(), text.chars().last());
    first.is_some_and(is_plain)
        && last.is_some_and(is_plain)
        && separators.all(|s| matches!(s, "" | "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
        && text.bytes().next().is_some_and(is_word)
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else {
        return false;
    };
    let digits = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == digits && hex.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_tag_or_with_latest_are_always_pulled() {
        for image in [
            "nginx",
            "nginx:latest",
            "a.b:5000/x/y",
            "localhost/x:latest",
            "Reg/x",
        ] {
            assert_eq!(default_pull_policy(image), "Always", "{image}");
        }
    }

    #[test]
    fn other_images_and_invalid_names_are_pulled_if_not_present() {
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        for image in [
            "nginx:1.2",
            "",
            "Nginx",
            "a//b",
            "a:b:c",
            &digest,
            "-a",
            "nginx:-x",
        ] {
            assert_eq!(default_pull_policy(image), "IfNotPresent", "{image}");
        }
        assert_eq!(
            default_pull_policy(&format!("nginx:latest@sha256:{}", "a".repeat(64))),
            "Always"
        );
    }
}
