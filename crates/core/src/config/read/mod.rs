//! Readers: any notation to a [`NodeConfig`] and everything that is wrong with it.
//!
//! Each reader turns its notation into [`Assignment`]s of KubeletConfiguration fields; from there
//! the way is the same for all: decode, fill in defaults, validate. No reader stops at the first
//! problem.
//!
//! Reading order: this file, `shape` and `kubelet_fields` (which fields there are), `kubelet`,
//! `flag` (which flags there are), `okd`, `command_line`.

mod command_line;
pub(crate) mod flag;
pub(crate) mod kubelet;
pub(crate) mod kubelet_fields;
mod okd;
pub(crate) mod okd_fields;
pub(crate) mod shape;
pub(crate) mod suggest;

use crate::problem::Problem;

use super::decode::{Source, decode};
use super::document::{self, Node};
use super::validate::validate;
use super::{NodeConfig, Origin, Profile};

/// A configuration and what is wrong with it. With problems it is the best that could be made of
/// the input, for advice only; a node must not start with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The configuration.
    pub config: NodeConfig,
    /// Everything wrong with it.
    pub problems: Vec<Problem>,
}

/// In which notation a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// KubeletConfiguration of kubelet.config.k8s.io/v1beta1.
    KubeletConfiguration,
    /// `NodeConfig` of v1: OKD's `node-config.yaml`.
    OkdNodeConfig,
}

/// One field set in one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    /// The path of a KubeletConfiguration field, or `--name` for what only a flag can say.
    pub(crate) field: String,
    pub(crate) node: Node,
    pub(crate) origin: Origin,
}

impl Notation {
    /// The notation of a document, by its kind or else by its looks.
    pub fn of(document: &Node) -> Option<Notation> {
        match document.get("kind").and_then(Node::as_text) {
            Some("KubeletConfiguration") => Some(Notation::KubeletConfiguration),
            Some("NodeConfig") => Some(Notation::OkdNodeConfig),
            Some(_) => None,
            None if document.get("kubeletArguments").is_some() => Some(Notation::OkdNodeConfig),
            None => None,
        }
    }

    /// The kind of document, as it names itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Notation::KubeletConfiguration => "KubeletConfiguration",
            Notation::OkdNodeConfig => "NodeConfig",
        }
    }

    /// A text about settings with the names that a file in this notation has for them: an OKD file
    /// has flags, such as `eviction-hard` for `evictionHard`.
    pub fn own_words(self, text: &str) -> String {
        if self == Notation::KubeletConfiguration {
            return text.to_owned();
        }
        let is_name = |c: char| c.is_ascii_alphanumeric();
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            // Names in lower case are also words of English.
            let is_field = word.contains(|c: char| c.is_ascii_uppercase());
            match flag::for_field(word).filter(|_| is_field) {
                Some(flag) => out.push_str(flag.name),
                None => out.push_str(word),
            }
            let next = after.find(is_name).unwrap_or(after.len());
            out.push_str(&after[..next]);
            rest = &after[next..];
        }
        out
    }

    /// The path of a setting as a file in this notation has it.
    pub fn own_path(self, path: &str) -> String {
        let name = path.split(['.', '[']).next().unwrap_or_default();
        let is_field = flag::for_field(name).is_some();
        match self {
            Notation::OkdNodeConfig if is_field => {
                format!("kubeletArguments.{}", self.own_words(path))
            }
            _ => path.to_owned(),
        }
    }

    /// The profile whose defaults a file in this notation expects.
    pub fn default_profile(self) -> Profile {
        match self {
            Notation::KubeletConfiguration => Profile::Kubernetes136,
            Notation::OkdNodeConfig => Profile::Okd39,
        }
    }
}

/// Reads a configuration file in either notation. A file of neither kind is taken for a
/// KubeletConfiguration, whose reader reports what is missing.
pub fn read_file(bytes: &[u8], profile: Option<Profile>) -> Reading {
    let parsed = document::parse(bytes);
    let notation = parsed.documents.first().and_then(Notation::of);
    let notation = notation.unwrap_or_else(|| okd::guess_notation(bytes, &parsed));
    read_as(
        notation,
        bytes,
        profile.unwrap_or(notation.default_profile()),
    )
}

/// Reads a KubeletConfiguration file.
pub fn read_kubelet_configuration(bytes: &[u8], profile: Profile) -> Reading {
    read_as(Notation::KubeletConfiguration, bytes, profile)
}

/// Reads an OKD `node-config.yaml`.
pub fn read_okd_node_config(bytes: &[u8], profile: Profile) -> Reading {
    read_as(Notation::OkdNodeConfig, bytes, profile)
}

/// Reads the arguments of a kubelet: `--flag=value`, `--flag value`, `--switch`.
pub fn read_command_line<S: AsRef<str>>(arguments: &[S], profile: Profile) -> Reading {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let mut problems = Vec::new();
    let assignments = command_line::assignments(&arguments, profile, &mut problems);
    finish(assignments, Source::Flags, profile, problems)
}

/// Reads one document of a file that holds several.
pub fn read_document(document: &Node, notation: Notation, profile: Profile) -> Reading {
    let mut problems = Vec::new();
    let assignments = match notation {
        Notation::KubeletConfiguration => kubelet::assignments(document, &mut problems),
        Notation::OkdNodeConfig => okd::assignments(document, &mut problems),
    };
    finish(assignments, notation.source(), profile, problems)
}

/// The settings of an OKD file, for conversion. What is wrong with them is reported by reading
/// the file.
pub(crate) fn okd_assignments(bytes: &[u8]) -> Vec<Assignment> {
    let parsed = document::parse(bytes);
    let document = parsed.documents.first();
    document.map_or_else(Vec::new, |document| {
        okd::assignments(document, &mut Vec::new())
    })
}

impl Notation {
    fn source(self) -> Source {
        match self {
            Notation::KubeletConfiguration => Source::File,
            Notation::OkdNodeConfig => Source::OkdFile,
        }
    }
}

fn read_as(notation: Notation, bytes: &[u8], profile: Profile) -> Reading {
    let mut parsed = document::parse(bytes);
    if notation == Notation::OkdNodeConfig {
        okd::explain_syntax_problems(bytes, &mut parsed.problems);
    }
    let (document, mut problems) = parsed.into_only_document();
    let mut reading = match document {
        None => Reading {
            config: NodeConfig::defaults(profile),
            problems: Vec::new(),
        },
        Some(document) => read_document(&document, notation, profile),
    };
    problems.append(&mut reading.problems);
    Reading {
        problems,
        ..reading
    }
}

fn finish(
    assignments: Vec<Assignment>,
    source: Source,
    profile: Profile,
    mut problems: Vec<Problem>,
) -> Reading {
    let config = decode(assignments, source, profile, &mut problems);
    problems.extend(validate(&config));
    Reading { config, problems }
}

#[cfg(test)]
mod tests;
