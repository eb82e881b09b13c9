//! Discovery: `version`, `api-resources`, `explain`, `cluster-info`.

use crate::session::{with_every_kubectl, with_kubectl_from};

#[test]
#[ignore = "tier: tools"]
fn the_version_is_that_of_kubernetes() {
    with_every_kubectl(|s| {
        let text = s.unmasked("version -o json");
        let version: serde_json::Value = serde_json::from_str(&text).unwrap();
        let git_version = version["serverVersion"]["gitVersion"].as_str().unwrap();
        assert!(git_version.starts_with("v1.36.4"), "{git_version}");
        let raw = s.unmasked("get --raw /version");
        assert!(
            raw.starts_with("{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\""),
            "{raw}"
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn resources_are_listed_with_all_they_have() {
    with_every_kubectl(|s| {
        let names = s.ok("api-resources -o name");
        for name in [
            "pods",
            "nodes",
            "namespaces",
            "limitranges",
            "resourcequotas",
            "configmaps",
            "deployments.apps",
            "daemonsets.apps",
            "replicasets.apps",
            "jobs.batch",
            "leases.coordination.k8s.io",
            "events.events.k8s.io",
            "poddisruptionbudgets.policy",
            "priorityclasses.scheduling.k8s.io",
            "roles.rbac.authorization.k8s.io",
            "runtimeclasses.node.k8s.io",
            "nodes.metrics.k8s.io",
        ] {
            assert!(
                names.lines().any(|line| line == name),
                "{name} is missing in {names}"
            );
        }
        let cluster = s.ok("api-resources --namespaced=false -o name");
        assert!(
            cluster.lines().any(|line| line == "nodes")
                && !cluster.lines().any(|line| line == "pods")
        );
        s.run("api-resources --api-group=batch --no-headers")
            .mentions(&["cronjobs  cj", "jobs"]);
        let versions = s.ok("api-versions");
        for version in [
            "v1",
            "apps/v1",
            "batch/v1",
            "policy/v1",
            "metrics.k8s.io/v1beta1",
        ] {
            assert!(
                versions.lines().any(|line| line == version),
                "{version}: {versions}"
            );
        }
    });
}

#[test]
#[ignore = "tier: tools"]
fn kinds_are_explained() {
    with_every_kubectl(|s| {
        s.run("explain pods").mentions(&[
            "KIND:  Pod",
            "VERSION:  v1",
            "Pod is a collection of containers that can run on a host.",
        ]);
        s.run("explain pod.spec.tolerations").mentions(&[
            "The pod this Toleration is attached to tolerates any taint that matches",
            "tolerationSeconds\t<integer>",
        ]);
        s.run("explain deploy.spec.strategy --recursive")
            .mentions(&["maxSurge", "maxUnavailable"]);
        s.run("explain pods.spec.nope")
            .fails_with("field \"nope\" does not exist");
    });
}

/// Since 1.27 `explain` reads OpenAPI v3, which knows the values that a field may have.
#[test]
#[ignore = "tier: tools"]
fn explanations_name_the_values_of_a_field() {
    with_kubectl_from(27, |s| {
        s.run("explain pod.spec.tolerations.effect").mentions(&[
            "FIELD: effect <string>",
            "ENUM:\n    NoExecute\n    NoSchedule\n    PreferNoSchedule",
        ]);
        s.run("explain pod.spec.tolerations")
            .mentions(&["  enum: NoExecute, NoSchedule, PreferNoSchedule"]);
        s.run("explain deploy.spec.strategy.type")
            .mentions(&["ENUM:\n    Recreate\n    RollingUpdate"]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn cluster_info_prints_the_server() {
    with_every_kubectl(|s| {
        s.run("cluster-info")
            .mentions(&["is running at", "https://"]);
        s.run("cluster-info dump --namespaces $NS")
            .mentions(&["\"kind\": \"NodeList\""]);
    });
}
