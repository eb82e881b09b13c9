//! Replica sets adopt pods that match, and release those that no longer do.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn a_replica_set_adopts_and_releases_pods() {
    let flow = Flow::start("adoption");
    flow.node("a");
    let mut early = flow.pod("early", &json!({}));
    early["metadata"]["labels"] = json!({ "app": "web" });
    flow.create(&early);
    flow.kubectl("wait pod early --for=condition=Ready --timeout=60s");

    let mut set = flow.pods_by_template("ReplicaSet", "web");
    set["spec"]["replicas"] = json!(2);
    flow.create(&set);
    flow.shows("get rs web -o jsonpath={.status.readyReplicas}", "2");
    assert_eq!(flow.pods("app=web").len(), 2);
    let owner = "get pod early -o jsonpath={.metadata.ownerReferences[*].name}";
    flow.shows(owner, "web");

    flow.kubectl("label pod early app=other --overwrite");
    flow.shows(owner, "");
    flow.shows("get rs web -o jsonpath={.status.readyReplicas}", "2");
    assert_eq!(flow.pods("app=web").len(), 2);
    flow.mentions("get pod early", "Running");

    // Once it matches again there is one too many, and one goes.
    flow.kubectl("label pod early app=web --overwrite");
    flow.until("get pods -l app=web -o name", "two pods", |shown| {
        shown.lines().count() == 2
    });
    flow.shows("get rs web -o jsonpath={.status.replicas}", "2");
}
