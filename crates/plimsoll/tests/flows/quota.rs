//! Quotas are charged, reject objects beyond them, and are released.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn quota_is_charged_and_released() {
    let flow = Flow::start("quota");
    flow.node("a");
    flow.kubectl("create quota small --hard=pods=2,requests.cpu=1");
    let used = "get quota small -o jsonpath={.status.used.pods}/{.status.used.requests\\.cpu}";
    flow.shows(used, "0/0");
    let create = |pod: &serde_json::Value| flow.try_kubectl_with("create -f -", &pod.to_string());
    let half_core = |name: &str| flow.pod(name, &json!({ "cpu": "500m" }));

    let bare = create(&flow.pod("bare", &json!({})));
    assert_eq!(
        bare.stderr,
        "Error from server (Forbidden): error when creating \"STDIN\": pods \"bare\" is forbidden: \
        failed quota: small: must specify requests.cpu for: main\n"
    );
    flow.create(&half_core("a"));
    flow.create(&half_core("b"));
    flow.shows(used, "2/1");
    let refused = create(&half_core("c"));
    assert_eq!(
        refused.stderr,
        "Error from server (Forbidden): error when creating \"STDIN\": pods \"c\" is forbidden: \
        exceeded quota: small, requested: pods=1,requests.cpu=500m, used: pods=2,requests.cpu=1, \
        limited: pods=2,requests.cpu=1\n"
    );
    flow.create(&flow.deployment("web", 1));
    flow.mentions("get events", "Error creating: pods \"web-");
    flow.mentions("describe deployment web", "FailedCreate");
    flow.kubectl("delete deployment web");
    flow.shows("get rs -o name", "");

    flow.kubectl("wait pod a --for=condition=Ready --timeout=60s");
    flow.kubectl("delete pod a");
    flow.shows(used, "1/500m");
    flow.create(&half_core("c"));
    flow.shows(used, "2/1");

    // A pod that has ended needs no core any more, and counts no more.
    let mut task = flow.job("task", "true");
    task["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] =
        json!("500m");
    flow.kubectl("delete pod c");
    flow.shows(used, "1/500m");
    flow.create(&task);
    flow.kubectl("wait job task --for=condition=Complete --timeout=60s");
    flow.shows(used, "1/500m");
    flow.mentions("describe quota small", "requests.cpu  500m  1");
}
