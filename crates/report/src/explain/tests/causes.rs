//! The explanation of a pod leads with the cause.

use serde_json::{Value, json};

use super::super::owner::{FoundOwner, OwnerKind, explain_owner};
use super::super::pod::Found;
use super::super::render::{self, Detail};
use super::super::scheduler_traces::SchedulerTraces;
use super::super::snapshot::Snapshot;
use super::{event, explained, found, node, now, pod, screen, shown, snapshot, typed};

/// A pod on its node whose only container has that status.
fn with_container(name: &str, phase: &str, status: &Value) -> Value {
    let mut web = pod(name, Some("n1"), &json!({}));
    let mut container = json!({
        "name": "main", "image": "app:1", "imageID": "", "ready": false, "restartCount": 0,
    });
    for (key, value) in status.as_object().unwrap() {
        container[key] = value.clone();
    }
    web["spec"]["containers"][0]["image"] = json!("app:1");
    web["status"] = json!({ "phase": phase, "containerStatuses": [container] });
    web
}

fn ended(code: i32, reason: &str) -> Value {
    json!({ "terminated": {
        "exitCode": code, "reason": reason, "startedAt": "2026-01-01T00:09:00Z",
        "finishedAt": "2026-01-01T00:09:03Z",
    } })
}

/// The text without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_crash_leads_with_its_exit_code_and_the_last_lines_of_the_log() {
    let waiting = json!({ "waiting": {
        "reason": "CrashLoopBackOff",
        "message": "back-off 40s restarting failed container=main pod=web_default(uid-web)",
    } });
    let status = json!({
        "restartCount": 4, "state": waiting, "lastState": ended(3, "Error"),
    });
    let mut found = found("web", Some(with_container("web", "Running", &status)));
    found.snapshot = Some(snapshot());
    let lines = vec!["listening".to_owned(), "no database".to_owned()];
    found.logs.insert("main".to_owned(), Ok(lines));
    let report = explained(&found);
    let headline = "is not ready on node n1: container main ends with exit code 3 \
                    (restarted 4 times)";
    assert_eq!(report.headline, headline);
    let text = render::pod(&report, Detail::Brief, now(), screen(80));
    let expected = "WHY\n  main ended with exit code 3 at 2026-01-01T00:09:03Z, 3.0s after its start.\n  \
                It is started again after a back-off of 40s.\n\n\
                LAST LINES OF THE LOG OF main\n  listening\n  no database\n";
    assert!(text.contains(expected), "{text}");
    let (cause, place) = (text.find("no database"), text.find("WHY ON n1"));
    assert!(cause < place, "the cause comes before the place: {text}");
    assert!(!text.contains("SCORE"), "{text}");
    assert!(shown(&found, 80).contains("SCORE"), "with --verbose");
}

#[test]
fn missing_program_is_the_cause() {
    let status = json!({
        "restartCount": 1, "lastState": ended(128, "StartError"),
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
    });
    let mut web = with_container("web", "Running", &status);
    let last = &mut web["status"]["containerStatuses"][0]["lastState"]["terminated"];
    last["message"] = json!("exec: \"nginxx\": executable file not found in $PATH");
    let report = explained(&found("web", Some(web)));
    let headline = "is not ready on node n1: container main cannot be started (restarted once)";
    assert_eq!(report.headline, headline);
    let why = &report.troubles[0].why[0];
    assert!(why.starts_with("StartError: exec: \"nginxx\""), "{why}");
    assert!(!report.troubles[0].help.is_empty());
}

#[test]
fn a_failing_probe_is_named_with_its_answer() {
    let status = json!({
        "restartCount": 2, "lastState": ended(137, "Error"),
        "state": { "running": { "startedAt": "2026-01-01T00:09:50Z" } },
    });
    let mut web = with_container("web", "Running", &status);
    web["spec"]["containers"][0]["livenessProbe"] = json!({
        "httpGet": { "path": "/healthz", "port": 8080 }, "periodSeconds": 5,
    });
    let mut found = found("web", Some(web));
    let message = "Liveness probe failed: HTTP probe failed with statuscode: 500";
    let mut unhealthy = event("web", "Unhealthy", message);
    unhealthy.count = Some(9);
    unhealthy.involved_object.field_path = Some("spec.containers{main}".to_owned());
    found.events = vec![unhealthy];
    let report = explained(&found);
    let headline = "is not ready on node n1: container main fails its liveness probe \
                    (restarted 2 times)";
    assert_eq!(report.headline, headline);
    let trouble = &report.troubles[0];
    let expected = format!("{message} (9 times, the last at 2026-01-01T00:08:00Z).");
    assert_eq!(trouble.why[0], expected);
    let probe = "The probe: http-get http://:8080/healthz delay=0s timeout=1s period=5s \
                 #success=1 #failure=3.";
    assert_eq!(trouble.why[1], probe);
}

