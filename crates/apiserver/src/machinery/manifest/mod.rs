//! Manifests before they reach a server: what the create path would answer, with every mistake and
//! not only the first.
//!
//! [`read`] decodes as far as possible and reports each wrong value and unknown field with its place
//! in the file. [`create`] takes what could be read through the create path of a dry run:
//! defaulting, admission, the kind's strategy, validation.
//!
//! Reading order: `kind` (which kind a manifest is of), `mistake` (mistakes of decoding and causes of
//! a rejection as problems), `admission` (what is known of the cluster).

mod admission;
mod kind;
mod mistake;
#[cfg(test)]
mod tests;

use plimsoll_core::config::document::Node;
use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::decoding::decode_all;
use super::write::{self, Body, BodyFormat, FieldValidation, Identity, Part, Request, Rules};
use crate::kinds::Kind;
use crate::status::Status;

use admission::FileAdmission;

pub use admission::Facts;
pub use kind::{Recognized, recognize};

/// The manager of fields that nothing stores.
const MANAGER: &str = "plimsoll-check";

/// The identity of objects that nothing stores.
const IDENTITY: Identity<'static> = Identity {
    uid: "00000000-0000-4000-8000-000000000000",
    name_suffix: "xxxxx",
};

/// The time of a creation that does not happen.
const NOW: &str = "2000-01-01T00:00:00Z";

/// An object as far as it could be read.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The kind.
    pub kind: &'static Kind,
    /// The object without what is wrong.
    pub object: Value,
    /// What is wrong, with positions.
    pub problems: Vec<Problem>,
    /// Paths whose values are not in the object, or are there under a misspelt name: what validation
    /// misses there is not missing.
    absent: Vec<String>,
}

/// What creating an object results in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Created {
    /// Why it is rejected.
    pub problems: Vec<Problem>,
    /// The warnings for the caller.
    pub warnings: Vec<String>,
}

/// Decodes a document that is of the kind.
pub fn read(tree: &Node, kind: &'static Kind) -> Manifest {
    let (object, mistakes) = match decode_all(tree, kind.group_version_kind()) {
        Ok(read) => read,
        Err(reason) => {
            let problem = Problem::refused("", reason).at(Some(tree.position));
            return Manifest {
                kind,
                object: Value::Null,
                problems: vec![problem],
                absent: Vec::new(),
            };
        }
    };
    let absent = mistakes
        .iter()
        .filter_map(|mistake| mistake::absent_path(tree, mistake))
        .collect::<Vec<_>>();
    let problems = mistakes
        .iter()
        .map(|mistake| mistake::problem(tree, mistake))
        .collect();
    Manifest {
        kind,
        object,
        problems,
        absent,
    }
}

/// Creates an object, except for storing it. Classes that the facts do not have may exist.
pub fn create(manifest: &Manifest, facts: &Facts) -> Created {
    if manifest.object.is_null() {
        return Created::default();
    }
    let kind = manifest.kind;
    let given = manifest.object["metadata"]["namespace"].as_str();
    let namespace = given.filter(|given| !given.is_empty()).unwrap_or("default");
    let request = Request {
        kind,
        part: Part::Main,
        namespace: if kind.is_namespaced() { namespace } else { "" },
        name: "",
        manager: MANAGER,
        now: NOW,
        // Unknown fields are reported by `read`.
        validation: FieldValidation::Ignore,
        rules: Rules::default(),
    };
    let bytes = manifest.object.to_string().into_bytes();
    let body = Body {
        bytes: &bytes,
        format: BodyFormat::Json,
    };
    let mut admission = FileAdmission { kind, facts };
    match write::create(&request, body, IDENTITY, &mut admission) {
        Ok(accepted) => Created {
            problems: Vec::new(),
            warnings: accepted
                .warnings
                .into_iter()
                .chain(kind.inert_warning())
                .collect(),
        },
        Err(status) => Created {
            warnings: status.warnings.clone(),
            problems: problems_of(status)
                .into_iter()
                .filter(|problem| !manifest.is_consequence(problem))
                .collect(),
        },
    }
}

impl Manifest {
    /// Whether validation only misses what could not be read.
    fn is_consequence(&self, problem: &Problem) -> bool {
        self.absent.iter().any(|absent| {
            problem
                .path
                .strip_prefix(absent.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

/// The causes of a rejection as problems.
fn problems_of(status: Status) -> Vec<Problem> {
    let causes = status.details.map(|details| details.causes);
    let causes = causes.unwrap_or_default();
    if causes.is_empty() {
        return vec![Problem::refused("", status.message)];
    }
    causes
        .into_iter()
        .map(|cause| mistake::problem_of_cause(&cause))
        .collect()
}
