//! Decisions about stateful sets: pods and claims in, writes out.

mod claims;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workloads::revision::{REVISION_HASH, revision_data};

const NOW: &str = "2026-01-01T01:00:00Z";

fn set(spec: Value) -> StatefulSet {
    let mut full = json!({
        "replicas": 3, "serviceName": "web", "podManagementPolicy": "OrderedReady",
        "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "template": template("new"),
    });
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "set-uid", "generation": 2},
        "spec": full,
    }))
    .unwrap()
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn revision(image: &str) -> Revision {
    let template: PodTemplateSpec = serde_json::from_value(template(image)).unwrap();
    Revision {
        name: format!("web-{image}"),
        template,
    }
}

fn pod(ordinal: i32, image: &str, phase: &str, is_ready: bool) -> Pod {
    let ready = if is_ready { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("web-{ordinal}"), "namespace": "n", "uid": format!("pod-{ordinal}"),
            "labels": {"app": "web", REVISION_HASH: format!("web-{image}"), POD_NAME_LABEL: format!("web-{ordinal}")},
        },
        "spec": {"containers": []},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:59:50Z"},
        ]},
    }))
    .unwrap()
}

fn serving(ordinals: &[i32], image: &str) -> Vec<Pod> {
    let pods = ordinals
        .iter()
        .map(|ordinal| pod(*ordinal, image, "Running", true));
    pods.collect()
}

fn leaving(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Timestamp::from_rfc3339(NOW).unwrap().to_api());
    pod
}

type Claims = BTreeMap<String, Arc<PersistentVolumeClaim>>;

fn planned_with(set: &StatefulSet, pods: &[Pod], claims: &Claims) -> Plan {
    let pods: Vec<&Pod> = pods.iter().collect();
    plan(View {
        set,
        pods: &pods,
        claim: &|name| claims.get(name).cloned(),
        current: &revision("old"),
        update: &revision("new"),
        collisions: 0,
        now: Timestamp::from_rfc3339(NOW).unwrap(),
    })
}

fn planned(set: &StatefulSet, pods: &[Pod]) -> Plan {
    planned_with(set, pods, &Claims::new())
}

/// The steps as in `+web-0 -web-1`.
fn steps(plan: &Plan) -> String {
    let steps = plan.stages.iter().flatten().map(|step| {
        let sign = match step.verb {
            Some(Verb::Create) => "+",
            Some(Verb::Delete) => "-",
            Some(Verb::Update) => "~",
            None => "=",
        };
        format!("{sign}{}", step.pod)
    });
    steps.collect::<Vec<_>>().join(" ")
}

fn created(plan: &Plan) -> Vec<&Pod> {
    let actions = plan.stages.iter().flatten().flat_map(|step| &step.actions);
    let pods = actions.filter_map(|action| match action {
        Action::CreatePod(pod) => Some(&**pod),
        _ => None,
    });
    pods.collect()
}

#[test]
fn pods_are_made_one_after_the_other() {
    let set = set(json!({}));
    assert_eq!(steps(&planned(&set, &[])), "+web-0");
    let starting = [pod(0, "new", "Pending", false)];
    assert_eq!(steps(&planned(&set, &starting)), "");
    let running = [pod(0, "new", "Running", false)];
    assert_eq!(steps(&planned(&set, &running)), "");
    assert_eq!(steps(&planned(&set, &serving(&[0], "new"))), "+web-1");
    // One that is missing in the middle comes first.
    assert_eq!(steps(&planned(&set, &serving(&[0, 2], "new"))), "+web-1");
}

#[test]
fn parallel_pods_are_made_at_once() {
    let set = set(json!({"podManagementPolicy": "Parallel"}));
    let plan = planned(&set, &[pod(1, "new", "Pending", false)]);
    assert_eq!(steps(&plan), "+web-0 +web-2");
    assert_eq!(plan.order, Order::Parallel);
}

#[test]
fn a_pass_makes_a_bounded_number_of_pods() {
    let set = set(json!({"podManagementPolicy": "Parallel", "replicas": i32::MAX}));
    let plan = planned(&set, &[]);
    assert_eq!(plan.stages.iter().flatten().count(), BURST_REPLICAS);
    let set = self::set(json!({"replicas": i32::MAX, "ordinals": {"start": i32::MAX}}));
    assert_eq!(steps(&planned(&set, &[])), "");
}

