//! `wait`.

use crate::session::{with_every_kubectl, with_kubectl_from};

#[test]
#[ignore = "tier: tools"]
fn conditions_are_waited_for() {
    with_every_kubectl(|s| {
        s.ok("run p --image=x");
        s.run("wait pod/p --for=condition=Ready --timeout=1s")
            .fails_with("timed out waiting for the condition on pods/p");
        let waiting = s.start("wait pod/p --for=condition=Ready --timeout=20s");
        s.set_status(
            "pod/p",
            "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
        );
        waiting.wait_for("pod/p condition met");
        s.run("wait pod/nope --for=condition=Ready --timeout=1s")
            .fails("Error from server (NotFound): pods \"nope\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn wait_for_delete_works() {
    with_every_kubectl(|s| {
        s.ok("create configmap c");
        s.run("wait cm/c --for=delete --timeout=1s")
            .fails_with("timed out waiting for the condition on configmaps/c");
        let waiting = s.start("wait cm/c --for=delete --timeout=20s -v=6");
        waiting.wait_for("watch=true");
        s.ok("delete cm c");
        waiting.wait_for("configmap/c condition met");
    });
}

/// Of 1.23.
#[test]
#[ignore = "tier: tools"]
fn fields_are_waited_for() {
    with_kubectl_from(23, |s| {
        s.ok("run p --image=x");
        let waiting = s.start("wait pod/p --for=jsonpath='{.status.phase}'=Running --timeout=20s");
        s.set_status("pod/p", "{\"phase\":\"Running\"}");
        waiting.wait_for("pod/p condition met");
    });
}

/// Of 1.31.
#[test]
#[ignore = "tier: tools"]
fn wait_for_create_works() {
    with_kubectl_from(31, |s| {
        let waiting = s.start("wait cm/late --for=create --timeout=20s");
        s.ok("create configmap late");
        waiting.wait_for("configmap/late condition met");
    });
}