#[test]
fn failed_image_pull_is_the_cause_with_its_reason() {
    let status = json!({ "state": { "waiting": {
        "reason": "ImagePullBackOff", "message": "Back-off pulling image \"app:1\"",
    } } });
    let mut found = found("web", Some(with_container("web", "Pending", &status)));
    let why = "Failed to pull image \"app:1\": registry.test does not resolve";
    found.events = vec![event("web", "Failed", why)];
    let report = explained(&found);
    let headline = "is not ready on node n1: the image app:1 of container main cannot be pulled";
    assert_eq!(report.headline, headline);
    assert_eq!(report.troubles[0].why, [format!("ImagePullBackOff: {why}")]);
    assert!(report.troubles[0].help[0].contains("imagePullSecrets"));
}

#[test]
fn failed_mount_is_the_cause() {
    let waiting = json!({ "state": { "waiting": { "reason": "ContainerCreating" } } });
    let mut found = found("web", Some(with_container("web", "Pending", &waiting)));
    let why = "MountVolume.SetUp failed for volume \"x\" : secret \"x\" not found";
    found.events = vec![event("web", "FailedMount", why)];
    let report = explained(&found);
    assert_eq!(
        report.headline,
        "is not ready on node n1: a volume cannot be mounted"
    );
    assert_eq!(report.troubles[0].why, [format!("FailedMount: {why}")]);
}

/// Two nodes; the pod requires a label of one of these values.
fn requires(key: &str, values: &[&str]) -> Found {
    let mut web = pod("web", None, &json!({ "cpu": "1" }));
    web["spec"]["affinity"]["nodeAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": key, "operator": "In", "values": values }] },
        ] },
    });
    let mut found = found("web", Some(web));
    let mut n2 = node("n2", "4", &json!({}));
    n2["metadata"]["labels"]["disk"] = json!("hdd");
    found.snapshot = Some(Snapshot {
        nodes: vec![typed(node("n1", "4", &json!({}))), typed(n2)],
        ..Snapshot::default()
    });
    found
}

#[test]
fn required_affinity_names_the_label_that_is_missing() {
    let found = requires("disk", &["ssd"]);
    let text = flat(&shown(&found, 200));
    assert!(text.contains("(requires disk in (ssd))"), "{text}");
    assert!(
        text.contains("(requires disk in (ssd), the node has hdd)"),
        "{text}"
    );
    let fixes = explained(&found).pending.unwrap().fixes;
    assert_eq!(fixes, ["n1: kubectl label node n1 disk=ssd"]);
}

#[test]
fn advice_never_changes_identity_labels_of_nodes() {
    for key in [
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "node-role.kubernetes.io/gpu",
        "beta.kubernetes.io/os",
        "example.k8s.io/pool",
    ] {
        for is_selector in [true, false] {
            let mut found = requires(key, &["n9"]);
            if is_selector {
                let spec = found.pod.as_mut().unwrap().spec.as_mut().unwrap();
                spec.affinity = None;
                let selector = [(key.to_owned(), "n9".to_owned())];
                spec.node_selector = Some(selector.into_iter().collect());
            }
            let fixes = explained(&found).pending.unwrap().fixes;
            assert!(!fixes.is_empty(), "{key}");
            let advice = fixes.join("\n");
            assert!(!advice.contains("kubectl label"), "{key}: {advice}");
        }
    }
    let fixes = explained(&requires("node-restriction.kubernetes.io/team", &["a"]));
    let fixes = fixes.pending.unwrap().fixes;
    assert!(
        fixes[0].contains("kubectl label"),
        "it is the administrator's: {fixes:?}"
    );
}

#[test]
fn no_advice_is_to_tolerate_a_node_that_is_not_ready() {
    let taints = json!({ "taints": [
        { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" },
    ] });
    let mut found = found("web", Some(pod("web", None, &json!({}))));
    found.snapshot = Some(Snapshot {
        nodes: vec![typed(node("n1", "4", &taints))],
        ..Snapshot::default()
    });
    let pending = explained(&found).pending.unwrap();
    let advice = "n1: see what is wrong with the node: plimsoll explain node n1";
    assert_eq!(pending.fixes, [advice]);
    assert_eq!(pending.preemption, "Evicting pods would not help.");
}

#[test]
fn anti_affinity_names_the_pod_in_the_way() {
    let terms = json!([{
        "labelSelector": { "matchLabels": { "app": "web" } },
        "topologyKey": "kubernetes.io/hostname",
    }]);
    let anti = json!({ "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": terms,
    } });
    let mut second = pod("web-2", None, &json!({ "cpu": "1" }));
    second["metadata"]["labels"] = json!({ "app": "web" });
    second["spec"]["affinity"] = anti;
    let mut first = pod("web-1", Some("n1"), &json!({ "cpu": "1" }));
    first["metadata"]["labels"] = json!({ "app": "web" });
    let mut found = found("web-2", Some(second));
    found.snapshot = Some(Snapshot {
        nodes: vec![typed(node("n1", "4", &json!({})))],
        pods: vec![typed(first)],
        ..Snapshot::default()
    });
    let pending = explained(&found).pending.unwrap();
    let details = &pending.nodes[0].rejections[0].details;
    let expected = "allows no pod with app=web on this node, where default/web-1 is";
    assert_eq!(details, &[expected]);
}

