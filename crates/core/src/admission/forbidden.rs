//! How the API server words a refusal.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The message of a 403 `Status`: `pods "web" is forbidden: <reason>`.
///
/// `resource` is the plural name. Matches v1.36 apiserver/pkg/admission/errors.go.
pub fn forbidden_message(resource: &str, name: &str, reason: &str) -> String {
    let name = if name.is_empty() { "Unknown" } else { name };
    format!("{resource} {name:?} is forbidden: {reason}")
}

/// The name a refusal shows: before the object has one, what its name would begin with.
pub fn name_in_refusal(meta: &ObjectMeta) -> &str {
    let given = meta.name.as_deref().filter(|name| !name.is_empty());
    given.or(meta.generate_name.as_deref()).unwrap_or_default()
}

/// Several reasons as one text: alone as it is, otherwise in brackets, each once.
///
/// Matches v1.36 apimachinery/pkg/util/errors, `Aggregate`.
pub fn joined_reasons<'a>(reasons: impl IntoIterator<Item = &'a str>) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for reason in reasons {
        if !distinct.contains(&reason) {
            distinct.push(reason);
        }
    }
    match distinct[..] {
        [only] => only.to_owned(),
        _ => format!("[{}]", distinct.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_stands_alone_and_several_in_brackets() {
        assert_eq!(joined_reasons(["a", "a"]), "a");
        assert_eq!(joined_reasons(["b", "a", "b"]), "[b, a]");
        assert_eq!(
            forbidden_message("pods", "web", "a"),
            "pods \"web\" is forbidden: a"
        );
    }

    #[test]
    fn a_pod_without_a_name_is_called_by_what_its_name_begins_with() {
        let meta = ObjectMeta {
            generate_name: Some("web-".to_owned()),
            ..ObjectMeta::default()
        };
        assert_eq!(name_in_refusal(&meta), "web-");
        assert_eq!(
            forbidden_message("pods", name_in_refusal(&ObjectMeta::default()), "a"),
            "pods \"Unknown\" is forbidden: a"
        );
    }
}
