//! Revisions of pod templates, which `kubectl rollout undo` goes back to.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use plimsoll_client::informer::Key;
use serde_json::{Value, json};

use super::ownership::ControllerKind;
use super::writes::{WriteError, Writer, failed, is_already_exists};

/// The label that names the revision of a pod.
pub const REVISION_HASH: &str = "controller-revision-hash";

/// The strategic merge patch that restores a template.
pub fn revision_data(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template that such a patch restores.
pub fn restored_template(data: &Value) -> Result<PodTemplateSpec, serde_json::Error> {
    let mut template = data["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    serde_json::from_value(template)
}

/// Whether two patches restore the same. A template without metadata is the same as one with none
/// of its fields set.
pub fn restores_same(a: &Value, b: &Value) -> bool {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (key.clone(), plain(value)));
                let is_set = |(key, value): &(String, Value)| {
                    !(value.is_null() || key == "metadata" && *value == json!({}))
                };
                Value::Object(fields.filter(is_set).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
            other => other.clone(),
        }
    }
    plain(a) == plain(b)
}

/// The metadata of a revision of a set's template.
pub fn revision_metadata(
    set: &ObjectMeta,
    kind: ControllerKind,
    name: String,
    labels: BTreeMap<String, String>,
) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: set.namespace.clone(),
        labels: Some(labels),
        annotations: set.annotations.clone(),
        owner_references: Some(vec![kind.reference_to(set)]),
        ..ObjectMeta::default()
    }
}

/// Creates a revision, or finds the one of its name that was created before. Returns none if that
/// one restores another template.
pub async fn create_revision(
    writer: &Writer,
    revision: &ControllerRevision,
) -> Result<Option<ControllerRevision>, WriteError> {
    let key = Key::of(&revision.metadata);
    let api = writer.api::<ControllerRevision>(&key.namespace);
    let error = match api.create(&PostParams::default(), revision).await {
        Ok(created) => return Ok(Some(created)),
        Err(error) if is_already_exists(&error) => error,
        Err(error) => return Err(failed("revision")(error)),
    };
    let found = api.get(&key.name).await.map_err(failed("revision"))?;
    let data = found.data.as_ref().zip(revision.data.as_ref());
    if data.is_some_and(|(found, wanted)| restores_same(&found.0, &wanted.0)) {
        return Ok(Some(found));
    }
    tracing::debug!(%error, "hash collision, bumping collisionCount");
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_restores_the_template() {
        let template: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "v1"}]},
        }))
        .unwrap();
        let data = revision_data(&template);
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        assert_eq!(restored_template(&data).unwrap(), template);
        assert!(restored_template(&json!({})).is_err());
    }

    #[test]
    fn empty_metadata_makes_no_difference() {
        let spec = json!({"containers": []});
        let without = json!({"spec": {"template": {"spec": spec}}});
        let with = json!({"spec": {"template": {"metadata": {}, "spec": spec, "x": null}}});
        assert!(restores_same(&without, &with));
        assert!(!restores_same(&without, &json!({"spec": {}})));
    }
}
