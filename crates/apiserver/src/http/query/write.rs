//! Options of creates, updates and patches, and of tables.
//!
//! Matches v1.36 apimachinery/pkg/apis/meta/v1/validation/validation.go.

use plimsoll_core::problem::{Kind as ProblemKind, Problem, is_printable};

use super::{Malformed, OptionsError, Query};
use crate::machinery::decoding::FieldValidation;
use crate::machinery::patch::PatchType;
use crate::machinery::table::IncludeObject;

/// Write options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The field manager; empty: the client's name is used.
    pub field_manager: String,
    /// Whether this is a dry run.
    pub is_dry_run: bool,
    /// The handling of unknown and duplicate fields.
    pub field_validation: FieldValidation,
}

/// Patch options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// The options that a patch shares with other writes.
    pub write: WriteOptions,
    /// Whether to force conflicts.
    pub force: bool,
}

impl WriteOptions {
    /// Parses the options of a create.
    pub fn for_create(query: &Query) -> Result<WriteOptions, OptionsError> {
        WriteOptions::from_query(query, "CreateOptions")
    }

    /// Parses the options of an update.
    pub fn for_update(query: &Query) -> Result<WriteOptions, OptionsError> {
        WriteOptions::from_query(query, "UpdateOptions")
    }

    fn from_query(query: &Query, kind: &'static str) -> Result<WriteOptions, OptionsError> {
        let mut problems = Vec::new();
        let options = WriteOptions::read(query, &mut problems);
        invalid_unless_empty(kind, problems)?;
        Ok(options)
    }

    fn read(query: &Query, problems: &mut Vec<Problem>) -> WriteOptions {
        let field_manager = query.text("fieldManager");
        check_field_manager(&field_manager, "fieldManager", problems);
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        problems.extend(dry_run_problem(&dry_run));
        let field_validation = match query.first("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                problems.push(Problem {
                    kind: ProblemKind::NotSupported,
                    ..Problem::invalid("fieldValidation", other, supported)
                });
                FieldValidation::Warn
            }
        };
        WriteOptions {
            field_manager,
            is_dry_run: !dry_run.is_empty(),
            field_validation,
        }
    }
}

impl PatchOptions {
    /// Parses the options of a patch.
    pub fn from_query(query: &Query, patch: PatchType) -> Result<PatchOptions, OptionsError> {
        let force = query.flag("force");
        let mut problems = Vec::new();
        if patch != PatchType::Apply && force.is_some() {
            let detail = "may not be specified for non-apply patch";
            problems.push(Problem::forbidden("force", detail));
        }
        if patch == PatchType::Apply && query.text("fieldManager").is_empty() {
            problems.push(Problem::required(
                "fieldManager",
                "is required for apply patch",
            ));
        }
        let write = WriteOptions::read(query, &mut problems);
        invalid_unless_empty("PatchOptions", problems)?;
        Ok(PatchOptions {
            write,
            force: force.unwrap_or_default(),
        })
    }
}

pub(super) fn invalid_unless_empty(
    kind: &'static str,
    problems: Vec<Problem>,
) -> Result<(), OptionsError> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(OptionsError::Invalid { kind, problems })
    }
}

const MAX_FIELD_MANAGER_BYTES: usize = 128;

/// The name of a manager is short and printable.
fn check_field_manager(manager: &str, path: &str, problems: &mut Vec<Problem>) {
    if manager.len() > MAX_FIELD_MANAGER_BYTES {
        problems.push(Problem::too_long(path, MAX_FIELD_MANAGER_BYTES));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let code = u32::from(c);
        let detail = format!("invalid character U+{code:04X} (at position {at})");
        problems.push(Problem::invalid(path, manager, detail));
    }
}

/// Only `All` is possible.
pub(super) fn dry_run_problem(values: &[&str]) -> Option<Problem> {
    let is_possible = values.iter().all(|value| *value == "All");
    (!is_possible).then(|| Problem {
        kind: ProblemKind::NotSupported,
        ..Problem::invalid_bare(
            "dryRun",
            serde_json::json!(values),
            "supported values: \"All\"",
        )
    })
}

/// Parses what the rows of a Table contain of their objects.
pub fn include_object(query: &Query) -> Result<IncludeObject, Malformed> {
    match query.first("includeObject").unwrap_or_default() {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "Object" => Ok(IncludeObject::Object),
        "None" => Ok(IncludeObject::None),
        other => {
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            let value = serde_json::json!(other);
            let problem = Problem::invalid_bare("includeObject", value, detail);
            Err(Malformed::Table(problem))
        }
    }
}
