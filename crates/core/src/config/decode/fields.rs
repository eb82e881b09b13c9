//! Taking assignments apart, one typed value at a time.

use std::collections::BTreeMap;

use crate::duration::Duration;
use crate::problem::Problem;

use super::super::document::{Content, Node, ScalarValue, child_path};
use super::super::read::Assignment;
use super::super::{Origin, Setting, SignalTexts};

/// The assignments that have not been looked at.
pub(super) struct Fields<'a> {
    assignments: BTreeMap<String, Assignment>,
    /// Whether zeros and empty texts mean the default.
    pub(super) zero_is_default: bool,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        assignments: Vec<Assignment>,
        zero_is_default: bool,
        problems: &'a mut Vec<Problem>,
    ) -> Fields<'a> {
        let by_field = |assignment: Assignment| (assignment.field.clone(), assignment);
        Fields {
            assignments: assignments.into_iter().map(by_field).collect(),
            zero_is_default,
            problems,
        }
    }

    /// Where every field and every entry of a map or list stands.
    pub(super) fn places(&self) -> BTreeMap<String, Origin> {
        let mut places = BTreeMap::new();
        for assignment in self.assignments.values() {
            let field = &assignment.field;
            let mut add = |path: fn(&str, &str) -> String, key: &str, node: &Node| {
                places.insert(path(field, key), assignment.origin_of(path, key, node));
            };
            match &assignment.node.content {
                Content::Mapping(entries) => {
                    for entry in entries {
                        add(child_path, &entry.key, &entry.value);
                    }
                }
                Content::Sequence(items) => {
                    for (index, item) in items.iter().enumerate() {
                        let path = |parent: &str, index: &str| format!("{parent}[{index}]");
                        add(path, &index.to_string(), item);
                    }
                }
                Content::Scalar { .. } => {}
            }
            places.insert(field.clone(), assignment.origin.clone());
        }
        places
    }

    /// The fields that were not read, as JSON.
    pub(super) fn rest(self) -> BTreeMap<String, Setting<serde_json::Value>> {
        let mut rest = BTreeMap::new();
        for (field, assignment) in self.assignments {
            let value = assignment
                .node
                .to_json(&assignment.origin.path, self.problems);
            rest.insert(field, Setting::chosen(value, assignment.origin));
        }
        rest
    }

    /// Takes a field whose value `read` understands; of the wrong type it is left at its default,
    /// which was reported when shapes were checked.
    pub(super) fn set<T>(
        &mut self,
        field: &str,
        setting: &mut Setting<T>,
        read: impl FnOnce(&Node) -> Option<T>,
    ) {
        let Some(assignment) = self.assignments.remove(field) else {
            return;
        };
        if let Some(value) = read(&assignment.node) {
            *setting = Setting::chosen(value, assignment.origin);
        }
    }

    /// Like [`Fields::set`], with problems of its own.
    pub(super) fn try_set<T>(
        &mut self,
        field: &str,
        setting: &mut Setting<T>,
        read: impl FnOnce(&Assignment, &mut Vec<Problem>) -> Option<T>,
    ) {
        let Some(assignment) = self.assignments.remove(field) else {
            return;
        };
        if let Some(value) = read(&assignment, self.problems) {
            *setting = Setting::chosen(value, assignment.origin);
        }
    }

    pub(super) fn bool(&mut self, field: &str, setting: &mut Setting<bool>) {
        self.set(field, setting, bool_of);
    }

    /// A number whose zero may mean the default.
    pub(super) fn int32(&mut self, field: &str, setting: &mut Setting<i32>) {
        let zero_is_default = self.zero_is_default;
        self.set(field, setting, |node| {
            int32_of(node).filter(|number| *number != 0 || !zero_is_default)
        });
    }

    /// A number whose zero is a zero.
    pub(super) fn exact_int32(&mut self, field: &str, setting: &mut Setting<i32>) {
        self.set(field, setting, int32_of);
    }

    /// A duration whose zero may mean the default.
    pub(super) fn duration(&mut self, field: &str, setting: &mut Setting<Duration>) {
        let zero_is_default = self.zero_is_default;
        self.set(field, setting, |node| {
            duration_of(node).filter(|time| *time != Duration::ZERO || !zero_is_default)
        });
    }

    /// A duration whose zero is a zero.
    pub(super) fn exact_duration(&mut self, field: &str, setting: &mut Setting<Duration>) {
        self.set(field, setting, duration_of);
    }

    pub(super) fn text(&mut self, field: &str, setting: &mut Setting<String>) {
        self.set(field, setting, |node| node.as_text().map(str::to_owned));
    }

    /// A text which may mean the default when empty.
    pub(super) fn text_or_default(&mut self, field: &str, setting: &mut Setting<String>) {
        let empty_is_default = self.zero_is_default;
        self.set(field, setting, |node| {
            let text = node.as_text()?;
            (!text.is_empty() || !empty_is_default).then(|| text.to_owned())
        });
    }

    pub(super) fn texts(&mut self, field: &str, setting: &mut Setting<Vec<String>>) {
        self.set(field, setting, |node| {
            let items = node.as_sequence()?.iter();
            Some(items.filter_map(Node::as_text).map(str::to_owned).collect())
        });
    }

    pub(super) fn text_map(&mut self, field: &str, setting: &mut Setting<SignalTexts>) {
        self.set(field, setting, |node| {
            let entries = node.as_mapping()?.iter();
            let pair = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
            Some(
                entries
                    .map(|entry| pair((&entry.key, raw_text(&entry.value))))
                    .collect(),
            )
        });
    }

    pub(super) fn bool_map(&mut self, field: &str, setting: &mut Setting<BTreeMap<String, bool>>) {
        self.set(field, setting, |node| {
            let entries = node.as_mapping()?.iter();
            let pair = |(key, node): (&String, &Node)| Some((key.clone(), bool_of(node)?));
            Some(
                entries
                    .filter_map(|entry| pair((&entry.key, &entry.value)))
                    .collect(),
            )
        });
    }

    /// One value out of a fixed list. The empty text may mean the default; any other unknown one is
    /// refused with the sentence.
    pub(super) fn word<T>(
        &mut self,
        field: &str,
        setting: &mut Setting<T>,
        from_word: impl FnOnce(&str) -> Option<T>,
        sentence: impl FnOnce(&str) -> String,
    ) {
        let empty_is_default = self.zero_is_default;
        self.try_set(field, setting, |assignment, problems| {
            let word = assignment.node.as_text()?;
            let value = from_word(word);
            if value.is_none() && !(word.is_empty() && empty_is_default) {
                problems.push(assignment.refuse(sentence(word)));
            }
            value
        });
    }
}

