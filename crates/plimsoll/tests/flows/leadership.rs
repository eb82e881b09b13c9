//! One of several schedulers leads, and another takes over when it dies.

use plimsoll_testkit::process::Process;
use serde_json::json;

use crate::flow::Flow;
use crate::target::PLIMSOLL;

#[test]
#[ignore = "tier: tools"]
fn standby_scheduler_takes_over() {
    let mut flow = Flow::start("leadership");
    let Some(launched) = flow.target.launched() else {
        // The scheduler of another's cluster leads there.
        return;
    };
    launched.scheduler.kill();
    flow.node("a");
    let kubeconfig = format!("--kubeconfig={}", flow.target.kubeconfig().display());
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let start = |index: usize| {
        let arguments = ["scheduler", &kubeconfig, "--leader-elect=true"].map(str::to_owned);
        let log = folders[index].path().join("scheduler.log");
        Process::start(PLIMSOLL, &log, &arguments)
    };
    let holder = "get lease kube-scheduler -n kube-system -o jsonpath={.spec.holderIdentity}";

    let mut first = start(0);
    let leader = flow.until(holder, "a leader", |shown| !shown.is_empty());
    let _second = start(1);
    flow.create(&flow.pod("before", &json!({})));
    flow.kubectl("wait pod before --for=condition=Ready --timeout=60s");
    flow.shows(holder, &leader);

    first.kill();
    flow.create(&flow.pod("after", &json!({})));
    flow.kubectl("wait pod after --for=condition=Ready --timeout=120s");
    let next = flow.until(holder, "another leader", |shown| shown != leader);
    flow.mentions(
        "get events -n kube-system",
        &format!("{next} became leader"),
    );
    flow.mentions(
        "get lease kube-scheduler -n kube-system -o jsonpath={.spec.leaseTransitions}",
        "1",
    );
}
