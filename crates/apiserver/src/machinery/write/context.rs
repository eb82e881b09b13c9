//! The context of a write: its request, admission and warnings.

use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::{Accepted, Admission, Request, name_of};
use crate::machinery::decoding::read_configuration;
use crate::status::Status;

/// A write in progress.
pub(super) struct WriteContext<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) admission: &'a mut dyn Admission,
    /// Warnings for the caller, whether or not the request is rejected.
    pub(super) warnings: Vec<String>,
    pub(super) input: Input<'a>,
}

/// The object before decoding: the canonical form has no empty lists and maps, but Go's validation
/// prints them.
pub(super) enum Input<'a> {
    /// A body.
    Body(&'a [u8]),
    /// The result of a patch.
    Patched(Value),
    /// The server made the change.
    Nothing,
}

impl<'a> WriteContext<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        admission: &'a mut dyn Admission,
        input: Input<'a>,
    ) -> WriteContext<'a> {
        WriteContext {
            request,
            admission,
            warnings: Vec::new(),
            input,
        }
    }

    /// The 422 for an invalid object.
    pub(super) fn check(&self, object: &Value, problems: Vec<Problem>) -> Result<(), Status> {
        if problems.is_empty() {
            return Ok(());
        }
        let mut problems = problems;
        self.show_empty_values(&mut problems);
        Err(Status::invalid(
            self.request.kind,
            name_of(object),
            &problems,
        ))
    }

    /// Runs validating admission.
    pub(super) fn admit(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        self.admission.check(object, old)?;
        self.warnings.extend(self.admission.warnings());
        Ok(())
    }

    /// The result with its warnings.
    pub(super) fn finish(self, outcome: Result<Accepted, Status>) -> Result<Accepted, Status> {
        match outcome {
            Ok(accepted) => Ok(Accepted {
                warnings: self.warnings,
                ..accepted
            }),
            Err(status) => Err(Status {
                warnings: self.warnings,
                ..status
            }),
        }
    }

    fn show_empty_values(&self, problems: &mut [Problem]) {
        let mut missing = problems
            .iter_mut()
            .filter(|problem| problem.value == "null")
            .peekable();
        if missing.peek().is_none() {
            return;
        }
        let given = match &self.input {
            Input::Body(bytes) => read_configuration(bytes).map(|read| read.value),
            Input::Patched(value) => Ok(value.clone()),
            Input::Nothing => return,
        };
        let given = given.unwrap_or_default();
        for problem in missing {
            match value_at(&given, &problem.path) {
                Some(Value::Object(members)) if members.is_empty() => {
                    "{}".clone_into(&mut problem.value);
                }
                Some(Value::Array(items)) if items.is_empty() => {
                    "[]".clone_into(&mut problem.value);
                }
                _ => {}
            }
        }
    }
}

/// The value at a path such as `spec.containers[0].env`.
fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let parts = path
        .split(['.', '['])
        .map(|part| part.trim_end_matches(']'));
    parts
        .into_iter()
        .try_fold(value, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            _ => value.get(part),
        })
}
