//! OKD's `node-config.yaml`: kind `NodeConfig`, version v1.
//!
//! Most of what matters stands under `kubeletArguments`, where each flag of the kubelet is a key
//! with a **list of texts**. Arguments win over the file's own fields, as they do in OKD.

use crate::duration::Duration;
use crate::problem::{Position, Problem};

use super::super::document::{Content, Entry, Node, Parsed, child_path, item_path};
use super::flag::{self, Flag, FlagValue, parse_values};
use super::kubelet::{check_type, collect};
use super::okd_fields::{FIELDS, kubelet_field};
use super::shape::wrong_type;
use super::suggest::closest;
use super::{Assignment, Notation, Origin};

const API_VERSION: &str = "v1";
const KIND: &str = "NodeConfig";
const ARGUMENTS: &str = "kubeletArguments";

/// Every field and flag that the document sets; later ones win.
pub(super) fn assignments(document: &Node, problems: &mut Vec<Problem>) -> Vec<Assignment> {
    // The guides show `kubeletArguments` alone; such a fragment is checked as one.
    let is_fragment = document.get("apiVersion").is_none() && document.get("kind").is_none();
    if !is_fragment {
        check_type(document, API_VERSION, KIND, problems);
    }
    let mut fields = Vec::new();
    collect(document, "", FIELDS, &mut fields, problems);
    let (arguments, fields): (Vec<_>, Vec<_>) = fields
        .into_iter()
        .partition(|field| field.field == ARGUMENTS);
    let mut assignments: Vec<Assignment> = fields.into_iter().flat_map(translate).collect();
    for argument in &arguments {
        read_arguments(&argument.node, &mut assignments, problems);
    }
    assignments
}

/// A field of the file under the kubelet's name for it. Fields that the kubelet has not, or not in
/// this form, are carried under their own. Empty texts are as good as none.
fn translate(field: Assignment) -> Option<Assignment> {
    let text = field.node.as_text();
    match field.field.as_str() {
        _ if text == Some("") => None,
        "dnsIP" => Some(Assignment {
            field: "clusterDNS".to_owned(),
            node: Node {
                position: field.node.position,
                content: Content::Sequence(vec![field.node]),
            },
            origin: field.origin,
        }),
        "podManifestConfig.fileCheckIntervalSeconds" => {
            let seconds = field.node.as_scalar()?.as_integer()?;
            Some(Assignment {
                field: "fileCheckFrequency".to_owned(),
                node: Node::text(format!("{seconds}s"), field.node.position),
                origin: field.origin,
            })
        }
        path => {
            let fits = !path.ends_with("CacheTTL")
                || text.is_some_and(|text| text.parse::<Duration>().is_ok());
            let field_name = kubelet_field(path).filter(|_| fits);
            Some(Assignment {
                field: field_name.map_or_else(|| format!("okd.{path}"), str::to_owned),
                ..field
            })
        }
    }
}

fn read_arguments(node: &Node, assignments: &mut Vec<Assignment>, problems: &mut Vec<Problem>) {
    let Some(entries) = node.as_mapping() else {
        problems.push(not_a_mapping(node));
        return;
    };
    node.report_duplicate_keys(ARGUMENTS, problems);
    for entry in entries {
        let path = child_path(ARGUMENTS, &entry.key);
        let Some(flag) = flag::find(&entry.key) else {
            problems.push(unknown_flag(&path, &entry.key, Some(entry.key_position)));
            continue;
        };
        let Some(given) = texts_of(entry, &path, problems) else {
            continue;
        };
        if let Some(assignment) = assign(flag, &given, path, problems) {
            assignments.push(assignment);
        }
    }
}

/// The assignment that a flag makes. Removed flags are kept for converting the file.
fn assign(
    flag: &Flag,
    given: &[FlagValue<'_>],
    path: String,
    problems: &mut Vec<Problem>,
) -> Option<Assignment> {
    let position = given.first()?.origin.position;
    let node = parse_values(flag, given, problems)?;
    Some(Assignment {
        field: flag.key(),
        node,
        origin: Origin { path, position },
    })
}

/// The texts of one argument. Anything but a list of texts is refused, with what to write.
fn texts_of<'a>(
    entry: &'a Entry,
    path: &str,
    problems: &mut Vec<Problem>,
) -> Option<Vec<FlagValue<'a>>> {
    let Some(items) = entry.value.as_sequence() else {
        let example = match &entry.value.content {
            Content::Scalar { text, .. } => format!("{}: [{text:?}]", entry.key),
            _ => format!("{}: [\"value\"]", entry.key),
        };
        let expectation = format!("must be a list of texts, write {example}");
        problems.push(wrong_type(&entry.value, path, &expectation));
        return None;
    };
    let mut texts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = item_path(path, index);
        match item.as_text() {
            Some(text) => texts.push(FlagValue {
                text,
                origin: Origin::in_file(path, item.position),
                position: item.position,
            }),
            None => problems.push(wrong_type(item, &path, "must be a text; put it in quotes")),
        }
    }
    Some(texts)
}

/// The problem that no flag has the name.
pub(super) fn unknown_flag(path: &str, name: &str, position: Option<Position>) -> Problem {
    let by_field = flag::for_field(name).map(|flag| flag.name);
    let meant = by_field.or_else(|| closest(name, flag::all().map(|flag| flag.name)));
    let detail = match meant {
        Some(meant) => format!("is not a valid flag, did you mean {meant:?}?"),
        None => "is not a valid flag".to_owned(),
    };
    Problem::unknown(path, detail).at(position)
}

/// `kubeletArguments` holds a text, which is what `key="5m"` on a line of its own amounts to.
fn not_a_mapping(node: &Node) -> Problem {
    match node.as_text().and_then(shell_style_argument) {
        Some((key, value)) => wrong_type(node, ARGUMENTS, &how_to_write(key, value)),
        None => wrong_type(
            node,
            ARGUMENTS,
            "must be a mapping of flags to lists of texts",
        ),
    }
}

fn how_to_write(key: &str, value: &str) -> String {
    format!("{key}={value:?} is not YAML for an argument, write {key}: [{value:?}]")
}

/// The flag and its value, if a line is written `flag=value` as in a shell.
fn shell_style_argument(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().split_once('=')?;
    let flag = flag::find(key)?;
    let is_same = flag.name.len() == key.len();
    is_same.then(|| (key, value.trim_matches(['"', '\''])))
}

/// Adds to a syntax problem the line that probably causes it: `key="5m"` between proper
/// arguments breaks the file, and the parser complains about a later line.
pub(super) fn explain_syntax_problems(bytes: &[u8], problems: &mut Vec<Problem>) {
    if problems.is_empty() {
        return;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for (index, line) in text.lines().enumerate() {
        if let Some((key, value)) = shell_style_argument(line) {
            let column = 1 + line.len() - line.trim_start().len();
            let position = Position {
                line: index + 1,
                column,
            };
            let path = child_path(ARGUMENTS, key);
            let expectation = how_to_write(key, value);
            let problem = Problem::wrong_type(path, format!("{:?}", line.trim()), expectation);
            problems.push(problem.at(Some(position)));
        }
    }
}

/// The likely notation of a file whose kind is not known, perhaps because it is malformed.
pub(super) fn guess_notation(bytes: &[u8], parsed: &Parsed) -> Notation {
    let mentions_arguments = bytes
        .windows(ARGUMENTS.len())
        .any(|window| window == ARGUMENTS.as_bytes());
    if parsed.documents.is_empty() && mentions_arguments {
        Notation::OkdNodeConfig
    } else {
        Notation::KubeletConfiguration
    }
}
