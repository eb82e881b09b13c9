//! PodSecurity: pods that namespaces reject.

use std::collections::BTreeSet;

use plimsoll_apiserver::server::audit;
use plimsoll_apiserver::store::RedbOptions;
use plimsoll_core::admission::pod_security::{Level, PodSecurity, Version};
use serde_json::{Value, json};

use super::caller::{Answer, Caller};
use super::cluster::{Cluster, eventually};
use super::objects::pod;

const NAMESPACES: &str = "/api/v1/namespaces";
const PODS: &str = "/api/v1/namespaces/n/pods";

/// A namespace `n` with these Pod Security labels.
fn labelled(labels: &[(&str, &str)]) -> Value {
    let labels = labels.iter();
    let labels = labels.map(|(key, value)| {
        (
            format!("pod-security.kubernetes.io/{key}"),
            Value::from(*value),
        )
    });
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n", "labels": labels.collect::<Value>()}})
}

async fn cluster_with(labels: &[(&str, &str)]) -> (Cluster, Caller) {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(NAMESPACES, &labelled(labels)).await.expect(201);
    (cluster, admin)
}

fn privileged(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    pod
}

/// A pod that the restricted level allows.
fn hardened(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    pod["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod
}

fn deployment(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": spec}}})
}

fn warnings(answer: &Answer) -> Vec<String> {
    let headers = answer.headers.get_all("warning").iter();
    let texts = headers.map(|value| value.to_str().unwrap());
    let texts = texts.map(|text| text.strip_prefix("299 - ").unwrap_or(text));
    texts
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

const PRIVILEGED: &str = "privileged (container \"main\" must not set \
    securityContext.privileged=true)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enforced_level_rejects_pods_with_upstream_message() {
    let (_cluster, admin) = cluster_with(&[("enforce", "restricted")]).await;
    let refused = admin.post(PODS, &privileged("p")).await;
    let message = refused.refused(403, "Forbidden");
    assert_eq!(
        message,
        format!(
            "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": {PRIVILEGED}, \
             allowPrivilegeEscalation != false (container \"main\" must set \
             securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \
             \"main\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true \
             (pod or container \"main\" must set securityContext.runAsNonRoot=true), seccompProfile \
             (pod or container \"main\" must set securityContext.seccompProfile.type to \
             \"RuntimeDefault\" or \"Localhost\")"
        )
    );
    assert_eq!(warnings(&refused), Vec::<String>::new());
    assert_eq!(admin.get(&format!("{PODS}/p")).await.code, 404);
    admin.post(PODS, &hardened("q")).await.expect(201);
    // A dry run gets the same error.
    let path = format!("{PODS}?dryRun=All");
    assert_eq!(admin.post(&path, &privileged("p")).await.code, 403);
    // So does an apply, which creates.
    let path = format!("{PODS}/p?fieldManager=m");
    let applied = admin.patch(&path, "apply", &privileged("p")).await;
    assert_eq!(applied.refused(403, "Forbidden"), message);
    // A generated name is the one in the message.
    let mut generated = privileged("");
    generated["metadata"] = json!({"generateName": "web-"});
    let answer = admin.post(PODS, &generated).await;
    let message = answer.refused(403, "Forbidden");
    let begin = message.split(" is forbidden").next().unwrap_or_default();
    assert_eq!(begin.len(), "pods \"web-xxxxx\"".len(), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_may_be_pinned_to_a_release() {
    let labels = [("enforce", "restricted"), ("enforce-version", "v1.18")];
    let (_cluster, admin) = cluster_with(&labels).await;
    let mut old = pod("p");
    old["spec"]["securityContext"] = json!({"runAsNonRoot": true});
    let message = admin.post(PODS, &old).await.refused(403, "Forbidden");
    assert_eq!(
        message,
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:v1.18\": \
         allowPrivilegeEscalation != false (container \"main\" must set \
         securityContext.allowPrivilegeEscalation=false)"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_are_evaluated_when_an_image_or_container_changes() {
    let (_cluster, admin) = cluster_with(&[]).await;
    admin.post(PODS, &privileged("p")).await.expect(201);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let path = format!("{NAMESPACES}/n");
    let tightened = admin.patch(&path, "merge", &labels).await;
    tightened.expect(200);
    assert_eq!(
        warnings(&tightened),
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "p: privileged",
        ]
    );
    let path = format!("{PODS}/p");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    admin.patch(&path, "merge", &labelled).await.expect(200);
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "other:2"}]);
    let message = admin
        .patch(&path, "json", &image)
        .await
        .refused(403, "Forbidden");
    let expected =
        format!("pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": {PRIVILEGED}");
    assert_eq!(message, expected);
    let path = format!("{PODS}/p/ephemeralcontainers");
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i",
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}});
    let message = admin
        .patch(&path, "strategic-merge", &debug)
        .await
        .refused(403, "Forbidden");
    assert!(message.contains("\"SYS_ADMIN\""), "{message}");
    // The status is not evaluated.
    let status = json!({"status": {"message": "x"}});
    let path = format!("{PODS}/p/status");
    admin.patch(&path, "merge", &status).await.expect(200);
    admin.delete(&format!("{PODS}/p")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_are_warned_about_and_stored() {
    let (_cluster, admin) = cluster_with(&[("enforce", "baseline")]).await;
    let path = "/apis/apps/v1/namespaces/n/deployments";
    let made = admin
        .post(path, &deployment(&privileged("x")["spec"]))
        .await;
    made.expect(201);
    let expected = format!("would violate PodSecurity \"baseline:latest\": {PRIVILEGED}");
    assert_eq!(warnings(&made), [expected.as_str()]);
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec":
            {"restartPolicy": "Never", "hostPID": true,
             "containers": [{"name": "main", "image": "i"}]}}}}}});
    let made = admin
        .post("/apis/batch/v1/namespaces/n/cronjobs", &cron)
        .await;
    made.expect(201);
    let expected = "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert_eq!(warnings(&made), [expected]);
    let made = admin.post(PODS, &pod("fine")).await;
    made.expect(201);
    assert_eq!(warnings(&made), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_labels_of_a_namespace_are_refused() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let labels = [("enforce", "strict"), ("warn-version", "1.25")];
    let refused = admin.post(NAMESPACES, &labelled(&labels)).await;
    assert_eq!(
        refused.refused(422, "Invalid"),
        "Namespace \"n\" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid \
         value: \"strict\": must be one of privileged, baseline, restricted, \
         metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.25\": must \
         be \"latest\" or \"v1.x\"]"
    );
    admin.post(NAMESPACES, &labelled(&[])).await.expect(201);
    let path = format!("{NAMESPACES}/n");
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/audit": "x"}}});
    admin
        .patch(&path, "merge", &labels)
        .await
        .refused(422, "Invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_and_exemptions_are_read_from_the_configuration() {
    let mut plugin = PodSecurity::default();
    plugin.defaults.enforce.level = Level::Baseline;
    plugin.defaults.enforce.version = Version::Minor(30);
    plugin.exempt_namespaces = BTreeSet::from(["kube-system".to_owned()]);
    plugin.exempt_users = BTreeSet::from(["trusted".to_owned()]);
    let adapt = move |options: &mut plimsoll_apiserver::server::Options| {
        options.pod_security = plugin;
    };
    let cluster = Cluster::start_with(adapt, RedbOptions::default()).await;
    let admin = cluster.admin();
    let pods = "/api/v1/namespaces/default/pods";
    let message = admin
        .post(pods, &privileged("p"))
        .await
        .refused(403, "Forbidden");
    assert!(
        message.contains("violates PodSecurity \"baseline:v1.30\""),
        "{message}"
    );
    let trusted = cluster.user("trusted", &["system:masters"]);
    trusted.post(pods, &privileged("p")).await.expect(201);
    let system = "/api/v1/namespaces/kube-system/pods";
    admin.post(system, &privileged("p")).await.expect(201);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let path = format!("{NAMESPACES}/kube-system");
    let answer = admin.patch(&path, "merge", &labels).await;
    answer.expect(200);
    assert_eq!(
        warnings(&answer),
        [
            "namespace \"kube-system\" is exempt from Pod Security, and the policy \
             (enforce=restricted:v1.30) will be ignored",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts_are_counted_and_audited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let log = path.clone();
    let adapt = move |options: &mut plimsoll_apiserver::server::Options| {
        options.audit = Some(audit::Options::new(log));
    };
    let cluster = Cluster::start_with(adapt, RedbOptions::default()).await;
    let admin = cluster.admin();
    let labels = [
        ("enforce", "baseline"),
        ("audit", "restricted"),
        ("audit-version", "v1.99"),
    ];
    admin.post(NAMESPACES, &labelled(&labels)).await.expect(201);
    assert_eq!(admin.post(PODS, &privileged("p")).await.code, 403);
    admin.post(PODS, &pod("q")).await.expect(201);
    admin
        .post("/api/v1/namespaces/default/pods", &privileged("r"))
        .await
        .expect(201);
    let text = admin.get("/metrics").await.body;
    let text = String::from_utf8(text.to_vec()).unwrap();
    for (labels, count) in [
        (
            "decision=\"deny\",policy_level=\"baseline\",policy_version=\"latest\",mode=\"enforce\"",
            1,
        ),
        (
            "decision=\"allow\",policy_level=\"baseline\",policy_version=\"latest\",mode=\"enforce\"",
            1,
        ),
        (
            "decision=\"deny\",policy_level=\"restricted\",policy_version=\"future\",mode=\"audit\"",
            2,
        ),
        (
            "decision=\"allow\",policy_level=\"privileged\",policy_version=\"latest\",mode=\"enforce\"",
            1,
        ),
    ] {
        let request = "request_operation=\"create\",resource=\"pod\",subresource=\"\"";
        let line = format!("pod_security_evaluations_total{{{labels},{request}}} {count}");
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    let annotations = eventually("the pod's line", async || {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut of_pods = lines.filter(|line| line["objectRef"]["resource"] == "pods");
        of_pods.next().map(|line| line["annotations"].clone())
    })
    .await;
    assert_eq!(
        annotations["pod-security.kubernetes.io/enforce-policy"],
        "baseline:latest"
    );
    let violations = &annotations["pod-security.kubernetes.io/audit-violations"];
    let begin = "would violate PodSecurity \"restricted:v1.99\": privileged";
    assert!(
        violations.as_str().unwrap().starts_with(begin),
        "{violations}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tightened_namespace_warns_about_a_pod_per_controller() {
    let (_cluster, admin) = cluster_with(&[]).await;
    for number in 0..5 {
        let mut replica = privileged(&format!("web-{number}"));
        replica["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1",
            "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}]);
        admin.post(PODS, &replica).await.expect(201);
    }
    let mut host = pod("agent");
    host["spec"]["hostNetwork"] = json!(true);
    admin.post(PODS, &host).await.expect(201);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let answer = admin
        .patch(&format!("{NAMESPACES}/n"), "merge", &labels)
        .await;
    answer.expect(200);
    assert_eq!(
        warnings(&answer),
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "agent: host namespaces",
            "web-0 (and 4 other pods): privileged",
        ]
    );
}
