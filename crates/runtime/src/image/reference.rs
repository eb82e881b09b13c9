//! Names of images, made whole as docker does: `busybox` means
//! `docker.io/library/busybox:latest`.

use std::fmt;
use std::str::FromStr;

use plimsoll_core::object::image_name::{ImageName, InvalidImageName, Reason};

use super::digest::Digest;

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
    type Err = InvalidImageName;

    /// A digest makes a tag beside it meaningless, so the tag is dropped.
    fn from_str(text: &str) -> Result<Reference, InvalidImageName> {
        let name = ImageName::parse(text)?;
        let version = match (name.digest, name.effective_tag()) {
            (None, tag) => Version::Tag(tag.unwrap_or_default().to_owned()),
            (Some(digest), _) => {
                let digest = digest.parse().map_err(|_| InvalidImageName {
                    name: text.to_owned(),
                    reason: Reason::DigestAlgorithm,
                })?;
                Version::Digest(digest)
            }
        };
        Ok(Reference {
            registry: name.registry.to_owned(),
            repository: name.path.into_owned(),
            version,
        })
    }
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
    fn digests_of_other_algorithms_are_refused() {
        let name = format!("a@sha512:{}", "a".repeat(128));
        let refused = name.parse::<Reference>().unwrap_err();
        assert_eq!(refused.reason, Reason::DigestAlgorithm);
    }
}
