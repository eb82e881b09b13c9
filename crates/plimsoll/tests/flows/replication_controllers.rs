//! Replication controllers, and the templates of pods that are objects of their own.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn a_replication_controller_keeps_as_many_pods_as_it_is_scaled_to() {
    let flow = Flow::start("rc");
    flow.node("a");
    let mut controller = flow.pods_by_template("ReplicationController", "web");
    controller["apiVersion"] = json!("v1");
    controller["spec"]["selector"] = json!({ "app": "web" });
    controller["spec"]["replicas"] = json!(2);
    flow.create(&controller);
    let ready = "get rc web -o jsonpath={.status.replicas},{.status.readyReplicas},{.status.availableReplicas}";
    flow.shows(ready, "2,2,2");
    flow.kubectl("scale rc web --replicas=4");
    flow.shows(ready, "4,4,4");
    flow.kubectl("scale rc web --replicas=1 --current-replicas=4");
    flow.until("get pods -l app=web -o name", "one pod", |shown| {
        shown.lines().count() == 1
    });
    flow.mentions(
        "events --for replicationcontroller/web",
        "Deleted pod: web-",
    );

    // Its pods have a budget by its scale.
    flow.kubectl("scale rc web --replicas=2");
    flow.kubectl("create poddisruptionbudget web --selector=app=web --max-unavailable=1");
    flow.shows(
        "get pdb web -o jsonpath={.status.expectedPods},{.status.desiredHealthy},{.status.disruptionsAllowed}",
        "2,1,1",
    );
}

#[test]
#[ignore = "tier: tools"]
fn pod_templates_are_kept_and_checked() {
    let flow = Flow::start("templates");
    let pod = flow.pod("web", &json!({}));
    let mut template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "web" },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod["spec"] },
    });
    flow.create(&template);
    let shown = flow.kubectl("get podtemplates");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows,
        [
            vec!["NAME", "CONTAINERS", "IMAGES", "POD", "LABELS"],
            vec!["web", "main", "busybox:1", "app=web"]
        ]
    );
    flow.shows(
        "get podtemplate web -o jsonpath={.metadata.generation}",
        "1",
    );
    flow.shows(
        "get podtemplate web -o jsonpath={.template.spec.restartPolicy}",
        "Always",
    );
    flow.kubectl("patch podtemplate web -p {\"template\":{\"spec\":{\"priority\":1}}}");
    flow.shows(
        "get podtemplate web -o jsonpath={.metadata.generation}",
        "2",
    );
    template["metadata"]["name"] = json!("empty");
    template["template"]["spec"]["containers"] = json!([]);
    let refused = flow.try_kubectl_with("create -f -", &template.to_string());
    assert!(
        refused
            .stderr
            .contains("template.spec.containers: Required value"),
        "{}",
        refused.stderr
    );
    flow.kubectl("delete podtemplate web");
    flow.is_gone("podtemplate/web");
}
