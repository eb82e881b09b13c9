//! `scale`.

use crate::session::with_every_kubectl;

#[test]
#[ignore = "tier: tools"]
fn replicas_follow() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x");
        s.run("scale deploy web --replicas=3")
            .says("deployment.apps/web scaled");
        s.run("get deploy web -o jsonpath={.spec.replicas}")
            .says("3");
        s.run("scale deploy web --replicas=4 --current-replicas=3")
            .says("deployment.apps/web scaled");
        s.run("scale deploy web --replicas=5 --current-replicas=3")
            .fails_with("xpected replicas to be 3, was 4");
        s.run("scale deploy web --replicas=5 --resource-version=1")
            .fails_with("xpected resource version to be 1, was ");
        s.run("scale deploy nope --replicas=1")
            .fails_with("deployments.apps \"nope\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn every_kind_with_replicas_is_scaled() {
    with_every_kubectl(|s| {
        s.create(
            "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs}, spec: {selector: \
              {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: \
              [{name: a, image: x}]}}}}",
        );
        s.create(
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: ss}, spec: {serviceName: s, \
              selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: \
              {containers: [{name: a, image: x}]}}}}",
        );
        s.create(
            "{apiVersion: v1, kind: ReplicationController, metadata: {name: rc}, spec: {selector: \
              {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: \
              x}]}}}}",
        );
        s.run("scale rs/rs sts/ss rc/rc --replicas=3").says(
            "replicaset.apps/rs scaled\nstatefulset.apps/ss scaled\nreplicationcontroller/rc scaled",
        );
    });
}
