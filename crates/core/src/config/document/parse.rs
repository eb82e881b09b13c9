//! Text to trees.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::problem::{Position, Problem};

use super::{Content, Entry, Node, ScalarValue};

/// The longest text that is read. Configuration is a few kilobytes.
pub const MAX_BYTES: usize = 4 << 20;

/// The deepest nesting, counted through aliases. Trees are walked by recursion.
pub const MAX_DEPTH: usize = 100;

/// The most nodes that anchors and aliases may copy. Ten lists of ten aliases each, nested ten
/// deep, would be ten billion.
pub const MAX_COPIED_NODES: usize = 100_000;

/// The documents in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The documents, without the empty ones. Those before a syntax error are complete.
    pub documents: Vec<Node>,
    /// The errors.
    pub problems: Vec<Problem>,
}

impl Parsed {
    /// The document of a file that is to hold just one, with everything that is wrong with the
    /// file so far.
    pub fn into_only_document(self) -> (Option<Node>, Vec<Problem>) {
        let mut problems = self.problems;
        if self.documents.is_empty() && problems.is_empty() {
            problems.push(Problem::required("kind", "the file is empty"));
        }
        let mut documents = self.documents.into_iter();
        let first = documents.next();
        for other in documents {
            let detail = "the file holds a second document, which would not be read";
            problems.push(Problem::forbidden("", detail).at(Some(other.position)));
        }
        (first, problems)
    }
}

/// Reads every document of a YAML or JSON text.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    if let Err(problem) = parse_into(bytes, &mut parsed.documents) {
        parsed.problems.push(problem);
    }
    parsed
}

fn parse_into(bytes: &[u8], documents: &mut Vec<Node>) -> Result<(), Problem> {
    if bytes.len() > MAX_BYTES {
        let size = bytes.len();
        let sentence = format!("yaml: {size} bytes are too many, {MAX_BYTES} are read");
        return Err(Problem::refused("", sentence));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        syntax_problem(Position { line, column: 1 }, "the text is not UTF-8")
    })?;
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) =
            event.map_err(|error| syntax_problem(position(*error.marker()), error.kind()))?;
        if let Some(document) = builder.take(event, position(span.start))? {
            documents.push(document);
        }
    }
    Ok(())
}

fn syntax_problem(position: Position, what: impl std::fmt::Display) -> Problem {
    let sentence = format!("yaml: line {}: {what}", position.line);
    Problem::refused("", sentence).at(Some(position))
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// The collections that are open, innermost last, and what anchors name.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Anchor>,
    copied_nodes: usize,
    /// Whether the last event was a scalar without quotes.
    is_plain_scalar: bool,
}

struct Open {
    position: Position,
    anchor: usize,
    items: Items,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        /// Values of `<<` keys, which fill in what the mapping itself leaves out.
        merged: Vec<Entry>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String, Position),
    /// A bare `<<`; in quotes it is a name like any other.
    Merge,
}

struct Anchor {
    node: Node,
    nodes: usize,
    height: usize,
}

/// The key whose value is merged into the mapping.
const MERGE_KEY: &str = "<<";

