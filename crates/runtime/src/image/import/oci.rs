//! Archives of OCI layouts: `index.json` names manifests, which name everything else by digest.

use super::super::digest::Digest;
use super::super::manifest::{Descriptor, Document, INDEXES, Index, Manifest};
use super::super::reference::Reference;
use super::parts::Parts;
use super::{Error, Found};

pub(super) const LAYOUT: &str = "oci-layout";
pub(super) const INDEX: &str = "index.json";

/// Whole names, as containerd and docker write them.
const WHOLE_NAME: &str = "io.containerd.image.name";
/// Names or only tags, as the specification has it.
const NAME_OR_TAG: &str = "org.opencontainers.image.ref.name";

/// Indexes in indexes in indexes are no honest archive.
const DEEPEST: usize = 4;

pub(super) fn images(parts: &Parts) -> Result<Vec<Found>, Error> {
    let bytes = parts.read(INDEX)?;
    let index: Index = serde_json::from_slice(&bytes).map_err(|source| Error::Json {
        path: INDEX.to_owned(),
        source,
    })?;
    let mut images: Vec<Found> = Vec::new();
    for entry in &index.manifests {
        let names = names(entry)?;
        let (digest, bytes, manifest) = manifest(parts, entry)?;
        let label = names
            .first()
            .map_or(digest.to_string(), Reference::to_string);
        // Several names of one image are several entries.
        let known = images
            .iter_mut()
            .find(|image| image.manifest.as_deref() == Some(&bytes));
        match known {
            Some(image) => image.names.extend(names),
            None => images.push(Found {
                label,
                names,
                configuration: blob(parts, &manifest.config.digest)?,
                manifest: Some(bytes),
                layers: manifest.layers.iter().map(|l| path(&l.digest)).collect(),
            }),
        }
    }
    Ok(images)
}

/// A bare tag says nothing about which image it is a tag of, so it is no name.
fn names(entry: &Descriptor) -> Result<Vec<Reference>, Error> {
    if let Some(name) = entry.annotations.get(WHOLE_NAME) {
        return Ok(vec![name.parse()?]);
    }
    match entry.annotations.get(NAME_OR_TAG) {
        Some(name) if name.contains([':', '/']) => Ok(vec![name.parse()?]),
        _ => Ok(Vec::new()),
    }
}

fn manifest(parts: &Parts, entry: &Descriptor) -> Result<(Digest, Vec<u8>, Box<Manifest>), Error> {
    let failed = |source| Error::Manifest {
        image: entry.digest.to_string(),
        source,
    };
    let mut digest = entry.digest;
    for _ in 0..DEEPEST {
        let bytes = blob(parts, &digest)?;
        match Document::parse(&bytes).map_err(failed)? {
            Document::Manifest(manifest) => return Ok((digest, bytes, manifest)),
            Document::Index(index) => digest = index.for_this_machine().map_err(failed)?.digest,
        }
    }
    Err(failed(super::manifest::Error::NoImage {
        media_type: INDEXES[0].to_owned(),
    }))
}

fn blob(parts: &Parts, digest: &Digest) -> Result<Vec<u8>, Error> {
    let path = path(digest);
    let bytes = parts.read(&path)?;
    if Digest::of(&bytes) != *digest {
        return Err(Error::OtherContent { path });
    }
    Ok(bytes)
}

fn path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}
