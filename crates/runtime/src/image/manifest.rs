//! Manifests and indexes, of OCI and of docker, which differ in media types only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::configuration::architecture;
use super::digest::Digest;

/// Media types of manifests.
pub const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
/// Media types of indexes.
pub const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// The media type of an OCI configuration.
pub const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of a layer that is not compressed.
pub const PLAIN_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Why a document is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not what it should be.
    #[error("cannot decode its manifest")]
    Json(#[from] serde_json::Error),
    /// Something else lies in registries too: charts, signatures, old formats.
    #[error("not a container image: {media_type:?}")]
    NoImage {
        /// Its media type.
        media_type: String,
    },
    /// Nothing for this machine.
    #[error("no image for platform linux/{} in its index", architecture())]
    NoPlatform,
    /// A layer that needs keys.
    #[error("layer {digest} has unsupported media type {media_type:?}")]
    Layer {
        /// The layer.
        digest: Digest,
        /// Its kind.
        media_type: String,
    },
}

/// Points to content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// What it is called.
    pub digest: Digest,
    /// How long it is.
    pub size: u64,
    /// Names and the like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// What an image runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// As Go calls it.
    pub architecture: String,
    /// As Go calls it.
    pub os: String,
    /// Of the architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The parts of one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// 2.
    pub schema_version: u32,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// How it is run.
    pub config: Descriptor,
    /// Lowest first.
    pub layers: Vec<Descriptor>,
}

/// The same image for several platforms, or several images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Index {
    /// Manifests or indexes.
    pub manifests: Vec<Descriptor>,
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Manifest(Box<Manifest>),
    /// Several.
    Index(Index),
}

impl Document {
    /// The type of document, by its media type, or else by its fields.
    pub fn parse(bytes: &[u8]) -> Result<Document, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape {
            schema_version: Option<u32>,
            media_type: Option<String>,
            manifests: Option<serde::de::IgnoredAny>,
            config: Option<serde::de::IgnoredAny>,
        }
        let shape: Shape = serde_json::from_slice(bytes)?;
        let media_type = shape.media_type.as_deref();
        let is_one_of = |known: &[&str]| media_type.is_none_or(|own| known.contains(&own));
        if shape.manifests.is_some() && is_one_of(&INDEXES) {
            return Ok(Document::Index(serde_json::from_slice(bytes)?));
        }
        if shape.config.is_some() && is_one_of(&MANIFESTS) && shape.schema_version == Some(2) {
            let manifest: Box<Manifest> = serde_json::from_slice(bytes)?;
            manifest.check()?;
            return Ok(Document::Manifest(manifest));
        }
        let version = shape.schema_version.unwrap_or(0);
        let media_type = shape.media_type;
        Err(Error::NoImage {
            media_type: media_type.unwrap_or_else(|| format!("manifest of schema {version}")),
        })
    }
}

impl Manifest {
    fn check(&self) -> Result<(), Error> {
        let config = &self.config.media_type;
        if !config.contains("image.config") && !config.contains("container.image") {
            return Err(Error::NoImage {
                media_type: config.clone(),
            });
        }
        let is_encrypted = |layer: &&Descriptor| layer.media_type.ends_with("+encrypted");
        match self.layers.iter().find(is_encrypted) {
            Some(layer) => Err(Error::Layer {
                digest: layer.digest,
                media_type: layer.media_type.clone(),
            }),
            None => Ok(()),
        }
    }
}

impl Index {
    /// The one for this machine: the best of those that run on it.
    pub fn for_this_machine(&self) -> Result<&Descriptor, Error> {
        self.for_platform(architecture())
    }

