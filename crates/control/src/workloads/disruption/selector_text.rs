//! A selector as upstream prints it into an event.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The print of the Go type. Matches v1.36 apimachinery/pkg/apis/meta/v1/generated.pb.go.
pub(super) fn selector_text(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else {
        return "nil".to_owned();
    };
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    let expressions = selector.match_expressions.iter().flatten();
    let expressions: String = expressions
        .map(|requirement| {
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                requirement.key,
                requirement.operator,
                requirement.values.as_deref().unwrap_or_default().join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_print_as_go_prints_them() {
        let selector: LabelSelector = serde_json::from_value(json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        }))
        .unwrap();
        assert_eq!(
            selector_text(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},}"
        );
        assert_eq!(selector_text(None), "nil");
    }
}
