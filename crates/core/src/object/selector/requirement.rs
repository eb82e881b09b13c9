//! One demand on one label.

use std::fmt;

use crate::object::syntax::{check_label_key, check_label_value};
use crate::problem::Problem;

use super::Lookup;

/// How a label and the values of a requirement relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is one of the values.
    In,
    /// The label is none of the values, or is missing.
    NotIn,
    /// The label is the value, written `=`.
    Equals,
    /// The label is the value, written `==`.
    DoubleEquals,
    /// The label is not the value, or is missing.
    NotEquals,
    /// The label is there, with any value.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is an integer above the value.
    GreaterThan,
    /// The label is an integer below the value.
    LessThan,
}

/// One demand on one label, checked when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
    /// The value of `GreaterThan` and `LessThan` as a number; zero for others.
    bound: i64,
}

impl Requirement {
    /// Checks and makes a requirement that stands at `path` (empty if nowhere).
    ///
    /// `None` and an empty list mean the same, but print differently in problems. Matches v1.36
    /// apimachinery/pkg/labels/selector.go, `NewRequirement`.
    pub fn new(
        path: &str,
        key: &str,
        operator: Operator,
        values: Option<Vec<String>>,
    ) -> Result<Requirement, Vec<Problem>> {
        let mut problems = Vec::new();
        let values_path = child(path, "values");
        problems.extend(key_problem(&child(path, "key"), key));
        let listed = values.as_deref().unwrap_or_default();
        if let Some(rule) = broken_count_rule(operator, listed.len()) {
            problems.push(Problem::invalid_list(&values_path, values.as_deref(), rule));
        }
        let mut bound = 0;
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in listed.iter().enumerate() {
                match value.parse() {
                    Ok(number) => bound = number,
                    Err(_) => problems.push(Problem::invalid(
                        format!("{values_path}[{index}]"),
                        value,
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    )),
                }
            }
        }
        for (index, value) in listed.iter().enumerate() {
            let broken = check_label_value(value);
            if !broken.is_empty() {
                let path = format!("{values_path}[{index}][{key}]");
                problems.push(Problem::invalid(path, value, broken.join("; ")));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Requirement {
            key: key.to_owned(),
            operator,
            values: values.unwrap_or_default(),
            bound,
        })
    }

    /// A demand for one value, without any check: the selector may come from an object that is
    /// stored already.
    pub(super) fn equals_unchecked(key: &str, value: &str) -> Requirement {
        Requirement {
            key: key.to_owned(),
            operator: Operator::Equals,
            values: vec![value.to_owned()],
            bound: 0,
        }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How label and values relate.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, in the order given.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the labels meet the demand.
    pub fn matches(&self, labels: &impl Lookup) -> bool {
        let label = labels.lookup(&self.key);
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        let number = |label: &str| label.parse::<i64>().ok();
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                label.is_some_and(is_listed)
            }
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label.and_then(number).is_some_and(|n| n > self.bound),
            Operator::LessThan => label.and_then(number).is_some_and(|n| n < self.bound),
        }
    }
}

/// As in a selector string; values are sorted.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Validates a label key at `path`.
pub(super) fn key_problem(path: &str, key: &str) -> Option<Problem> {
    let broken = check_label_key(key);
    (!broken.is_empty()).then(|| Problem::invalid(path, key, broken.join("; ")))
}

fn broken_count_rule(operator: Operator, count: usize) -> Option<&'static str> {
    let (is_right, rule) = match operator {
        Operator::In | Operator::NotIn => (
            count > 0,
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => (
            count == 1,
            "exact-match compatibility requires one single value",
        ),
        Operator::Exists | Operator::DoesNotExist => (
            count == 0,
            "values set must be empty for exists and does not exist",
        ),
        Operator::GreaterThan | Operator::LessThan => (
            count == 1,
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
    };
    (!is_right).then_some(rule)
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::aggregate;

    fn error(operator: Operator, values: Option<&[&str]>) -> String {
        let values = values.map(|values| values.iter().map(|v| (*v).to_owned()).collect());
        aggregate(&Requirement::new("at[0]", "app", operator, values).unwrap_err())
    }

    #[test]
    fn each_operator_takes_its_number_of_values() {
        assert_eq!(
            error(Operator::In, None),
            "at[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be \
             empty"
        );
        assert_eq!(
            error(Operator::NotIn, Some(&[])),
            "at[0].values: Invalid value: []: for 'in', 'notin' operators, values set can't be \
             empty"
        );
        assert_eq!(
            error(Operator::Exists, Some(&["x"])),
            "at[0].values: Invalid value: [\"x\"]: values set must be empty for exists and does \
             not exist"
        );
        assert_eq!(
            error(Operator::Equals, Some(&["x", "y"])),
            "at[0].values: Invalid value: [\"x\",\"y\"]: exact-match compatibility requires one \
             single value"
        );
    }

    #[test]
    fn bound_that_is_neither_number_nor_label_is_two_problems() {
        let error = error(Operator::GreaterThan, Some(&["-"]));
        assert!(
            error.starts_with("[at[0].values[0]: Invalid value: \"-\": for 'Gt'"),
            "{error}"
        );
        assert!(
            error.contains(", at[0].values[0][app]: Invalid value: \"-\": a valid label"),
            "{error}"
        );
    }
}