#[test]
fn insufficient_cpu_names_the_pods_that_request_it() {
    let mut found = found("big", Some(pod("big", None, &json!({ "cpu": "3" }))));
    found.snapshot = Some(snapshot());
    let pending = explained(&found).pending.unwrap();
    let details = &pending.nodes[0].rejections[0].details;
    let expected = "requests cpu 3, 2500m of 4 free: default/web requests 1500m";
    assert_eq!(details, &[expected]);
}

fn of_volcano() -> Found {
    let mut web = pod("web", None, &json!({}));
    web["spec"]["schedulerName"] = json!("volcano");
    let mut found = found("web", Some(web));
    found.snapshot = Some(snapshot());
    found.scheduler = Some(SchedulerTraces {
        name: "volcano".to_owned(),
        now: now(),
        ..SchedulerTraces::default()
    });
    found
}

#[test]
fn pod_of_another_scheduler_shows_whether_it_runs() {
    let mut found = of_volcano();
    let report = explained(&found);
    let headline = "is pending: its scheduler volcano does not seem to run";
    assert_eq!(report.headline, headline);
    let text = flat(&shown(&found, 100));
    assert!(
        text.contains("SCHEDULER volcano There is no lease, no pod and no event"),
        "{text}"
    );
    assert!(
        text.contains("WHAT WOULD HELP start scheduler volcano, or create"),
        "{text}"
    );
    assert!(!text.contains("has not tried"), "{text}");

    let lease = json!({
        "metadata": { "name": "volcano", "namespace": "volcano-system" },
        "spec": {
            "holderIdentity": "pod-1", "renewTime": "2026-01-01T00:09:58.000000Z",
            "leaseDurationSeconds": 15,
        },
    });
    found.scheduler.as_mut().unwrap().leases = vec![typed(lease.clone())];
    let report = explained(&found);
    assert_eq!(
        report.headline,
        "is pending: it waits for scheduler volcano"
    );
    let signs = report.pending.unwrap().scheduler_signs;
    assert_eq!(
        signs,
        ["pod-1 renewed its lease volcano-system/volcano 2.0s ago."]
    );

    let mut expired = lease;
    expired["spec"]["renewTime"] = json!("2026-01-01T00:05:00.000000Z");
    found.scheduler.as_mut().unwrap().leases = vec![typed(expired)];
    assert_eq!(explained(&found).headline, headline);
}

#[test]
fn stopped_scheduler_is_named_even_if_a_node_fits() {
    let mut found = found("web", Some(pod("web", None, &json!({}))));
    found.snapshot = Some(snapshot());
    let lease = json!({
        "metadata": { "name": "kube-scheduler", "namespace": "kube-system" },
        "spec": {
            "holderIdentity": "m1", "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseDurationSeconds": 15,
        },
    });
    found.scheduler = Some(SchedulerTraces {
        name: "default-scheduler".to_owned(),
        leases: vec![typed(lease)],
        now: now(),
        ..SchedulerTraces::default()
    });
    assert_eq!(
        explained(&found).headline,
        "is pending: the scheduler does not run"
    );
}

