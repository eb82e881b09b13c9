//! The messages of the API server's refusals.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::problem::quoted;

/// The message of a 403 `Status`: `pods "web" is forbidden: <reason>`.
///
/// `resource` is the plural name. Matches v1.36 apiserver/pkg/admission/errors.go.
pub fn forbidden_message(resource: &str, name: &str, reason: &str) -> String {
    let name = if name.is_empty() { "Unknown" } else { name };
    format!("{resource} {} is forbidden: {reason}", quoted(name))
}

/// The name a refusal shows: before the object has one, what its name would begin with.
pub fn name_in_refusal(meta: &ObjectMeta) -> &str {
    let given = meta.name.as_deref().filter(|name| !name.is_empty());
    given.or(meta.generate_name.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_without_name_is_called_by_its_generate_name() {
        let mut meta = ObjectMeta::default();
        let message = |meta: &ObjectMeta| forbidden_message("pods", name_in_refusal(meta), "a");
        assert_eq!(message(&meta), "pods \"Unknown\" is forbidden: a");
        meta.generate_name = Some("web-".to_owned());
        assert_eq!(message(&meta), "pods \"web-\" is forbidden: a");
        meta.name = Some("web-1".to_owned());
        assert_eq!(message(&meta), "pods \"web-1\" is forbidden: a");
    }
}
