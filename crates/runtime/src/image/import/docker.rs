//! What `docker save` writes: `manifest.json` names configurations and layers.

use serde::Deserialize;

use super::parts::Parts;
use super::{Error, Found};

pub(super) const MANIFEST: &str = "manifest.json";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

pub(super) fn images(parts: &Parts) -> Result<Vec<Found>, Error> {
    let bytes = parts.read(MANIFEST)?;
    let entries: Vec<Entry> = serde_json::from_slice(&bytes).map_err(|source| Error::Json {
        path: MANIFEST.to_owned(),
        source,
    })?;
    entries
        .into_iter()
        .map(|entry| found(parts, entry))
        .collect()
}

fn found(parts: &Parts, entry: Entry) -> Result<Found, Error> {
    let tags = entry.repo_tags.unwrap_or_default();
    let names: Result<Vec<_>, _> = tags.iter().map(|tag| tag.parse()).collect();
    Ok(Found {
        label: tags.first().unwrap_or(&entry.config).clone(),
        names: names?,
        configuration: parts.read(&entry.config)?,
        manifest: None,
        layers: entry.layers.unwrap_or_default(),
    })
}
