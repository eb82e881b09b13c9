//! Pods made from templates.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// A name is at most this long, so longer prefixes get no dash.
const LONGEST_NAME: usize = 253;

/// The pod of a template, not yet created: named after its controller, which it names in turn.
///
/// Matches v1.36 pkg/controller/controller_utils.go, `GetPodFromTemplate`.
pub fn pod_from_template(template: &PodTemplateSpec, controller: OwnerReference) -> Pod {
    let from = template.metadata.clone().unwrap_or_default();
    let prefix = match controller.name.len() < LONGEST_NAME {
        true => format!("{}-", controller.name),
        false => controller.name.clone(),
    };
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix),
            labels: from.labels,
            annotations: from.annotations,
            finalizers: from.finalizers,
            owner_references: Some(vec![controller]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone().unwrap_or_default()),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_takes_labels_annotations_finalizers_and_spec() {
        let template: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"name": "ignored", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f/f"]},
            "spec": {"containers": [{"name": "x"}]},
        }))
        .unwrap();
        let controller = OwnerReference {
            name: "web".to_owned(),
            ..OwnerReference::default()
        };
        let pod = serde_json::to_value(pod_from_template(&template, controller)).unwrap();
        let metadata = &pod["metadata"];
        assert_eq!(metadata["generateName"], "web-");
        assert_eq!(metadata.get("name"), None);
        assert_eq!(metadata["labels"], json!({"a": "b"}));
        assert_eq!(metadata["annotations"], json!({"c": "d"}));
        assert_eq!(metadata["finalizers"], json!(["f/f"]));
        assert_eq!(pod["spec"]["containers"][0]["name"], "x");
    }

    #[test]
    fn the_longest_names_get_no_dash() {
        let controller = OwnerReference {
            name: "a".repeat(253),
            ..OwnerReference::default()
        };
        let pod = pod_from_template(&PodTemplateSpec::default(), controller);
        assert_eq!(pod.metadata.generate_name.unwrap().len(), 253);
    }
}
