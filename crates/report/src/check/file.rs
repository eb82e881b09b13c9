//! Files to documents.

use plimsoll_core::config::document::{self, Node};
use plimsoll_core::config::read_file;
use plimsoll_core::lint::Rule;
use plimsoll_core::problem::{Kind, Problem};

use super::report::{FindingRow, Report};

/// A file to check.
#[derive(Debug)]
pub struct File {
    /// The name as given; `-` for standard input.
    pub name: String,
    /// Whether the user has named the file, and not only its directory.
    pub(super) is_named: bool,
    pub(super) documents: Vec<Document>,
    syntax: Vec<Problem>,
    /// A correction for problems of the syntax.
    syntax_fix: &'static str,
}

/// One document of a file.
#[derive(Debug)]
pub(super) struct Document {
    /// Counted from one.
    pub(super) number: usize,
    pub(super) tree: Node,
}

impl File {
    /// Parses the content of a file.
    pub fn parse(name: &str, bytes: &[u8]) -> File {
        let parsed = document::parse(bytes);
        // For a file without documents the configuration readers have better errors: they recognise
        // common mistakes.
        let syntax = if parsed.documents.is_empty() {
            read_file(bytes, None).problems
        } else {
            parsed.problems
        };
        let documents = parsed.documents.into_iter().enumerate();
        let is_template = bytes.windows(2).any(|pair| pair == b"{{");
        File {
            name: name.to_owned(),
            is_named: true,
            syntax_fix: match is_template {
                true => "render the template first, for example with helm template",
                false => "",
            },
            documents: documents
                .map(|(index, tree)| Document {
                    number: index + 1,
                    tree,
                })
                .collect(),
            syntax,
        }
    }

    /// A file that could not be read.
    pub fn unreadable(name: &str, reason: &str) -> File {
        File {
            name: name.to_owned(),
            is_named: true,
            documents: Vec::new(),
            syntax: vec![Problem::refused("", reason)],
            syntax_fix: "",
        }
    }

    /// The same file, found in a directory.
    #[must_use]
    pub fn found(mut self) -> File {
        self.is_named = false;
        self
    }

    pub(super) fn report_syntax(&self, report: &mut Report) {
        for problem in &self.syntax {
            let mut row = FindingRow::from_problem(&self.name, problem);
            if problem.path.is_empty() && problem.kind == Kind::Refused {
                row = row.of_rule(Rule::Unreadable);
                self.syntax_fix.clone_into(&mut row.fix);
            }
            report.findings.push(row);
        }
    }
}
