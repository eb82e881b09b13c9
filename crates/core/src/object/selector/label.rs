//! Selectors over labels.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;

use crate::problem::{Problem, aggregate, quoted};

use super::parse::{ParseError, parse};
use super::{Lookup, Operator, Requirement};

/// A selector over labels: nothing at all, or what meets every requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector(Option<Vec<Requirement>>);

/// Why an API object is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Key or values of a requirement are wrong.
    #[error("{}", aggregate(.0))]
    Requirement(Vec<Problem>),
    /// The operator is not one that objects may use.
    #[error("{} is not a valid label selector operator", quoted(.0))]
    Operator(String),
}

impl LabelSelector {
    /// Selects nothing.
    pub const fn nothing() -> LabelSelector {
        LabelSelector(None)
    }

    /// Selects everything.
    pub const fn everything() -> LabelSelector {
        LabelSelector(Some(Vec::new()))
    }

    /// Selects what meets all requirements, which are put in key order.
    ///
    /// Requirements on the same key keep the order given. Upstream's sort promises that only up
    /// to twelve requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        LabelSelector(Some(requirements))
    }

    /// Selects what has all these labels. Keys and values are not checked.
    pub fn from_set(labels: &BTreeMap<String, String>) -> LabelSelector {
        let requirements = labels
            .iter()
            .map(|(key, value)| Requirement::equals_unchecked(key, value));
        LabelSelector(Some(requirements.collect()))
    }

    /// Reads the selector of an API object: an absent one selects nothing, an empty one everything.
    ///
    /// Stops at the first wrong requirement, because upstream does and its text is shown. Matches
    /// v1.36 apimachinery/pkg/apis/meta/v1/helpers.go, `LabelSelectorAsSelector`.
    pub fn from_api(selector: Option<&ApiLabelSelector>) -> Result<LabelSelector, ObjectError> {
        let Some(selector) = selector else {
            return Ok(LabelSelector::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let values = Some(vec![value.clone()]);
            let requirement = Requirement::new("", key, Operator::Equals, values);
            requirements.push(requirement.map_err(ObjectError::Requirement)?);
        }
        for expression in selector.match_expressions.iter().flatten() {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(ObjectError::Operator(other.to_owned())),
            };
            let values = expression
                .values
                .clone()
                .filter(|values| !values.is_empty());
            let requirement = Requirement::new("", &expression.key, operator, values);
            requirements.push(requirement.map_err(ObjectError::Requirement)?);
        }
        Ok(LabelSelector::new(requirements))
    }

    /// Selects what both select.
    #[must_use]
    pub fn and(self, other: &LabelSelector) -> LabelSelector {
        match (self.0, &other.0) {
            (Some(mut requirements), Some(others)) => {
                requirements.extend(others.iter().cloned());
                LabelSelector::new(requirements)
            }
            _ => LabelSelector::nothing(),
        }
    }

    /// Whether the labels are selected.
    pub fn matches(&self, labels: &impl Lookup) -> bool {
        match &self.0 {
            None => false,
            Some(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether it selects everything for lack of requirements.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements in key order; `None` if nothing is selected.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        self.0.as_deref()
    }
}

/// As a selector string; empty both for nothing and for everything.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().flatten().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl FromStr for LabelSelector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<LabelSelector, ParseError> {
        Ok(LabelSelector::new(parse(text)?))
    }
}

/// The selector of an API object as tables show it.
pub fn format_label_selector(selector: Option<&ApiLabelSelector>) -> String {
    match LabelSelector::from_api(selector) {
        Err(_) => "<error>".to_owned(),
        Ok(selector) => match selector.to_string() {
            text if text.is_empty() => "<none>".to_owned(),
            text => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect()
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
        let nothing = LabelSelector::from_api(None).unwrap();
        assert!(!nothing.matches(&labels(&[])));
        assert!(!nothing.is_empty());
        let everything = LabelSelector::from_api(Some(&ApiLabelSelector::default())).unwrap();
        assert!(everything.matches(&labels(&[("a", "b")])));
        assert!(everything.is_empty());
        assert_eq!(format_label_selector(None), "<none>");
    }

    #[test]
    fn labels_and_expressions_must_all_match() {
        let selector = ApiLabelSelector {
            match_labels: Some(labels(&[("tier", "web")])),
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "env".to_owned(),
                operator: "NotIn".to_owned(),
                values: Some(vec!["prod".to_owned(), "dev".to_owned()]),
            }]),
        };
        assert_eq!(
            format_label_selector(Some(&selector)),
            "env notin (dev,prod),tier=web"
        );
        let selector = LabelSelector::from_api(Some(&selector)).unwrap();
        assert!(selector.matches(&labels(&[("tier", "web")])));
        assert!(!selector.matches(&labels(&[("tier", "web"), ("env", "dev")])));
        assert!(!selector.matches(&labels(&[("env", "test")])));
    }

    #[test]
    fn operators_of_node_selectors_are_refused_in_label_selectors() {
        let selector = ApiLabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "n".to_owned(),
                operator: "Gt".to_owned(),
                values: Some(vec!["1".to_owned()]),
            }]),
            ..ApiLabelSelector::default()
        };
        assert_eq!(
            LabelSelector::from_api(Some(&selector))
                .unwrap_err()
                .to_string(),
            "\"Gt\" is not a valid label selector operator"
        );
        assert_eq!(format_label_selector(Some(&selector)), "<error>");
    }
}
