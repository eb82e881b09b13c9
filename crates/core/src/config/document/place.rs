//! Paths to places.

use crate::problem::Position;

use super::{Content, Entry, Node};

/// The place of a path: its value, or the nearest thing around it that exists.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The value.
    pub node: &'a Node,
    /// Its key, unless it is a document or an item of a list.
    pub entry: Option<&'a Entry>,
    /// Whether it is the value at the path, and not one around it.
    pub is_exact: bool,
}

/// Which of several equal keys is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    First,
    Last,
}

impl Node {
    /// The place of a path such as `spec.containers[0].resources.limits[cpu]`. Names with dots are
    /// found with and without brackets; of equal keys the last one counts, as it does for a server.
    pub fn locate(&self, path: &str) -> Place<'_> {
        locate(self, path, Which::Last)
    }

    /// The same, with the first of equal keys at the end of the path.
    pub fn locate_first(&self, path: &str) -> Place<'_> {
        locate(self, path, Which::First)
    }
}

fn locate<'a>(document: &'a Node, path: &str, which: Which) -> Place<'a> {
    let mut place = Place {
        node: document,
        entry: None,
        is_exact: false,
    };
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        let next = match &place.node.content {
            Content::Sequence(items) => item(items, rest).map(|(node, rest)| (node, None, rest)),
            Content::Mapping(entries) => {
                entry(entries, rest, which).map(|(entry, rest)| (&entry.value, Some(entry), rest))
            }
            Content::Scalar { .. } => None,
        };
        let Some((node, entry, after)) = next else {
            return place;
        };
        place.node = node;
        place.entry = entry;
        rest = after.trim_start_matches('.');
    }
    place.is_exact = true;
    place
}

/// The item that a path begins with, and the rest of the path.
fn item<'a, 'p>(items: &'a [Node], path: &'p str) -> Option<(&'a Node, &'p str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((items.get(index.parse::<usize>().ok()?)?, rest))
}

/// The entry with the longest key that a path begins with, and the rest of the path.
fn entry<'a, 'p>(
    entries: &'a [Entry],
    path: &'p str,
    which: Which,
) -> Option<(&'a Entry, &'p str)> {
    let mut best: Option<(&Entry, &str)> = None;
    for entry in entries {
        let Some(rest) = after_key(path, &entry.key) else {
            continue;
        };
        let is_better = best.is_none_or(|(known, _)| match which {
            Which::First => entry.key.len() > known.key.len(),
            Which::Last => entry.key.len() >= known.key.len(),
        });
        if is_better {
            best = Some((entry, rest));
        }
    }
    best
}

fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let plain = path.strip_prefix(key);
    let plain = plain.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    plain.filter(|_| !key.is_empty()).or_else(|| {
        let inside = path.strip_prefix('[')?;
        inside.strip_prefix(key)?.strip_prefix(']')
    })
}

impl Place<'_> {
    /// Where to look: at a single value, or else at the key of a collection or of what is around a
    /// missing value.
    pub fn position(&self) -> Position {
        match (self.is_exact, &self.node.content) {
            (true, Content::Scalar { .. }) => self.node.position,
            _ => self.key_position(),
        }
    }

    /// Where the key stands, or the value if it has none.
    pub fn key_position(&self) -> Position {
        self.entry
            .map_or(self.node.position, |entry| entry.key_position)
    }
}
