//! Pathname expansion.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::pattern::{Symbol, is_pattern, matches};

/// A pattern that matches more paths than this is left as it is, as no command line holds them.
const MAX_PATHS: usize = 100_000;

/// The existing paths that a pattern matches, in order; none if the pattern has to stand for itself.
pub(super) fn paths(pattern: &[Symbol]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (place, segment) in pattern.split(|symbol| symbol.byte == b'/').enumerate() {
        let mut next = Vec::new();
        for mut base in found {
            if place > 0 {
                base.push(b'/');
            }
            if segment.is_empty() {
                next.push(base);
            } else if is_pattern(segment) {
                next.extend(entries(&base, segment));
            } else {
                base.extend(segment.iter().map(|symbol| symbol.byte));
                next.push(base);
            }
            if next.len() > MAX_PATHS {
                return Vec::new();
            }
        }
        found = next;
    }
    found.retain(|path| fs::symlink_metadata(OsStr::from_bytes(path)).is_ok());
    found.sort();
    found
}

fn entries(base: &[u8], segment: &[Symbol]) -> Vec<Vec<u8>> {
    let directory = if base.is_empty() { b"." } else { base };
    let Ok(listing) = fs::read_dir(Path::new(OsStr::from_bytes(directory))) else {
        return Vec::new();
    };
    let shows_hidden = segment.first().is_some_and(|symbol| symbol.byte == b'.');
    let mut names: Vec<Vec<u8>> = listing
        .flatten()
        .map(|entry| entry.file_name().into_vec())
        .collect();
    if shows_hidden {
        names.extend([b".".to_vec(), b"..".to_vec()]);
    }
    names.retain(|name| (shows_hidden || !name.starts_with(b".")) && matches(segment, name));
    names
        .into_iter()
        .map(|name| [base, &name].concat())
        .collect()
}