    fn for_platform(&self, architecture: &str) -> Result<&Descriptor, Error> {
        let fits = |entry: &&Descriptor| match &entry.platform {
            Some(platform) => platform.os == "linux" && platform.architecture == architecture,
            // Indexes of one image often leave the platform out.
            None => self.manifests.len() == 1,
        };
        let is_image = |entry: &&Descriptor| {
            let kind = entry.media_type.as_str();
            MANIFESTS.contains(&kind) || INDEXES.contains(&kind)
        };
        let variant = |entry: &&Descriptor| {
            let platform = entry.platform.as_ref();
            platform.and_then(|platform| platform.variant.clone())
        };
        let candidates = self.manifests.iter().filter(is_image).filter(fits);
        // Higher variants need newer machines; v8 of arm64 is what all have.
        let is_base = |entry: &&Descriptor| {
            let variant = variant(entry);
            variant.is_none() || architecture == "arm64" && variant.as_deref() == Some("v8")
        };
        let found: Vec<&Descriptor> = candidates.collect();
        let base = found.iter().find(|entry| is_base(entry)).copied();
        base.or_else(|| found.into_iter().min_by_key(variant))
            .ok_or(Error::NoPlatform)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(content: &str, os: &str, architecture: &str, variant: Option<&str>) -> Descriptor {
        Descriptor {
            media_type: MANIFESTS[0].to_owned(),
            digest: Digest::of(content.as_bytes()),
            size: 1,
            annotations: BTreeMap::new(),
            platform: Some(Platform {
                architecture: architecture.to_owned(),
                os: os.to_owned(),
                variant: variant.map(str::to_owned),
            }),
        }
    }

    #[test]
    fn index_selects_the_manifest_for_the_platform() {
        let index = Index {
            manifests: vec![
                entry("windows", "windows", "amd64", None),
                entry("new", "linux", "amd64", Some("v3")),
                entry("base", "linux", "amd64", None),
                entry("arm", "linux", "arm64", Some("v8")),
                entry("attestation", "unknown", "unknown", None),
                entry("v7", "linux", "arm", Some("v7")),
                entry("v6", "linux", "arm", Some("v6")),
            ],
        };
        for (architecture, expected) in [("amd64", "base"), ("arm64", "arm"), ("arm", "v6")] {
            let chosen = index.for_platform(architecture).unwrap();
            assert_eq!(chosen.digest, Digest::of(expected.as_bytes()));
        }
        assert!(matches!(
            index.for_platform("riscv64"),
            Err(Error::NoPlatform)
        ));
    }

    #[test]
    fn document_kind_is_read_from_media_types() {
        let digest = Digest::of(b"");
        let manifest = |config: &str, layer: &str| {
            let text = json!({
                "schemaVersion": 2,
                "config": {"mediaType": config, "digest": digest, "size": 2},
                "layers": [{"mediaType": layer, "digest": digest, "size": 2}],
            });
            Document::parse(text.to_string().as_bytes())
        };
        let docker = "application/vnd.docker.container.image.v1+json";
        assert!(matches!(
            manifest(CONFIGURATION, PLAIN_LAYER),
            Ok(Document::Manifest(_))
        ));
        assert!(matches!(
            manifest(docker, PLAIN_LAYER),
            Ok(Document::Manifest(_))
        ));
        let index = br#"{"schemaVersion":2,"manifests":[]}"#;
        assert!(matches!(Document::parse(index), Ok(Document::Index(_))));
        for (refused, expected) in [
            (
                manifest("application/vnd.cncf.helm.config.v1+json", "x"),
                r#"not a container image: "application/vnd.cncf.helm.config.v1+json""#.to_owned(),
            ),
            (
                manifest(
                    CONFIGURATION,
                    "application/vnd.oci.image.layer.v1.tar+encrypted",
                ),
                format!(
                    "layer {digest} has unsupported media type \"application/vnd.oci.image.layer.v1.tar+encrypted\""
                ),
            ),
            (
                Document::parse(br#"{"schemaVersion":1,"fsLayers":[]}"#),
                r#"not a container image: "manifest of schema 1""#.to_owned(),
            ),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
    }
}
