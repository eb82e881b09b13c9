use plimsoll_core::object::selector::{FieldSelector, Lookup};
use serde_json::json;

use super::*;

#[test]
fn kinds_are_sorted_within_their_group() {
    for group in GROUPS {
        for kind in group.kinds {
            assert_eq!(
                (kind.group, kind.version),
                (group.name, group.version),
                "{kind:?}"
            );
            assert!(kind.verbs.is_sorted(), "{kind:?}");
            assert!(
                kind.subresources.is_sorted_by_key(|sub| sub.name),
                "{kind:?}"
            );
        }
        assert!(
            group.kinds.is_sorted_by_key(|kind| kind.plural),
            "{group:?}"
        );
    }
}

#[test]
fn kind_names_are_unique_and_resolvable() {
    for kind in all() {
        let found = by_resource(kind.group, kind.version, kind.plural).unwrap();
        assert_eq!(found.kind, kind.kind);
        let found = by_kind(&kind.api_version(), kind.kind).unwrap();
        assert_eq!(found.plural, kind.plural);
    }
    assert!(by_resource("", "v1", "deployments").is_none());
    assert!(by_kind("v1", "Deployment").is_none());
}

#[test]
fn only_the_two_encodings_of_events_share_their_objects() {
    let mut prefixes: Vec<&str> = all().filter_map(|kind| kind.storage).collect();
    prefixes.sort_unstable();
    let shared: Vec<&str> = prefixes
        .windows(2)
        .filter(|w| w[0] == w[1])
        .map(|w| w[0])
        .collect();
    assert_eq!(shared, ["events"]);
}

#[test]
fn pods_are_selected_by_node_and_phase() {
    let pods = by_kind("v1", "Pod").unwrap().selectable;
    let pod = json!({"metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}});
    let check = |text: &str| {
        let selector: FieldSelector = text.parse().unwrap();
        pods.convert(&selector).unwrap().matches(&pods.of(&pod))
    };
    assert!(check(
        "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"
    ));
    assert!(check(
        "spec.host=n1,spec.hostNetwork=false,status.podIP=10.0.0.1"
    ));
    assert!(check("status.podIPs=,metadata.namespace=n"));
    assert!(!check("metadata.name=q"));
}

#[test]
fn numbers_are_selected_as_texts() {
    let jobs = by_kind("batch/v1", "Job").unwrap().selectable;
    let job = json!({"status": {"succeeded": 3}});
    assert_eq!(jobs.of(&job).lookup("status.successful"), Some("3"));
    assert_eq!(jobs.of(&json!({})).lookup("status.successful"), Some("0"));
}

#[test]
fn unknown_field_labels_have_upstream_messages_per_kind() {
    let refusal = |api_version: &str, kind: &str, label: &str| {
        let selector: FieldSelector = format!("{label}=x").parse().unwrap();
        let kind = by_kind(api_version, kind).unwrap();
        kind.selectable.convert(&selector).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("v1", "Pod", "spec.x"),
        "field label not supported: spec.x"
    );
    assert_eq!(
        refusal("v1", "Node", "metadata.namespace"),
        "field label not supported: metadata.namespace"
    );
    assert_eq!(
        refusal("batch/v1", "Job", "spec.x"),
        "field label \"spec.x\" not supported for Job"
    );
    assert_eq!(
        refusal("apps/v1", "Deployment", "status.replicas"),
        "\"status.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    assert_eq!(
        refusal("resource.k8s.io/v1", "ResourceSlice", "spec.x"),
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x"
    );
}

#[test]
fn schemas_are_named_after_the_go_packages() {
    let definition = |api_version, kind| by_kind(api_version, kind).unwrap().definition();
    assert_eq!(definition("v1", "Pod"), "io.k8s.api.core.v1.Pod");
    assert_eq!(
        definition("rbac.authorization.k8s.io/v1", "Role"),
        "io.k8s.api.rbac.v1.Role"
    );
    assert_eq!(
        definition("metrics.k8s.io/v1beta1", "NodeMetrics"),
        "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics"
    );
}
