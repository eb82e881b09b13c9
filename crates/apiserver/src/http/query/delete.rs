//! Options of deletes, from the address or from a body.
//!
//! Matches v1.36 `ValidateDeleteOptions` in apimachinery/pkg/apis/meta/v1/validation and the
//! conversion from `url.Values` in apimachinery/pkg/apis/meta/v1/conversion.go.

use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::write::{dry_run_problem, invalid_unless_empty};
use super::{OptionsError, Query};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

/// What the object must be for the delete to happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The identity it must have.
    pub uid: Option<String>,
    /// The version it must have.
    pub resource_version: Option<String>,
}

/// How an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How long it may take to go; `None`: as the kind has it.
    pub grace_period_secs: Option<i64>,
    /// What the object must be.
    pub preconditions: Preconditions,
    /// The old way to say what happens to dependents.
    pub orphan_dependents: Option<bool>,
    /// What happens to dependents; `None`: as the kind has it.
    pub propagation: Option<Propagation>,
    /// Whether all is done but the storing.
    pub is_dry_run: bool,
    /// Whether an object that cannot be read is removed unseen.
    pub ignores_read_error: bool,
}

const IGNORES_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Reads the options of a request without a body.
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

    /// Takes the options from a decoded body; what is of the wrong type there was refused when the
    /// body was decoded and counts as absent here.
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

    /// The removal of an object unseen goes with no other option.
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

    /// The refusal of the removal unseen, where it has no place.
    pub fn misplaced_read_error(&self, detail: &str) -> Option<Problem> {
        self.ignores_read_error
            .then(|| Problem::invalid_bare(IGNORES_READ_ERROR, true, detail))
    }
}
