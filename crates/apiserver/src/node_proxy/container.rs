//! Choosing the container of a request.
//!
//! Matches v1.36 pkg/registry/core/pod/strategy.go `validateContainer`. The annotation
//! `kubectl.kubernetes.io/default-container` is kubectl's business: it sends the name.

use serde_json::Value;

use super::error_response::{ErrorResponse, bad_request};

/// The container of that name, or the only one if none is named.
pub(super) fn choose_container(pod: &Value, named: &str) -> Result<String, ErrorResponse> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let refuse = |message: String| Err(bad_request(message));
    if !named.is_empty() {
        if names(pod).any(|container| container == named) {
            return Ok(named.to_owned());
        }
        return refuse(format!("container {named} is not valid for pod {name}"));
    }
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    match containers.map_or(&[][..], Vec::as_slice) {
        [] => refuse(format!("a container name must be specified for pod {name}")),
        [only] => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
        _ => {
            let all: Vec<&str> = names(pod).collect();
            let all = all.join(" ");
            refuse(format!(
                "a container name must be specified for pod {name}, choose one of: [{all}]"
            ))
        }
    }
}

/// Init containers first, ephemeral ones last.
fn names(pod: &Value) -> impl Iterator<Item = &str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let lists = lists
        .into_iter()
        .filter_map(|list| pod["spec"][list].as_array());
    lists
        .flatten()
        .map(|container| container["name"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "web"}, "spec": spec})
    }

    #[test]
    fn single_container_needs_no_name() {
        let pod = pod(json!({"containers": [{"name": "app"}], "initContainers": [{"name": "i"}]}));
        assert_eq!(choose_container(&pod, ""), Ok("app".to_owned()));
        assert_eq!(choose_container(&pod, "i"), Ok("i".to_owned()));
    }

    #[test]
    fn container_name_is_required_with_several_containers() {
        let pod = pod(json!({
            "containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}],
            "ephemeralContainers": [{"name": "debug"}],
        }));
        let message = |named| choose_container(&pod, named).unwrap_err().message;
        assert_eq!(
            message(""),
            "a container name must be specified for pod web, choose one of: [i a b debug]"
        );
        assert_eq!(message("c"), "container c is not valid for pod web");
        assert_eq!(choose_container(&pod, "debug"), Ok("debug".to_owned()));
    }

    #[test]
    fn pod_without_containers_is_rejected() {
        let refused = choose_container(&pod(json!({})), "").unwrap_err();
        assert_eq!(
            refused.message,
            "a container name must be specified for pod web"
        );
    }
}