impl Assignment {
    pub(super) fn problem(&self, sentence: String) -> Problem {
        Problem::refused(&self.origin.path, sentence).at(self.origin.position)
    }

    pub(super) fn refuse(&self, sentence: String) -> Problem {
        self.problem(format!("invalid configuration: {sentence}"))
    }

    /// Where an entry or item of the value stands.
    pub(super) fn origin_of(
        &self,
        path: impl Fn(&str, &str) -> String,
        key: &str,
        node: &Node,
    ) -> Origin {
        Origin {
            path: path(&self.origin.path, key),
            position: self.origin.position.map(|_| node.position),
        }
    }
}

pub(super) fn bool_of(node: &Node) -> Option<bool> {
    match node.as_scalar() {
        Some(ScalarValue::Bool(value)) => Some(value),
        _ => None,
    }
}

pub(super) fn int32_of(node: &Node) -> Option<i32> {
    i32::try_from(int64_of(node)?).ok()
}

pub(super) fn int64_of(node: &Node) -> Option<i64> {
    node.as_scalar()?.as_integer()
}

fn duration_of(node: &Node) -> Option<Duration> {
    node.as_text()?.parse().ok()
}

/// The text of a scalar; nothing for null and for collections.
pub(super) fn raw_text(node: &Node) -> &str {
    match &node.content {
        Content::Scalar {
            value: ScalarValue::Null,
            ..
        } => "",
        Content::Scalar { text, .. } => text,
        _ => "",
    }
}
