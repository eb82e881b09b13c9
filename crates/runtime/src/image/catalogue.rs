//! Which images a store has, under which names.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::reference::{Reference, Version};

/// An id may be shortened to so many digits, as people do on command lines.
const SHORTEST_ID: usize = 6;

/// All images of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    images: Vec<Record>,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Digest of its configuration.
    pub id: Digest,
    /// Digest of its manifest, if it came with one.
    pub manifest: Option<Digest>,
    /// Chains of its layers, lowest first.
    pub layers: Vec<Digest>,
    /// Bytes of its layers and its configuration.
    pub size: u64,
    /// Whole names with tags.
    pub tags: BTreeSet<String>,
    /// Whole names with digests.
    pub digests: BTreeSet<String>,
    /// Never collected as unused.
    pub pinned: bool,
}

impl Record {
    /// What `ContainerStatus.image_ref` shows: a name with a digest, or else the id.
    pub fn reference(&self) -> String {
        let digest = self.digests.first().cloned();
        digest.unwrap_or_else(|| self.id.to_string())
    }
}

impl Catalogue {
    /// In order of their ids.
    pub fn images(&self) -> &[Record] {
        &self.images
    }

    /// By id (with or without `sha256:`, perhaps shortened), or by name with tag or digest.
    pub fn find(&self, text: &str) -> Option<&Record> {
        let by_id = |id: Digest| self.images.iter().find(|image| image.id == id);
        if let Ok(id) = text.parse() {
            return by_id(id);
        }
        if let Some(id) = Digest::from_hex(text) {
            return by_id(id);
        }
        let by_name = text.parse().ok().and_then(|name| self.by_name(&name));
        by_name.or_else(|| self.by_short_id(text))
    }

    /// By its whole name.
    pub fn by_name(&self, name: &Reference) -> Option<&Record> {
        let text = name.to_string();
        self.images.iter().find(|image| match name.version {
            Version::Tag(_) => image.tags.contains(&text),
            Version::Digest(_) => image.digests.contains(&text),
        })
    }

    fn by_short_id(&self, text: &str) -> Option<&Record> {
        let short = text.strip_prefix("sha256:").unwrap_or(text);
        if short.len() < SHORTEST_ID {
            return None;
        }
        let mut found = self
            .images
            .iter()
            .filter(|image| image.id.hex().starts_with(short));
        let first = found.next();
        // A short id that fits several images names none.
        first.filter(|_| found.next().is_none())
    }

    /// Adds an image, or new names to one that is there. A tag that another image had moves;
    /// the other image stays under its id.
    pub fn add(&mut self, new: Record) {
        for image in &mut self.images {
            image.tags.retain(|tag| !new.tags.contains(tag));
        }
        match self.images.iter_mut().find(|image| image.id == new.id) {
            Some(image) => {
                image.tags.extend(new.tags);
                image.digests.extend(new.digests);
                image.manifest = new.manifest.or(image.manifest);
                image.pinned |= new.pinned;
            }
            None => {
                self.images.push(new);
                self.images.sort_by_key(|image| image.id);
            }
        }
    }

    /// Removes an image; returns whether it was there.
    pub fn remove(&mut self, id: &Digest) -> bool {
        let before = self.images.len();
        self.images.retain(|image| image.id != *id);
        self.images.len() < before
    }

    /// Takes one name from an image, and the image itself if it was the last.
    pub fn remove_name(&mut self, name: &Reference) -> bool {
        let text = name.to_string();
        let mut was_there = false;
        self.images.retain_mut(|image| {
            let is_here = image.tags.remove(&text) | image.digests.remove(&text);
            was_there |= is_here;
            // The digests of a repository go with the last tag in it.
            let prefix = format!("{}:", name.name());
            if is_here && !image.tags.iter().any(|tag| tag.starts_with(&prefix)) {
                let of_repository = format!("{}@", name.name());
                image.digests.retain(|d| !d.starts_with(&of_repository));
            }
            !is_here || !image.tags.is_empty() || !image.digests.is_empty()
        });
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(content: &str, tags: &[&str]) -> Record {
        let name = |tag: &str| tag.parse::<Reference>().unwrap();
        let manifest = Digest::of(format!("manifest of {content}").as_bytes());
        Record {
            id: Digest::of(content.as_bytes()),
            manifest: Some(manifest),
            layers: Vec::new(),
            size: 1,
            tags: tags.iter().map(|tag| name(tag).to_string()).collect(),
            digests: tags
                .iter()
                .map(|tag| name(tag).with_digest(manifest).to_string())
                .collect(),
            pinned: false,
        }
    }

    #[test]
    fn an_image_is_found_by_any_of_its_names() {
        let mut catalogue = Catalogue::default();
        let record = image("a", &["busybox:1", "quay.io/x/y"]);
        catalogue.add(record.clone());
        catalogue.add(image("b", &["other"]));
        let id = record.id.to_string();
        let mut names = vec![
            id.clone(),
            record.id.hex(),
            record.id.hex()[..12].to_owned(),
        ];
        names.push(id[..20].to_owned());
        names.extend(record.digests.iter().cloned());
        names.extend(["busybox:1", "docker.io/busybox:1", "quay.io/x/y"].map(str::to_owned));
        for name in names {
            assert_eq!(catalogue.find(&name), Some(&record), "{name}");
        }
        for name in ["busybox", "quay.io/x/y:2", "x/y", "", &record.id.hex()[..4]] {
            assert_eq!(catalogue.find(name), None, "{name}");
        }
    }

    #[test]
    fn tag_moves_to_the_image_added_last() {
        let mut catalogue = Catalogue::default();
        let old = image("old", &["app"]);
        let new = image("new", &["app"]);
        catalogue.add(old.clone());
        catalogue.add(new.clone());
        assert_eq!(catalogue.find("app"), Some(&new));
        let old_now = catalogue.find(&old.id.to_string()).unwrap();
        assert_eq!(old_now.tags.len(), 0);
        assert_eq!(old_now.digests, old.digests);
    }

    #[test]
    fn image_is_removed_with_its_last_name() {
        let mut catalogue = Catalogue::default();
        catalogue.add(image("a", &["x:1", "y:1"]));
        assert!(catalogue.remove_name(&"x:1".parse().unwrap()));
        assert!(!catalogue.remove_name(&"x:1".parse().unwrap()));
        assert!(catalogue.find("y:1").is_some());
        assert!(catalogue.remove_name(&"y:1".parse().unwrap()));
        assert_eq!(catalogue.images(), []);
    }

    #[test]
    fn the_same_image_again_gains_names() {
        let mut catalogue = Catalogue::default();
        catalogue.add(image("a", &["x:1"]));
        catalogue.add(image("a", &["x:2"]));
        assert_eq!(catalogue.images().len(), 1);
        assert_eq!(catalogue.images()[0].tags.len(), 2);
    }
}
