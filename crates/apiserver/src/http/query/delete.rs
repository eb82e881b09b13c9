//! Delete options, from the query or from a body.
//!
//! Matches v1.36 `ValidateDeleteOptions` in apimachinery/pkg/apis/meta/v1/validation and the
//! conversion from `url.Values` in apimachinery/pkg/apis/meta/v1/conversion.go.

use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::write::{dry_run_problem, invalid_unless_empty};
use super::{OptionsError, Query};

/// The propagation policy for dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are orphaned.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// Preconditions of the delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The required uid.
    pub uid: Option<String>,
    /// The required version.
    pub resource_version: Option<String>,
}

/// Delete options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The grace period; `None`: the default of the kind.
    pub grace_period_secs: Option<i64>,
    /// The preconditions.
    pub preconditions: Preconditions,
    /// The deprecated form of the propagation policy.
    pub orphan_dependents: Option<bool>,
    /// The propagation policy; `None`: the default of the kind.
    pub propagation: Option<Propagation>,
    /// Whether this is a dry run.
    pub is_dry_run: bool,
    /// Whether to remove an object that cannot be decoded, without checks.
    pub ignores_read_error: bool,
}

const IGNORES_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Parses the options of a request without a body.
    pub fn from_query(query: &Query) -> Result<DeleteOptions, OptionsError> {
        let text = |name: &str| query.first(name).filter(|text| !text.is_empty());
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let options = DeleteOptions {
            grace_period_secs: query.integer("gracePeriodSeconds")?,
            preconditions: Preconditions {
                uid: text("uid").map(str::to_owned),
                resource_version: text("resourceVersion").map(str::to_owned),
            },
            orphan_dependents: query.flag("orphanDependents"),
            propagation: None,
            is_dry_run: false,
            ignores_read_error: query.flag(IGNORES_READ_ERROR).unwrap_or_default(),
        };
        options.checked(query.first("propagationPolicy"), &dry_run)
    }

    /// Takes the options from a decoded body; values of the wrong type were rejected when the
    /// body was decoded and count as absent here.
    pub fn from_body(body: &Value) -> Result<DeleteOptions, OptionsError> {
        let text = |name: &str| Some(body["preconditions"].get(name)?.as_str()?.to_owned());
        let dry_run = body["dryRun"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let dry_run: Vec<&str> = dry_run.iter().filter_map(Value::as_str).collect();
        let options = DeleteOptions {
            grace_period_secs: body["gracePeriodSeconds"].as_i64(),
            preconditions: Preconditions {
                uid: text("uid"),
                resource_version: text("resourceVersion"),
            },
            orphan_dependents: body["orphanDependents"].as_bool(),
            propagation: None,
            is_dry_run: false,
            ignores_read_error: body[IGNORES_READ_ERROR].as_bool().unwrap_or_default(),
        };
        options.checked(body["propagationPolicy"].as_str(), &dry_run)
    }

    fn checked(
        mut self,
        policy: Option<&str>,
        dry_run: &[&str],
    ) -> Result<DeleteOptions, OptionsError> {
        let path = "propagationPolicy";
        let mut problems = Vec::new();
        if let Some(policy) = policy.filter(|_| self.orphan_dependents.is_some()) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let value = serde_json::json!(policy);
            problems.push(Problem::invalid_bare(path, value, detail));
        }
        self.propagation = match policy {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                problems.push(Problem::not_supported(path, other, &supported));
                None
            }
        };
        problems.extend(dry_run_problem(dry_run));
        self.is_dry_run = !dry_run.is_empty();
        problems.extend(self.read_error_problems());
        invalid_unless_empty("DeleteOptions", problems)?;
        Ok(self)
    }

    /// The unsafe removal cannot be combined with other options.
    fn read_error_problems(&self) -> Vec<Problem> {
        let others = [
            (".dryRun", self.is_dry_run),
            (".propagationPolicy", self.propagation.is_some()),
            (".orphanDependents", self.orphan_dependents.is_some()),
            (".gracePeriodSeconds", self.grace_period_secs.is_some()),
            (
                ".preconditions",
                self.preconditions != Preconditions::default(),
            ),
        ];
        let set = others
            .into_iter()
            .filter(|(_, is_set)| *is_set && self.ignores_read_error);
        let problem = |(field, _)| {
            let detail = format!("cannot be set together with {field}");
            Problem::invalid_bare(IGNORES_READ_ERROR, true, detail)
        };
        set.map(problem).collect()
    }

    /// The error for the unsafe removal of a readable object.
    pub fn misplaced_read_error(&self, detail: &str) -> Option<Problem> {
        self.ignores_read_error
            .then(|| Problem::invalid_bare(IGNORES_READ_ERROR, true, detail))
    }
}
