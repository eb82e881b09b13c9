//! `delete`: cascades, grace and force.

use crate::session::with_every_kubectl;

#[test]
#[ignore = "tier: tools"]
fn objects_are_deleted_by_name_label_file_and_all() {
    with_every_kubectl(|s| {
        for name in ["a", "b", "c", "d"] {
            s.ok(&format!("create configmap {name} --from-literal=k=v"));
        }
        s.ok("label cm b x=y");
        s.file(
            "c.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
        );
        s.run("delete cm a").says("configmap \"a\" deleted");
        s.run("delete cm a")
            .fails("Error from server (NotFound): configmaps \"a\" not found");
        s.run("delete cm a --ignore-not-found").says("");
        s.run("delete cm -l x=y").says("configmap \"b\" deleted");
        s.run("delete cm -l x=y").mentions(&["No resources found"]);
        s.run("delete -f c.yaml").says("configmap \"c\" deleted");
        s.run("delete -f c.yaml").fails(
            "Error from server (NotFound): error when deleting \"c.yaml\": configmaps \"c\" not \
             found",
        );
        s.run("delete cm d --dry-run=server")
            .says("configmap \"d\" deleted (server dry run)");
        s.run("delete cm --all")
            .mentions(&["configmap \"d\" deleted"]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn pods_without_a_node_are_deleted_at_once() {
    with_every_kubectl(|s| {
        s.ok("run p --image=x");
        s.run("delete pod p --timeout=20s")
            .says("pod \"p\" deleted");
        s.run("get pod p")
            .fails("Error from server (NotFound): pods \"p\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn pods_on_a_node_end_within_their_grace_period() {
    with_every_kubectl(|s| {
        s.create(
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: nowhere, \
              containers: [{name: a, image: x}]}}",
        );
        s.run("delete pod p --wait=false").says("pod \"p\" deleted");
        s.run("get pods --no-headers")
            .says("p  0/1  Terminating  0  AGE");
        let grace = "get pod p -o jsonpath={.metadata.deletionGracePeriodSeconds}";
        s.run(grace).says("30");
        s.run("delete pod p --grace-period=10 --wait=false")
            .says("pod \"p\" deleted");
        s.run(grace).says("10");
        // Never longer.
        s.run("delete pod p --grace-period=20 --wait=false")
            .says("pod \"p\" deleted");
        s.run(grace).says("10");
        s.run("delete pod p --now --wait=false")
            .says("pod \"p\" deleted");
        s.run(grace).says("1");
        s.run("delete pod p --grace-period=0 --force").mentions(&[
            "pod \"p\" force deleted",
            "Immediate deletion does not wait for confirmation that the running resource has been \
             terminated. The resource may continue to run on the cluster indefinitely.",
        ]);
        s.run("get pods")
            .remarks("No resources found in NS namespace.");
    });
}

#[test]
#[ignore = "tier: tools"]
fn cascading_deletes_set_finalizers_for_the_collector() {
    with_every_kubectl(|s| {
        for (policy, finalizers) in [
            ("orphan", "[\"orphan\"]"),
            ("foreground", "[\"foregroundDeletion\"]"),
        ] {
            s.ok("create deployment d --image=x");
            s.run(&format!("delete deploy d --cascade={policy} --wait=false"))
                .says("deployment.apps \"d\" deleted");
            s.run("get deploy d -o jsonpath={.metadata.finalizers}")
                .says(finalizers);
            s.ok("patch deploy d --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
            s.run("get deploy d")
                .fails("Error from server (NotFound): deployments.apps \"d\" not found");
        }
    });
}

#[test]
#[ignore = "tier: tools"]
fn finalizers_delay_a_deletion() {
    with_every_kubectl(|s| {
        s.create(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, finalizers: [example.com/x]}}",
        );
        s.run("delete cm c --timeout=1s")
            .fails_with("timed out waiting for the condition on configmaps/c");
        s.run("patch cm c -p '{\"metadata\":{\"finalizers\":[\"example.com/y\"]}}'")
            .fails_with("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted");
        s.run("patch cm c -p '{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"example.com/x\"]}}'")
            .says("configmap/c patched");
        s.run("get cm c")
            .fails("Error from server (NotFound): configmaps \"c\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn collections_are_deleted_in_one_request() {
    with_every_kubectl(|s| {
        s.ok("create configmap a");
        s.ok("create configmap b");
        s.run("delete --raw '/api/v1/namespaces/$NS/configmaps?fieldSelector=metadata.name!=b'")
            .mentions(&["\"kind\":\"ConfigMapList\""]);
        s.run("get cm -o name").mentions(&["configmap/b"]);
        s.run("get cm a").fails_with("not found");
    });
}
