//! Cascading deletion: namespaces with their content, owners with their dependents.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn deleted_namespace_is_emptied_and_removed() {
    let flow = Flow::start("namespace");
    flow.node("a");
    let doomed = format!("{}-doomed", flow.name);
    flow.kubectl(&format!("create namespace {doomed}"));
    let mut web = flow.deployment("web", 3);
    web["metadata"]["namespace"] = json!(doomed);
    flow.create(&web);
    flow.kubectl(&format!(
        "rollout status deployment web -n {doomed} --timeout=60s"
    ));
    flow.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "kept", "namespace": doomed, "finalizers": ["flow/keep"] },
    }));

    flow.kubectl(&format!("delete namespace {doomed} --wait=false"));
    let remaining = format!("describe namespace {doomed}");
    flow.mentions(&remaining, "Terminating");
    flow.mentions(
        &remaining,
        "Some content in the namespace has finalizers remaining: flow/keep in 1 resource instances",
    );
    flow.shows(
        &format!("get pods,deployments,replicasets -n {doomed} -o name"),
        "",
    );
    let problem = flow.refused(&format!("create configmap late -n {doomed}"));
    assert_eq!(
        problem,
        format!(
            "error: failed to create configmap: configmaps \"late\" is forbidden: unable to create \
            new content in namespace {doomed} because it is being terminated\n"
        )
    );
    let free = "-p {\"metadata\":{\"finalizers\":null}}";
    flow.kubectl(&format!("patch configmap kept -n {doomed} {free}"));
    flow.is_gone(&format!("namespace {doomed}"));
}

#[test]
#[ignore = "tier: tools"]
fn dependents_follow_their_owner_in_the_background() {
    let flow = Flow::start("background");
    flow.node("a");
    flow.create(&flow.deployment("web", 2));
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.kubectl("delete deployment web");
    flow.shows("get deployments,replicasets,pods -o name", "");
}

#[test]
#[ignore = "tier: tools"]
fn an_owner_waits_for_its_dependents_in_the_foreground() {
    let flow = Flow::start("foreground");
    flow.node("a");
    let mut web = flow.deployment("web", 2);
    web["spec"]["template"]["metadata"]["finalizers"] = json!(["flow/keep"]);
    flow.create(&web);
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.kubectl("delete deployment web --cascade=foreground --wait=false");
    flow.until("get pods -l app=web", "two Terminating", |shown| {
        shown.matches("Terminating").count() == 2
    });
    flow.shows(
        "get deployment web -o jsonpath={.metadata.finalizers[*]}",
        "foregroundDeletion",
    );
    flow.shows(
        "get rs -o jsonpath={.items[*].metadata.finalizers[*]}",
        "foregroundDeletion",
    );
    for pod in flow.pods("app=web") {
        flow.kubectl(&format!(
            "patch pod {pod} -p {{\"metadata\":{{\"finalizers\":null}}}}"
        ));
    }
    flow.is_gone("deployment web");
    flow.shows("get replicasets,pods -o name", "");
}

#[test]
#[ignore = "tier: tools"]
fn orphans_outlive_their_owner_and_are_adopted_by_the_next() {
    let flow = Flow::start("orphan");
    flow.node("a");
    flow.create(&flow.deployment("web", 2));
    flow.kubectl("rollout status deployment web --timeout=60s");
    let pods = flow.pods("app=web");
    flow.kubectl("delete deployment web --cascade=orphan");
    flow.shows(
        "get rs -o jsonpath={.items[*].metadata.ownerReferences}",
        "",
    );
    flow.shows("get deployments -o name", "");
    assert_eq!(flow.pods("app=web"), pods);

    flow.create(&flow.deployment("web", 2));
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.shows(
        "get rs -o jsonpath={.items[*].metadata.ownerReferences[*].name}",
        "web",
    );
    assert_eq!(flow.pods("app=web"), pods);
}