impl Builder {
    /// Takes the next event; gives the document that it completes.
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<Option<Node>, Problem> {
        self.is_plain_scalar = matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..));
        let node = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar_value(&text, style, tag.as_deref(), at)?;
                let node = Node::scalar(text, value, at);
                self.remember(anchor, &node, at)?;
                node
            }
            Event::Alias(anchor) => self.copy_of(anchor, at)?,
            Event::SequenceStart(_, anchor, _) => {
                return self.open(anchor, Items::Sequence(Vec::new()), at);
            }
            Event::MappingStart(_, anchor, _) => {
                let (entries, merged) = (Vec::new(), Vec::new());
                let key = None;
                return self.open(
                    anchor,
                    Items::Mapping {
                        entries,
                        merged,
                        key,
                    },
                    at,
                );
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open)?,
                None => return Ok(None),
            },
            Event::DocumentEnd => {
                self.anchors.clear();
                return Ok(None);
            }
            _ => return Ok(None),
        };
        self.place(node)
    }

    fn open(&mut self, anchor: usize, items: Items, at: Position) -> Result<Option<Node>, Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.open.push(Open {
            position: at,
            anchor,
            items,
        });
        Ok(None)
    }

    fn close(&mut self, open: Open) -> Result<Node, Problem> {
        let content = match open.items {
            Items::Sequence(items) => Content::Sequence(items),
            Items::Mapping {
                mut entries,
                merged,
                ..
            } => {
                // The mapping's own keys win, then those merged first.
                let mut known: BTreeSet<String> =
                    entries.iter().map(|entry| entry.key.clone()).collect();
                entries.extend(
                    merged
                        .into_iter()
                        .filter(|entry| known.insert(entry.key.clone())),
                );
                Content::Mapping(entries)
            }
        };
        let node = Node {
            position: open.position,
            content,
        };
        self.remember(open.anchor, &node, open.position)?;
        Ok(node)
    }

    /// Puts a finished node where it belongs: into the innermost collection, or out as a document.
    fn place(&mut self, node: Node) -> Result<Option<Node>, Problem> {
        match self.open.last_mut().map(|open| &mut open.items) {
            None => return Ok((!node.is_null()).then_some(node)),
            Some(Items::Sequence(items)) => items.push(node),
            Some(Items::Mapping {
                entries,
                merged,
                key,
            }) => match key.take() {
                None => {
                    let name = key_text(&node)?;
                    *key = Some(if self.is_plain_scalar && name == MERGE_KEY {
                        Key::Merge
                    } else {
                        Key::Name(name, node.position)
                    });
                }
                Some(Key::Merge) => merge(node, merged)?,
                Some(Key::Name(name, key_position)) => entries.push(Entry {
                    key: name,
                    key_position,
                    value: node,
                }),
            },
        }
        Ok(None)
    }

    /// Keeps a copy of an anchored node. Anchor zero is none.
    fn remember(&mut self, anchor: usize, node: &Node, at: Position) -> Result<(), Problem> {
        if anchor == 0 {
            return Ok(());
        }
        let (nodes, height) = measure(node);
        self.count_copies(nodes, at)?;
        let node = node.clone();
        self.anchors.insert(
            anchor,
            Anchor {
                node,
                nodes,
                height,
            },
        );
        Ok(())
    }

    fn copy_of(&mut self, anchor: usize, at: Position) -> Result<Node, Problem> {
        let Some(Anchor { nodes, height, .. }) = self.anchors.get(&anchor) else {
            return Err(syntax_problem(at, "an anchor contains itself"));
        };
        let (nodes, height) = (*nodes, *height);
        if self.open.len() + height > MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.count_copies(nodes, at)?;
        Ok(self.anchors[&anchor].node.clone())
    }

    fn count_copies(&mut self, nodes: usize, at: Position) -> Result<(), Problem> {
        self.copied_nodes += nodes;
        if self.copied_nodes > MAX_COPIED_NODES {
            return Err(syntax_problem(at, "document contains excessive aliasing"));
        }
        Ok(())
    }
}

fn too_deep(at: Position) -> Problem {
    syntax_problem(at, format_args!("nested more than {MAX_DEPTH} levels deep"))
}

/// Number of nodes, and of collections around each other.
fn measure(node: &Node) -> (usize, usize) {
    let fold = |(nodes, height): (usize, usize), child: &Node| {
        let (child_nodes, child_height) = measure(child);
        (nodes + child_nodes, height.max(child_height + 1))
    };
    match &node.content {
        Content::Scalar { .. } => (1, 0),
        Content::Sequence(items) => items.iter().fold((1, 1), fold),
        Content::Mapping(entries) => entries.iter().map(|entry| &entry.value).fold((1, 1), fold),
    }
}

fn scalar_value(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    at: Position,
) -> Result<ScalarValue, Problem> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => ScalarValue::of_plain(text),
            _ => ScalarValue::Text,
        });
    };
    let value = ScalarValue::of_plain(text);
    let fits = |suffix| tag.is_yaml_core_schema_tag(suffix);
    match value {
        _ if fits("str") || !tag.is_yaml_core_schema() => Ok(ScalarValue::Text),
        ScalarValue::Null if fits("null") => Ok(value),
        ScalarValue::Bool(_) if fits("bool") => Ok(value),
        ScalarValue::Int(_) | ScalarValue::Unsigned(_) if fits("int") || fits("float") => Ok(value),
        ScalarValue::Float(_) if fits("float") => Ok(value),
        _ => Err(syntax_problem(
            at,
            format_args!("{text:?} is not what its tag says"),
        )),
    }
}

/// Keys become texts as in `sigs.k8s.io/yaml`: `on` is the key `true`.
fn key_text(node: &Node) -> Result<String, Problem> {
    match &node.content {
        Content::Scalar { text, value } => match value {
            ScalarValue::Text => Ok(text.clone()),
            ScalarValue::Bool(value) => Ok(value.to_string()),
            ScalarValue::Int(number) => Ok(number.to_string()),
            ScalarValue::Unsigned(number) => Ok(number.to_string()),
            ScalarValue::Float(number) => Ok(number.to_string()),
            ScalarValue::Null => Err(syntax_problem(node.position, "a key is empty")),
        },
        _ => Err(syntax_problem(
            node.position,
            format_args!("a key is {}, it must be a text", node.describe()),
        )),
    }
}

/// The value of a `<<` key: one mapping, or several of which the first ones win.
fn merge(node: Node, merged: &mut Vec<Entry>) -> Result<(), Problem> {
    let sources = match node.content {
        Content::Sequence(items) => items,
        content => vec![Node { content, ..node }],
    };
    for source in sources {
        let Content::Mapping(entries) = source.content else {
            let what = "map merge requires map or sequence of maps as the value";
            return Err(syntax_problem(source.position, what));
        };
        merged.extend(entries);
    }
    Ok(())
}
