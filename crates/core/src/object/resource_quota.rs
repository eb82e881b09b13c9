//! The fields of a ResourceQuota that decisions read.

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};

use crate::problem::Problem;
use crate::resources::ResourceList;

use super::parse_resource_list;

/// A ResourceQuota, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaView {
    /// Its name.
    pub name: String,
    /// The hard limits, as the status has them.
    pub hard: ResourceList,
    /// The usage, as the status has it.
    pub used: ResourceList,
    /// Which objects it counts: those that meet all of these.
    pub scopes: Vec<Scope>,
}

/// A condition on objects that a quota counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The name: `BestEffort`, `PriorityClass`, ….
    pub name: String,
    /// How the object's value is compared; only `PriorityClass` has values.
    pub operator: ScopeOperator,
    /// The values it is compared with.
    pub values: Vec<String>,
}

/// How a scope compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeOperator {
    /// The value is among those listed.
    In,
    /// It is not, or there is none.
    NotIn,
    /// There is one.
    Exists,
    /// There is none.
    DoesNotExist,
}

impl QuotaView {
    /// Parses a quota; malformed quantities and scopes are all reported.
    pub fn from_api(quota: &ResourceQuota) -> Result<QuotaView, Vec<Problem>> {
        let mut problems = Vec::new();
        let status = quota.status.as_ref();
        let mut parse = |field, list| parse_resource_list(field, list, &mut problems);
        let hard = parse("status.hard", status.and_then(|s| s.hard.as_ref()));
        let used = parse("status.used", status.and_then(|s| s.used.as_ref()));
        let scopes = quota
            .spec
            .as_ref()
            .map(|spec| parse_scopes(spec, &mut problems))
            .unwrap_or_default();
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(QuotaView {
            name: quota.metadata.name.clone().unwrap_or_default(),
            hard,
            used,
            scopes,
        })
    }
}

fn parse_scopes(spec: &ResourceQuotaSpec, problems: &mut Vec<Problem>) -> Vec<Scope> {
    let plain = spec.scopes.iter().flatten().map(|name| Scope {
        name: name.clone(),
        operator: ScopeOperator::Exists,
        values: Vec::new(),
    });
    let mut scopes: Vec<Scope> = plain.collect();
    let selector = spec.scope_selector.as_ref();
    let expressions = selector.and_then(|selector| selector.match_expressions.as_ref());
    let path = "spec.scopeSelector.matchExpressions";
    for expression in expressions.into_iter().flatten() {
        let values = expression.values.clone().unwrap_or_default();
        let Some(operator) = ScopeOperator::from_name(&expression.operator) else {
            problems.push(Problem::invalid(
                format!("{path}.operator"),
                &expression.operator,
                "not a valid selector operator",
            ));
            continue;
        };
        if operator.takes_values() && values.is_empty() {
            problems.push(Problem::required(
                format!("{path}.values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ));
        }
        if !operator.takes_values() && !values.is_empty() {
            let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
            problems.push(Problem::invalid_bare(
                format!("{path}.values"),
                format_args!("[{}]", quoted.join(",")),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            ));
        }
        scopes.push(Scope {
            name: expression.scope_name.clone(),
            operator,
            values,
        });
    }
    scopes
}

impl ScopeOperator {
    fn from_name(name: &str) -> Option<ScopeOperator> {
        match name {
            "In" => Some(ScopeOperator::In),
            "NotIn" => Some(ScopeOperator::NotIn),
            "Exists" => Some(ScopeOperator::Exists),
            "DoesNotExist" => Some(ScopeOperator::DoesNotExist),
            _ => None,
        }
    }

    fn takes_values(self) -> bool {
        matches!(self, ScopeOperator::In | ScopeOperator::NotIn)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_scopes_are_reported_with_api_servers_messages() {
        let quota: ResourceQuota = serde_json::from_value(json!({"spec": {"scopeSelector": {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In"},
                {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a", "b"]},
                {"scopeName": "PriorityClass", "operator": "Gt", "values": ["1"]},
            ],
        }}}))
        .unwrap();
        let problems = QuotaView::from_api(&quota).unwrap_err();
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\",\"b\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Gt\": not a valid selector operator",
            ]
        );
    }
}
