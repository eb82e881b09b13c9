//! The texts given to a flag, as the tree its field would have in a file.

use std::collections::BTreeMap;

use crate::duration::Duration;
use crate::problem::{Position, Problem};
use crate::threshold::flag::{Separator, parse_pairs};

use super::super::super::document::{Content, Entry, Node, ScalarValue};
use super::super::super::{Origin, parse_taint};
use super::{Flag, Syntax};

/// One text given to a flag.
#[derive(Clone, Debug)]
pub(crate) struct FlagValue<'a> {
    pub(crate) text: &'a str,
    pub(crate) origin: Origin,
    pub(crate) position: Position,
}

impl FlagValue<'_> {
    /// The kubelet's complaint about a flag's text.
    fn refuse(&self, flag: &Flag, reason: impl std::fmt::Display) -> Problem {
        let (text, name) = (self.text, flag.name);
        let sentence = format!("invalid argument {text:?} for \"--{name}\" flag: {reason}");
        Problem::refused(&self.origin.path, sentence).at(self.origin.position)
    }

    fn node(&self, content: Content) -> Node {
        Node {
            position: self.position,
            content,
        }
    }
}

/// Everything given to the flag as one tree; `None` where nothing could be read. As for the
/// kubelet, later texts add to maps and lists and replace anything else.
pub(crate) fn parse_values(
    flag: &Flag,
    given: &[FlagValue<'_>],
    problems: &mut Vec<Problem>,
) -> Option<Node> {
    let last = given.last()?;
    if !flag.syntax.accumulates() {
        if given.len() > 1 {
            problems.push(twice(&last.origin, flag.name, last.text));
        }
        return parse_scalar(flag, last)
            .map_err(|problem| problems.push(problem))
            .ok();
    }
    let first = given.first().unwrap_or(last);
    let content = match flag.syntax {
        Syntax::List | Syntax::Taints | Syntax::ReservedMemory => {
            let mut items = Vec::new();
            for text in given {
                problems.extend(add_items(flag, text, &mut items).err());
            }
            Content::Sequence(items)
        }
        Syntax::Headers => {
            let mut headers = Entries::default();
            for text in given {
                problems.extend(add_headers(flag, text, &mut headers).err());
            }
            Content::Mapping(headers.entries)
        }
        _ => {
            let mut pairs = Entries::default();
            for text in given {
                let result = add_pairs(flag, text, &mut pairs, problems);
                problems.extend(result.err());
            }
            Content::Mapping(pairs.entries)
        }
    };
    Some(first.node(content))
}

/// Entries in their order, found by key.
#[derive(Default)]
struct Entries {
    entries: Vec<Entry>,
    indexes: BTreeMap<String, usize>,
}

impl Entries {
    fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        let index = *self.indexes.get(key)?;
        self.entries.get_mut(index)
    }

    fn push(&mut self, key: &str, value: Node) {
        self.indexes.insert(key.to_owned(), self.entries.len());
        self.entries.push(Entry {
            key: key.to_owned(),
            key_position: value.position,
            value,
        });
    }
}

impl Syntax {
    /// Whether a second text adds to the first.
    fn accumulates(self) -> bool {
        !matches!(
            self,
            Syntax::Bool | Syntax::Int32 | Syntax::Int64 | Syntax::Duration | Syntax::Text
        )
    }
}

fn twice(origin: &Origin, key: &str, text: &str) -> Problem {
    let mut problem = Problem::duplicate(&origin.path, key);
    problem.detail = format!("given twice, the last one, {text:?}, wins");
    problem.at(origin.position)
}

fn parse_scalar(flag: &Flag, given: &FlagValue<'_>) -> Result<Node, Problem> {
    let text = given.text;
    let value = match flag.syntax {
        Syntax::Bool => ScalarValue::Bool(parse_bool(text).ok_or_else(|| {
            let reason = format!("strconv.ParseBool: parsing {text:?}: invalid syntax");
            given.refuse(flag, reason)
        })?),
        Syntax::Int32 => ScalarValue::Int(parse_int(flag, given, i64::from(i32::MAX))?),
        Syntax::Int64 => ScalarValue::Int(parse_int(flag, given, i64::MAX)?),
        Syntax::Duration => match text.parse::<Duration>() {
            Ok(_) => ScalarValue::Text,
            Err(error) => return Err(given.refuse(flag, error)),
        },
        _ => ScalarValue::Text,
    };
    Ok(Node::scalar(text, value, given.position))
}

fn parse_int(flag: &Flag, given: &FlagValue<'_>, max: i64) -> Result<i64, Problem> {
    let text = given.text;
    let refuse = |reason| {
        let reason = format!("strconv.ParseInt: parsing {text:?}: {reason}");
        given.refuse(flag, reason)
    };
    match ScalarValue::of_plain(text) {
        ScalarValue::Int(number) if (-max - 1..=max).contains(&number) => Ok(number),
        ScalarValue::Int(_) | ScalarValue::Unsigned(_) => Err(refuse("value out of range")),
        _ => Err(refuse("invalid syntax")),
    }
}

