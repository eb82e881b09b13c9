//! Files to documents.

use plimsoll_core::config::document::{self, Node};
use plimsoll_core::config::read_file;
use plimsoll_core::problem::Problem;

use super::report::{FindingRow, Report};

/// A file to check.
#[derive(Debug)]
pub struct File {
    /// The name as given; `-` for standard input.
    pub name: String,
    pub(super) documents: Vec<Document>,
    syntax: Vec<Problem>,
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
        File {
            name: name.to_owned(),
            documents: documents
                .map(|(index, tree)| Document {
                    number: index + 1,
                    tree,
                })
                .collect(),
            syntax,
        }
    }

    pub(super) fn report_syntax(&self, report: &mut Report) {
        for problem in &self.syntax {
            report
                .findings
                .push(FindingRow::from_problem(&self.name, problem));
        }
    }
}
