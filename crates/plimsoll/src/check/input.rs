//! Files to documents.

use anyhow::Result;
use plimsoll_core::config::document::{self, Node};
use plimsoll_core::config::read_file;
use plimsoll_core::problem::Problem;

use crate::input::read_bytes;

use super::report::{FindingRow, Report};

/// A file as it was read.
#[derive(Debug)]
pub(super) struct File {
    /// The name as given; `-` for standard input.
    pub(super) name: String,
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

pub(super) fn read(name: &str) -> Result<File> {
    let bytes = read_bytes(name)?;
    let parsed = document::parse(&bytes);
    // For a file without documents the configuration readers have better errors: they recognise
    // common mistakes.
    let syntax = if parsed.documents.is_empty() {
        read_file(&bytes, None).problems
    } else {
        parsed.problems
    };
    let documents = parsed.documents.into_iter().enumerate();
    Ok(File {
        name: name.to_owned(),
        documents: documents
            .map(|(index, tree)| Document {
                number: index + 1,
                tree,
            })
            .collect(),
        syntax,
    })
}

impl File {
    pub(super) fn report_syntax(&self, report: &mut Report) {
        for problem in &self.syntax {
            report
                .findings
                .push(FindingRow::from_problem(&self.name, problem));
        }
    }
}