/// The values of Go's `strconv.ParseBool`, which does not take `yes`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn add_items(flag: &Flag, given: &FlagValue<'_>, items: &mut Vec<Node>) -> Result<(), Problem> {
    if given.text.is_empty() {
        return Ok(());
    }
    match flag.syntax {
        Syntax::Taints => {
            for text in given.text.split(',') {
                let taint = parse_taint(text).map_err(|error| given.refuse(flag, error))?;
                let pairs = [
                    ("key", taint.key),
                    ("value", taint.value),
                    ("effect", taint.effect.as_str().to_owned()),
                ];
                items.push(given.node(Content::Mapping(text_entries(given, pairs))));
            }
        }
        Syntax::ReservedMemory => {
            for text in given.text.split(';') {
                items.push(parse_reserved_memory(flag, given, text)?);
            }
        }
        _ => items.extend(
            given
                .text
                .split(',')
                .map(|item| Node::text(item, given.position)),
        ),
    }
    Ok(())
}

fn add_pairs(
    flag: &Flag,
    given: &FlagValue<'_>,
    pairs: &mut Entries,
    problems: &mut Vec<Problem>,
) -> Result<(), Problem> {
    for (key, text) in split_pairs(flag, given)? {
        let mut value = Node::text(text.as_str(), given.position);
        if flag.syntax == Syntax::BoolPairs {
            let Some(flag_value) = parse_bool(&text) else {
                let cause = format!("strconv.ParseBool: parsing {text:?}: invalid syntax");
                let reason = format!("invalid value of {key}: {text}, err: {cause}");
                return Err(given.refuse(flag, reason));
            };
            value = Node::scalar(text.as_str(), ScalarValue::Bool(flag_value), given.position);
        }
        match pairs.get_mut(&key) {
            Some(entry) => {
                problems.push(twice(&given.origin, &key, &text));
                entry.key_position = given.position;
                entry.value = value;
            }
            None => pairs.push(&key, value),
        }
    }
    Ok(())
}

fn split_pairs(flag: &Flag, given: &FlagValue<'_>) -> Result<Vec<(String, String)>, Problem> {
    let text = given.text;
    let separator = match flag.syntax {
        Syntax::Pairs(separator) => separator,
        Syntax::Labels => {
            let labels = text.split(',').filter(|label| !label.is_empty());
            let pairs = labels.map(|label| label.split_once('=').unwrap_or((label, "")));
            let trimmed = pairs.map(|(key, value)| (key.trim().into(), value.trim().into()));
            return Ok(trimmed.collect());
        }
        Syntax::SinglePair => {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| given.refuse(flag, "malformed pair, expect string=string"))?;
            return Ok(vec![(key.trim().to_owned(), value.trim().to_owned())]);
        }
        _ => Separator::Equals,
    };
    parse_pairs(text, separator).map_err(|error| match flag.syntax {
        Syntax::BoolPairs => given.refuse(flag, "malformed pair, expect string=bool"),
        _ => given.refuse(flag, error),
    })
}

/// Equal names add up: each header is a list.
fn add_headers(flag: &Flag, given: &FlagValue<'_>, headers: &mut Entries) -> Result<(), Problem> {
    for pair in given.text.split(',').filter(|pair| !pair.is_empty()) {
        let (key, text) = pair
            .split_once(':')
            .ok_or_else(|| given.refuse(flag, "malformed pair, expect string:string"))?;
        let (key, item) = (key.trim(), Node::text(text.trim(), given.position));
        match headers.get_mut(key).map(|entry| &mut entry.value.content) {
            Some(Content::Sequence(items)) => items.push(item),
            _ => headers.push(key, given.node(Content::Sequence(vec![item]))),
        }
    }
    Ok(())
}

/// `0:memory=1Gi,hugepages-2Mi=4Mi`. Matches v1.36 pkg/util/flag/flags.go.
fn parse_reserved_memory(flag: &Flag, given: &FlagValue<'_>, text: &str) -> Result<Node, Problem> {
    let incorrect = || {
        let format = "expected numaNodeID:type=quantity[,type=quantity...]";
        let reason = format!("the reserved memory has incorrect format, {format}, got {text}");
        given.refuse(flag, reason)
    };
    let (numa_node, limits) = text.split_once(':').ok_or_else(incorrect)?;
    if limits.contains(':') {
        return Err(incorrect());
    }
    let number = numa_node.parse::<i32>().map_err(|_| {
        let reason =
            format!("failed to convert the NUMA node ID, expected integer, got {numa_node}");
        given.refuse(flag, reason)
    })?;
    let mut pairs = Vec::new();
    for limit in limits.split(',') {
        match limit.split_once('=') {
            Some((name, quantity)) if !quantity.contains('=') => {
                pairs.push((name, quantity.to_owned()));
            }
            _ => {
                let expected = "expected type=quantity";
                let reason =
                    format!("the reserved limit has incorrect value, {expected}, got {limit}");
                return Err(given.refuse(flag, reason));
            }
        }
    }
    let limits = given.node(Content::Mapping(text_entries(given, pairs)));
    let numa_node = Node::scalar(
        numa_node,
        ScalarValue::Int(i64::from(number)),
        given.position,
    );
    let entry = |key: &str, value| Entry {
        key: key.to_owned(),
        key_position: given.position,
        value,
    };
    let entries = vec![entry("numaNode", numa_node), entry("limits", limits)];
    Ok(given.node(Content::Mapping(entries)))
}

fn text_entries<'a>(
    given: &FlagValue<'_>,
    pairs: impl IntoIterator<Item = (&'a str, String)>,
) -> Vec<Entry> {
    let entry = |(key, text): (&str, String)| Entry {
        key: key.to_owned(),
        key_position: given.position,
        value: Node::text(text, given.position),
    };
    pairs.into_iter().map(entry).collect()
}