#[test]
fn preemptor_names_the_pods_it_preempts() {
    let mut high = pod("high", None, &json!({ "cpu": "3" }));
    high["spec"]["priority"] = json!(1000);
    high["status"]["nominatedNodeName"] = json!("n1");
    let mut found = found("high", Some(high));
    found.snapshot = Some(snapshot());
    found.preemptions = vec![event(
        "web",
        "Preempted",
        "Preempted by pod uid-high on node n1",
    )];
    found.preemptions[0].involved_object.namespace = Some("default".to_owned());
    let report = explained(&found);
    let headline = "is pending: it waits for pods that make room for it on n1 to end";
    assert_eq!(report.headline, headline);
    let text = shown(&found, 80);
    let expected = "EVICTED TO MAKE ROOM FOR IT\n  default/web from node n1, 2m ago\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn deleted_pod_shows_the_cause_known_from_events() {
    let killing = event("web", "Killing", "Stopping container main");
    let scheduled = event(
        "web",
        "Scheduled",
        "Successfully assigned default/web to n1",
    );
    let mut gone = found("web", None);
    gone.events = vec![scheduled, killing];
    let report = explained(&gone);
    assert_eq!(report.headline, "was deleted on node n1");
    let why = report.ended.unwrap().why.join(" ");
    let expected = "It was deleted; node n1 stopped its containers at 2026-01-01T00:08:00Z. \
                    Events do not name the client that asked; an audit log does.";
    assert_eq!(why, expected);

    gone.cordoned_node = Some("n1".to_owned());
    let why = explained(&gone).ended.unwrap().why.join(" ");
    assert!(
        why.contains("Node n1 is cordoned, as kubectl drain leaves it"),
        "{why}"
    );

    let mut by_owner = event("web-5d4", "SuccessfulDelete", "Deleted pod: web");
    by_owner.involved_object.kind = Some("ReplicaSet".to_owned());
    gone.deletions = vec![by_owner];
    let why = explained(&gone).ended.unwrap().why.join(" ");
    let expected =
        "ReplicaSet web-5d4 deleted it: it was scaled down, or its template has changed.";
    assert_eq!(why, expected);

    let taint = event(
        "web",
        "TaintManagerEviction",
        "Marking for deletion Pod default/web",
    );
    gone.events.push(taint);
    let why = explained(&gone).ended.unwrap().why.join(" ");
    assert!(why.contains("node n1 got a NoExecute taint"), "{why}");
}

#[test]
fn terminating_pod_shows_finalizers_and_grace_period() {
    let mut web = pod("web", Some("n1"), &json!({}));
    web["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:30Z");
    web["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    web["metadata"]["finalizers"] = json!(["example.org/keep"]);
    let report = explained(&found("web", Some(web)));
    assert_eq!(report.headline, "is being deleted on node n1");
    let why = report.ended.unwrap().why.join(" ");
    assert!(
        why.contains("until 2026-01-01T00:10:30Z to end (grace period 30 s)"),
        "{why}"
    );
    assert!(
        why.contains("these finalizers are removed: example.org/keep"),
        "{why}"
    );
}

#[test]
fn scheduled_sorts_before_started_in_the_same_second() {
    let at = |reason: &str, time: &str| {
        let mut event = event("web", reason, "");
        event.event_time = Some(typed(json!(time)));
        event
    };
    let mut found = found("web", Some(pod("web", Some("n1"), &json!({}))));
    // The kubelet's times are whole seconds, the scheduler's are not.
    found.events = vec![
        at("Started", "2026-01-01T00:08:00.000000Z"),
        at("Killing", "2026-01-01T00:08:01.000000Z"),
        at("Created", "2026-01-01T00:08:00.000000Z"),
        at("Scheduled", "2026-01-01T00:08:00.700000Z"),
        at("FailedScheduling", "2026-01-01T00:07:59.900000Z"),
    ];
    let report = explained(&found);
    let reasons: Vec<&str> = report.events.iter().map(|row| &*row.reason).collect();
    let order = [
        "FailedScheduling",
        "Scheduled",
        "Created",
        "Started",
        "Killing",
    ];
    assert_eq!(reasons, order);
}

#[test]
fn an_owner_shows_its_pods_and_explains_the_first_that_fails() {
    let status = json!({
        "restartCount": 4, "lastState": ended(3, "Error"),
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
    });
    let crashing = with_container("web-2", "Running", &status);
    let mut ready = pod("web-1", Some("n1"), &json!({}));
    ready["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    let mut refused = event("web-5d4", "FailedCreate", "exceeded quota: pods");
    refused.type_ = Some("Warning".to_owned());
    let owner = FoundOwner {
        kind: OwnerKind::Deployment,
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        wanted: 3,
        succeeded: 0,
        conditions: Vec::new(),
        pods: vec![typed(ready), typed(crashing.clone())],
        events: vec![refused],
    };
    let first = owner.first_in_trouble().unwrap();
    assert_eq!(first.metadata.name.as_deref(), Some("web-2"));
    let first = explained(&found("web-2", Some(crashing)));
    let report = explain_owner(&owner, Some(first));
    let text = render::owner(&report, Detail::Brief, now(), screen(100));
    let head = "DEPLOYMENT default/web has 1 of 3 pods ready\n\nWHY\n  \
                FailedCreate: exceeded quota: pods\n\n\
                POD     READY   STATUS             RESTARTS   NODE\n\
                web-1   yes     Running            0          n1\n\
                web-2   no      CrashLoopBackOff   4          n1\n\n\
                POD default/web-2 is not ready on node n1: container main ends with exit code 3";
    assert!(text.starts_with(head), "{text}");
}