#[test]
fn a_pod_has_the_identity_of_its_ordinal() {
    let set = set(json!({"ordinals": {"start": 5}}));
    let plan = planned(&set, &[]);
    let pod = serde_json::to_value(created(&plan)[0]).unwrap();
    assert_eq!(pod["metadata"]["name"], "web-5");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "app": "web",
            "apps.kubernetes.io/pod-index": "5",
            "controller-revision-hash": "web-new",
            "statefulset.kubernetes.io/pod-name": "web-5",
        })
    );
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "set-uid");
    assert_eq!(pod["spec"]["hostname"], "web-5");
    assert_eq!(pod["spec"]["subdomain"], "web");
}

#[test]
fn names_of_pods_have_the_ordinal_after_the_last_dash() {
    assert_eq!(ordinal_of("web", "web-0"), Some(0));
    assert_eq!(ordinal_of("web", "web-17"), Some(17));
    assert_eq!(ordinal_of("web-1", "web-1-2"), Some(2));
    for other in [
        "web",
        "web-",
        "web-01",
        "web--1",
        "web-x",
        "web-1-2",
        "webs-1",
        "web-9999999999",
    ] {
        assert_eq!(ordinal_of("web", other), None, "{other}");
    }
}

#[test]
fn an_ended_pod_is_deleted_and_made_again() {
    let set = set(json!({}));
    for phase in ["Failed", "Succeeded"] {
        let ended = pod(1, "new", phase, false);
        let mut pods = serving(&[0, 2], "new");
        pods.push(ended.clone());
        assert_eq!(steps(&planned(&set, &pods)), "-web-1");
        pods.pop();
        pods.push(leaving(ended));
        assert_eq!(steps(&planned(&set, &pods)), "");
    }
}

#[test]
fn scaling_down_deletes_from_the_highest_ordinal() {
    let one = set(json!({"replicas": 1}));
    let mut pods = serving(&[0, 1, 2], "new");
    assert_eq!(steps(&planned(&one, &pods)), "-web-2");
    pods[2] = leaving(pods[2].clone());
    assert_eq!(steps(&planned(&one, &pods)), "");
    let parallel = set(json!({"replicas": 1, "podManagementPolicy": "Parallel"}));
    let pods = serving(&[0, 1, 2], "new");
    assert_eq!(steps(&planned(&parallel, &pods)), "-web-2 -web-1");
    // Pods below the first ordinal are too many, too.
    let moved = set(json!({"replicas": 2, "ordinals": {"start": 1}}));
    assert_eq!(steps(&planned(&moved, &pods)), "-web-0");
}

#[test]
fn scaling_down_in_order_waits_for_unavailable_pods() {
    let one = set(json!({"replicas": 1}));
    // The first unavailable pod may go, others wait for it.
    let mut pods = serving(&[0, 2], "new");
    pods.push(pod(1, "new", "Running", false));
    assert_eq!(steps(&planned(&one, &pods)), "-web-2");
    let mut pods = serving(&[0, 1], "new");
    pods.push(pod(2, "new", "Running", false));
    assert_eq!(steps(&planned(&one, &pods)), "-web-2");
    let mut pods = serving(&[0], "new");
    pods.extend([
        pod(1, "new", "Running", false),
        pod(2, "new", "Running", false),
    ]);
    assert_eq!(steps(&planned(&one, &pods)), "");
    // Nothing goes while a pod that is to stay is not available.
    let mut pods = serving(&[1, 2], "new");
    pods.push(pod(0, "new", "Running", false));
    assert_eq!(steps(&planned(&one, &pods)), "");
}

#[test]
fn rolling_update_runs_from_the_highest_ordinal_to_the_partition() {
    let whole = set(json!({}));
    assert_eq!(
        steps(&planned(&whole, &serving(&[0, 1, 2], "old"))),
        "-web-2"
    );
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let part = set(json!({"updateStrategy": rolling}));
    let mut pods = serving(&[0, 1, 2], "old");
    assert_eq!(steps(&planned(&part, &pods)), "-web-2");
    pods[2] = pod(2, "new", "Running", true);
    assert_eq!(steps(&planned(&part, &pods)), "");
    // What is below the partition comes back as it was.
    let plan = planned(&part, &pods[1..]);
    assert_eq!(steps(&plan), "+web-0");
    assert_eq!(
        created(&plan)[0].metadata.labels.as_ref().unwrap()[REVISION_HASH],
        "web-old"
    );
    let plan = planned(&part, &pods[..2]);
    assert_eq!(
        created(&plan)[0].metadata.labels.as_ref().unwrap()[REVISION_HASH],
        "web-new"
    );
}

