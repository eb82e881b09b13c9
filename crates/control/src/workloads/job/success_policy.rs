//! When some successes are enough.

use k8s_openapi::api::batch::v1::SuccessPolicy;

use super::indexes::Indexes;

/// The message if a rule of the policy is met.
pub(super) fn met(policy: Option<&SuccessPolicy>, end: i64, succeeded: &Indexes) -> Option<String> {
    let policy = policy.filter(|_| !succeeded.is_empty())?;
    let is_met = |required: Option<&str>, count: Option<i32>| match required {
        Some(text) => {
            let required = Indexes::parse(text, end);
            let matched = required.overlap(succeeded);
            !required.is_empty()
                && (matched == required.count()
                    || count.is_some_and(|count| matched >= i64::from(count)))
        }
        None => count.is_some_and(|count| succeeded.count() >= i64::from(count)),
    };
    let mut rules = policy.rules.iter();
    let index =
        rules.position(|rule| is_met(rule.succeeded_indexes.as_deref(), rule.succeeded_count))?;
    Some(format!("Matched rules at index {index}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn rule_needs_indexes_a_count_or_a_count_of_indexes() {
        let met = |rules: Value, succeeded: &str| {
            let policy: SuccessPolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
            met(Some(&policy), 10, &Indexes::parse(succeeded, 10))
        };
        let first = Some("Matched rules at index 0".to_owned());
        let second = Some("Matched rules at index 1".to_owned());
        assert_eq!(met(json!([{"succeededIndexes": "0-2"}]), "0-1"), None);
        assert_eq!(met(json!([{"succeededIndexes": "0-2"}]), "0-3"), first);
        assert_eq!(
            met(
                json!([{"succeededIndexes": "0-4", "succeededCount": 2}]),
                "3,4"
            ),
            first
        );
        assert_eq!(
            met(
                json!([{"succeededIndexes": "0-4", "succeededCount": 2}]),
                "4-9"
            ),
            None
        );
        assert_eq!(
            met(
                json!([{"succeededIndexes": "9"}, {"succeededCount": 3}]),
                "0-2"
            ),
            second
        );
        assert_eq!(met(json!([{"succeededCount": 0}]), ""), None);
        assert_eq!(met(json!([{"succeededIndexes": "x"}]), "0"), None);
    }
}
