//! Names of images, as the kubelet asks the runtime for them.

use plimsoll_core::object::image_name::{ImageName, InvalidImageName};

/// The name, with the tag `latest` if it has neither tag nor digest.
pub(super) fn with_tag(name: &str) -> Result<String, InvalidImageName> {
    let parsed = ImageName::parse(name)?;
    Ok(match (parsed.tag, parsed.digest) {
        (None, None) => format!("{name}:latest"),
        _ => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_tag_and_digest_mean_the_latest() {
        let digest = format!("busybox@sha256:{}", "a".repeat(64));
        for (name, with_latest) in [
            ("busybox", "busybox:latest"),
            ("busybox:latest", "busybox:latest"),
            ("busybox:1.36", "busybox:1.36"),
            ("host:5000/a/b", "host:5000/a/b:latest"),
            ("localhost/a__b.c--d:x", "localhost/a__b.c--d:x"),
            (&digest, &digest),
        ] {
            assert_eq!(with_tag(name).as_deref(), Ok(with_latest));
        }
        assert!(with_tag("a:b:c").is_err());
    }
}