#[test]
fn the_partition_counts_from_the_first_ordinal() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let set = set(json!({"updateStrategy": rolling, "ordinals": {"start": 10}}));
    let pods = serving(&[10, 11, 12], "old");
    assert_eq!(steps(&planned(&set, &pods)), "-web-12");
    let plan = planned(&set, &pods[1..]);
    assert_eq!(
        created(&plan)[0].metadata.labels.as_ref().unwrap()[REVISION_HASH],
        "web-old"
    );
}

#[test]
fn an_update_with_a_limit_replaces_so_many_at_once() {
    let limited = |limit: Value| {
        let rolling = json!({"partition": 0, "maxUnavailable": limit});
        set(json!({
            "replicas": 5, "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        }))
    };
    let mut pods = serving(&[0, 1, 2, 3, 4], "old");
    assert_eq!(steps(&planned(&limited(json!(2)), &pods)), "-web-4 -web-3");
    assert_eq!(
        steps(&planned(&limited(json!("60%")), &pods)),
        "-web-4 -web-3 -web-2"
    );
    assert_eq!(steps(&planned(&limited(json!("1%")), &pods)), "-web-4");
    pods[1] = pod(1, "old", "Running", false);
    assert_eq!(steps(&planned(&limited(json!(2)), &pods)), "-web-4");
    assert_eq!(steps(&planned(&limited(json!(1)), &pods)), "");
}

#[test]
fn on_delete_replaces_nothing() {
    let set = set(json!({"updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(steps(&planned(&set, &serving(&[0, 1, 2], "old"))), "");
    let plan = planned(&set, &serving(&[0, 1], "old"));
    assert_eq!(
        created(&plan)[0].metadata.labels.as_ref().unwrap()[REVISION_HASH],
        "web-new"
    );
}

#[test]
fn a_pod_is_available_after_its_minimum_time() {
    let set = set(json!({"minReadySeconds": 30}));
    let plan = planned(&set, &serving(&[0], "new"));
    assert_eq!(steps(&plan), "");
    assert_eq!(plan.status.ready_replicas, Some(1));
    assert_eq!(plan.status.available_replicas, Some(0));
    let set = self::set(json!({"minReadySeconds": 10}));
    assert_eq!(steps(&planned(&set, &serving(&[0], "new"))), "+web-1");
}

#[test]
fn status_counts_pods_by_state_and_revision() {
    let set = set(json!({}));
    let mut pods = serving(&[0], "old");
    pods.push(pod(1, "new", "Running", false));
    pods.push(leaving(pod(2, "new", "Running", true)));
    let status = serde_json::to_value(planned(&set, &pods).status).unwrap();
    assert_eq!(
        status,
        json!({
            "replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "currentReplicas": 1,
            "updatedReplicas": 1, "currentRevision": "web-old", "updateRevision": "web-new",
            "collisionCount": 0, "observedGeneration": 2,
        })
    );
    let done = planned(&set, &serving(&[0, 1, 2], "new")).status;
    assert_eq!(done.current_revision.as_deref(), Some("web-new"));
    assert_eq!(done.current_replicas, Some(3));
    assert!(is_status_current(Some(&done), &done));
    // A pod that is deleted for an update is not of the current revision any more.
    let updating = planned(&set, &serving(&[0, 1, 2], "old")).status;
    assert_eq!(updating.current_replicas, Some(2));
    assert!(!is_status_current(Some(&done), &updating));
}

#[test]
fn a_set_that_is_being_deleted_does_nothing() {
    let mut set = set(json!({}));
    set.metadata.deletion_timestamp = Some(Timestamp::from_rfc3339(NOW).unwrap().to_api());
    let plan = planned(&set, &serving(&[0, 7], "old"));
    assert_eq!(steps(&plan), "");
    assert_eq!(plan.status.replicas, 2);
}

#[test]
fn an_adopted_pod_gets_its_labels() {
    let set = set(json!({"replicas": 1}));
    let mut pods = serving(&[0], "new");
    pods[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .remove(POD_NAME_LABEL);
    let plan = planned(&set, &pods);
    assert_eq!(steps(&plan), "~web-0");
    let Action::UpdatePod(pod) = &plan.stages[0][0].actions[0] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        pod.metadata.labels.as_ref().unwrap()[POD_NAME_LABEL],
        "web-0"
    );
}

fn stored(name: &str, image: &str, number: i64) -> ControllerRevision {
    let template: PodTemplateSpec = serde_json::from_value(template(image)).unwrap();
    serde_json::from_value(json!({
        "metadata": {"name": name}, "revision": number, "data": revision_data(&template),
    }))
    .unwrap()
}

#[test]
fn an_earlier_template_becomes_the_latest_revision_again() {
    let set = set(json!({}));
    assert_eq!(plan_history(&set, &mut []), Update::Create(1));
    let (old, new, other) = (
        stored("a", "old", 1),
        stored("b", "new", 2),
        stored("c", "x", 3),
    );
    assert_eq!(plan_history(&set, &mut [&old]), Update::Create(2));
    assert_eq!(
        plan_history(&set, &mut [&new, &old]),
        Update::Found(new.clone())
    );
    match plan_history(&set, &mut [&other, &new, &old]) {
        Update::Renumber(revision) => {
            assert_eq!(revision.metadata.name.as_deref(), Some("b"));
            assert_eq!(revision.revision, 4);
        }
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_revision_is_named_after_its_set_and_a_hash() {
    let mut set = set(json!({}));
    let revision = snapshot(&set, 3, 0);
    let name = revision.metadata.name.clone().unwrap();
    let hash = revision.metadata.labels.as_ref().unwrap()["controller.kubernetes.io/hash"].clone();
    assert_eq!(name, format!("web-{hash}"));
    assert_eq!(revision.revision, 3);
    assert_ne!(snapshot(&set, 3, 1).metadata.name, Some(name));
    set.metadata.name = Some("a".repeat(253));
    assert!(snapshot(&set, 3, 0).metadata.name.unwrap().len() <= 253);
}

#[test]
fn old_revisions_are_kept_up_to_the_limit() {
    let set = set(json!({"revisionHistoryLimit": 1}));
    let revisions: Vec<ControllerRevision> = (1..=5)
        .map(|number| stored(&format!("r{number}"), "x", number))
        .collect();
    let revisions: Vec<&ControllerRevision> = revisions.iter().collect();
    let mut used = pod(0, "x", "Running", true);
    let labels = used.metadata.labels.as_mut().unwrap();
    labels.insert(REVISION_HASH.to_owned(), "r1".to_owned());
    let unused = cleanup(&set, &revisions, ["r4", "r5"], &[&used]);
    assert_eq!(unused, ["r2"]);
}

proptest! {
    /// In order, at most one pod comes or goes at a time, and never one out of order.
    #[test]
    fn a_set_in_order_makes_one_step_at_a_time(
        replicas in 0_i32..5,
        partition in 0_i32..5,
        pods in proptest::collection::btree_map(0_i32..7, (any::<bool>(), 0_usize..4, any::<bool>()), 0..6),
    ) {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        let set = set(json!({"replicas": replicas, "updateStrategy": rolling}));
        let built = pods.iter().map(|(ordinal, (is_new, state, is_leaving))| {
            let (phase, is_ready) = [("Pending", false), ("Running", false), ("Running", true), ("Failed", false)][*state];
            let pod = pod(*ordinal, if *is_new { "new" } else { "old" }, phase, is_ready);
            if *is_leaving { leaving(pod) } else { pod }
        });
        let built: Vec<Pod> = built.collect();
        let plan = planned(&set, &built);
        let made: Vec<&Step> = plan.stages.iter().flatten().collect();
        prop_assert!(made.len() <= 1, "{:?}", steps(&plan));
        let is_serving = |ordinal: i32| pods.get(&ordinal).is_some_and(|(_, state, leaving)| *state == 2 && !leaving);
        if let Some(step) = made.first() {
            let ordinal = ordinal_of("web", &step.pod).unwrap();
            match step.verb {
                Some(Verb::Create) => prop_assert!((0..ordinal).all(is_serving)),
                Some(Verb::Delete) if pods[&ordinal].1 != 3 => {
                    prop_assert!((0..replicas).all(|o| is_serving(o) || o == ordinal));
                    prop_assert!(pods.keys().all(|o| *o <= ordinal || *o < replicas));
                }
                _ => {}
            }
        }
    }
}
