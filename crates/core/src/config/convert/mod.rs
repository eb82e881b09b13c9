//! OKD's `node-config.yaml` as a KubeletConfiguration.
//!
//! The document holds what was set and nothing else. Everything that conversion changes or loses is
//! a [`Note`] with what to do about it.
//!
//! Reading order: this file, `notes` (the note on each setting), `defaults` (the notes on settings
//! that were not set).

mod defaults;
mod notes;

use std::fmt;

use crate::problem::Position;

use super::document::{Content, Entry, Node};
use super::read::{Assignment, Reading, okd_assignments};
use super::{Profile, read_okd_node_config};

/// A converted file.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The KubeletConfiguration. [`Node::to_yaml`] makes it a file.
    pub document: Node,
    /// The notes.
    pub notes: Vec<Note>,
    /// The original as it was read. With problems the document is incomplete.
    pub original: Reading,
}

/// Something that does not carry over by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind of change.
    pub kind: NoteKind,
    /// The setting as the original calls it, or the field that it left alone.
    pub subject: String,
    /// The meaning of the setting, or what changed about it.
    pub meaning: String,
    /// The action to take.
    pub advice: String,
    /// Where the original has it.
    pub position: Option<Position>,
}

/// The kind of change of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// Nothing of today does this.
    NoEquivalent,
    /// It lives on, but no configuration file can say it.
    FlagOnly,
    /// It is called differently.
    Renamed,
    /// It is kept but works differently.
    ChangedMeaning,
    /// It was left alone, and what that means has changed.
    ChangedDefault,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "line {}: ", position.line)?;
        }
        write!(f, "{}: {}; {}", self.subject, self.meaning, self.advice)
    }
}

/// Converts a file that is read with the defaults of the profile.
pub fn convert_okd_node_config(bytes: &[u8], profile: Profile) -> Conversion {
    let original = read_okd_node_config(bytes, profile);
    let assignments = okd_assignments(bytes);
    let mut document = empty_document();
    let mut notes = Vec::new();
    for assignment in &assignments {
        notes.extend(notes::about(assignment));
        if notes::has_field(assignment) {
            insert(&mut document, &assignment.field, assignment.node.clone());
        }
    }
    notes.extend(defaults::notes(&original.config));
    Conversion {
        document,
        notes,
        original,
    }
}

/// Positions of what the original does not have.
const NOWHERE: Position = Position { line: 1, column: 1 };

fn empty_document() -> Node {
    let entry = |(key, text): (&str, &str)| Entry {
        key: key.to_owned(),
        key_position: NOWHERE,
        value: Node::text(text, NOWHERE),
    };
    let header = [
        ("apiVersion", "kubelet.config.k8s.io/v1beta1"),
        ("kind", "KubeletConfiguration"),
    ];
    Node {
        position: NOWHERE,
        content: Content::Mapping(header.map(entry).to_vec()),
    }
}

/// Puts a value at a dotted path, replacing what is there.
fn insert(document: &mut Node, path: &str, value: Node) {
    let Content::Mapping(entries) = &mut document.content else {
        return;
    };
    let (key, rest) = match path.split_once('.') {
        Some((key, rest)) => (key, Some(rest)),
        None => (path, None),
    };
    let index = match entries.iter().position(|entry| entry.key == key) {
        Some(index) => index,
        None => {
            let content = Content::Mapping(Vec::new());
            entries.push(Entry {
                key: key.to_owned(),
                key_position: value.position,
                value: Node {
                    position: value.position,
                    content,
                },
            });
            entries.len() - 1
        }
    };
    match rest {
        Some(rest) => insert(&mut entries[index].value, rest, value),
        None => entries[index].value = value,
    }
}

#[cfg(test)]
mod tests;
