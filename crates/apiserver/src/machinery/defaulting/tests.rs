use serde_json::{Value, json};

use super::*;
use crate::machinery::schema::canonicalize;

fn defaulted(group: &'static str, kind: &'static str, mut object: Value) -> Value {
    let of = GroupVersionKind {
        group,
        version: "v1",
        kind,
    };
    canonicalize(schema().of(of).unwrap(), &mut object);
    apply_defaults(of, &mut object);
    object
}

#[test]
fn templates_get_the_defaults_of_pod_specs_but_not_those_of_pods() {
    let template = json!({"spec": {"template": {"spec": {
        "hostNetwork": true,
        "containers": [{
            "name": "a", "image": "n", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "0.1m"}}, "livenessProbe": {"httpGet": {"port": 1}},
        }],
    }}}});
    let object = defaulted("apps", "Deployment", template);
    let spec = &object["spec"]["template"]["spec"];
    assert_eq!(spec["dnsPolicy"], "ClusterFirst");
    assert_eq!(spec["enableServiceLinks"], Value::Null);
    let container = &spec["containers"][0];
    assert_eq!(
        container["ports"],
        json!([{"containerPort": 80, "protocol": "TCP"}])
    );
    assert_eq!(container["resources"], json!({"limits": {"cpu": "1m"}}));
    assert_eq!(container["livenessProbe"]["periodSeconds"], 10);
    assert_eq!(
        container["livenessProbe"]["httpGet"],
        json!({"port": 1, "path": "/", "scheme": "HTTP"})
    );
}

#[test]
fn pod_limits_default_requests_and_host_network_ports() {
    let object = defaulted(
        "",
        "Pod",
        json!({"spec": {
            "hostNetwork": true,
            "containers": [{"name": "a", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}],
            "volumes": [{"name": "v"}],
        }}),
    );
    let container = &object["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1"}));
    assert_eq!(container["ports"][0]["hostPort"], 80);
    assert_eq!(object["spec"]["volumes"][0]["emptyDir"], json!({}));
    assert_eq!(object["spec"]["enableServiceLinks"], true);
}

#[test]
fn job_defaults_labels_from_its_template() {
    let object = defaulted(
        "batch",
        "Job",
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
    );
    assert_eq!(object["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(object["spec"]["completions"], 1);
    assert_eq!(object["spec"]["backoffLimit"], 6);
}

#[test]
fn set_fields_are_kept() {
    let object = defaulted(
        "apps",
        "StatefulSet",
        json!({"spec": {"replicas": 0, "updateStrategy": {"type": "RollingUpdate"}}}),
    );
    assert_eq!(object["spec"]["replicas"], 0);
    assert_eq!(
        object["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate"})
    );
}
