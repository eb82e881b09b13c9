//! `rollout`.

use crate::session::{Session, with_every_kubectl};

/// A deployment at its second revision, as its controller leaves it.
fn at_revision_two(s: &Session) {
    s.ok("create deployment web --image=x:1");
    let uid = s.unmasked("get deploy web -o jsonpath={.metadata.uid}");
    for revision in [1, 2] {
        s.create(&format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-{revision}, \
              labels: {{app: web, pod-template-hash: h{revision}}}, \
              annotations: {{deployment.kubernetes.io/revision: '{revision}', \
              kubernetes.io/change-cause: 'cause {revision}'}}, \
              ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true}}]}}, \
              spec: {{selector: {{matchLabels: {{app: web, pod-template-hash: h{revision}}}}}, \
              template: {{metadata: {{labels: {{app: web, pod-template-hash: h{revision}}}}}, \
              spec: {{containers: [{{name: x, image: 'x:{revision}'}}]}}}}}}}}"
        ));
    }
    s.ok("set image deploy/web x=x:2");
    s.ok("annotate deploy web deployment.kubernetes.io/revision=2");
}

#[test]
#[ignore = "tier: tools"]
fn status_waits_for_the_controller() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1 --replicas=2");
        s.run("rollout status deploy/web --watch=false")
            .says("Waiting for deployment spec update to be observed...");
        let waiting = s.start("rollout status deploy/web --timeout=20s");
        waiting.wait_for("Waiting for deployment spec update to be observed...");
        s.set_status(
            "deployment/web",
            "{\"observedGeneration\":1,\"replicas\":2,\"updatedReplicas\":1}",
        );
        waiting.wait_for("1 out of 2 new replicas have been updated...");
        s.set_status(
            "deployment/web",
            "{\"observedGeneration\":1,\"replicas\":2,\"updatedReplicas\":2,\"readyReplicas\":2,\
              \"availableReplicas\":2}",
        );
        waiting.wait_for("deployment \"web\" successfully rolled out");
    });
}

#[test]
#[ignore = "tier: tools"]
fn rollout_history_and_undo_work() {
    with_every_kubectl(|s| {
        at_revision_two(s);
        s.run("rollout history deploy/web")
            .says("deployment.apps/web\nREVISION  CHANGE-CAUSE\n1  cause 1\n2  cause 2");
        s.run("rollout history deploy/web --revision=1")
            .mentions(&["deployment.apps/web with revision #1", "Image:\tx:1"]);
        s.run("rollout history deploy/web --revision=9")
            .fails("error: unable to find the specified revision");
        s.run("rollout undo deploy/web")
            .says("deployment.apps/web rolled back");
        let image = "get deploy web -o jsonpath='{.spec.template.spec.containers[0].image}'";
        s.run(image).says("x:1");
        s.run("rollout undo deploy/web --to-revision=2")
            .says("deployment.apps/web rolled back");
        s.run(image).says("x:2");
    });
}

#[test]
#[ignore = "tier: tools"]
fn rollouts_pause_resume_and_restart() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1");
        s.run("rollout pause deploy/web")
            .says("deployment.apps/web paused");
        s.run("rollout pause deploy/web")
            .fails("error: deployments.apps \"web\" is already paused");
        s.run("rollout restart deploy/web")
            .fails("error: deployments.apps \"web\" can't restart paused deployment (run rollout resume first)");
        s.run("rollout resume deploy/web")
            .says("deployment.apps/web resumed");
        s.run("rollout resume deploy/web")
            .fails("error: deployments.apps \"web\" is not paused");
        s.run("rollout restart deploy/web")
            .says("deployment.apps/web restarted");
        s.run("get deploy web -o jsonpath='{.spec.template.metadata.annotations}'")
            .mentions(&["kubectl.kubernetes.io/restartedAt"]);
    });
}
