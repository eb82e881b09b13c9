//! Jobs through their lives, in a world where writes may fail.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::indexed_pod::{COMPLETION_INDEX, FAILURE_COUNT, IGNORED_FAILURE_COUNT};
use super::*;
use crate::workloads::pod_state;

/// A write that the world may let fail.
#[derive(Clone, Copy, PartialEq)]
enum Write {
    FirstStatus,
    Finalizer,
    LastStatus,
}

struct World {
    job: Job,
    pods: BTreeMap<String, Pod>,
    back_off: BackOff,
    now: i64,
    serial: usize,
    notes: Vec<Note>,
}

impl World {
    fn new(mut spec: Value) -> World {
        let template = json!({"metadata": {"labels": {"job": "j"}}, "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}});
        if spec.get("template").is_none() {
            spec["template"] = template;
        }
        let job = json!({"metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": spec});
        World {
            job: serde_json::from_value(job).unwrap(),
            pods: BTreeMap::new(),
            back_off: BackOff::default(),
            now: 1_000_000,
            serial: 0,
            notes: Vec::new(),
        }
    }

    fn step(&mut self) -> bool {
        self.step_unless(|_| false)
    }

    /// One pass; `fails` decides which writes fail. Returns whether anything was done.
    fn step_unless(&mut self, mut fails: impl FnMut(Write) -> bool) -> bool {
        if is_finished(&self.job) {
            return false;
        }
        let (job, pods) = (self.job.clone(), self.pods.clone());
        let list: Vec<&Pod> = pods.values().collect();
        let none = BTreeSet::new();
        let sync = plan(View {
            job: &job,
            pods: &list,
            expectations_are_met: true,
            released: &none,
            back_off: self.back_off,
            now: Timestamp::from_secs(self.now),
        });
        let done = self.carry_out(&sync.work);
        let has_worked = done != Done::default();
        let accounting = sync.conclude(done);
        let mut has_written = false;
        if let Some(status) = accounting.first.clone() {
            if fails(Write::FirstStatus) {
                return true;
            }
            has_written = true;
            self.job.status = Some(status);
            self.back_off = accounting.back_off;
            self.notes.extend(accounting.notes.clone());
        }
        let mut released = BTreeSet::new();
        let uids: Vec<String> = accounting.release_uids().map(str::to_owned).collect();
        for uid in uids {
            if fails(Write::Finalizer) {
                continue;
            }
            self.release(&uid);
            released.insert(uid);
        }
        let finished = accounting.finish(&released);
        if let Some(status) = finished.status {
            if fails(Write::LastStatus) {
                return true;
            }
            has_written = true;
            self.job.status = Some(status);
            self.notes.extend(finished.notes);
        }
        has_worked || has_written || !released.is_empty()
    }

    fn carry_out(&mut self, work: &PodWork<'_>) -> Done {
        let mut done = Done::default();
        match work {
            PodWork::Nothing | PodWork::Wait(_) => {}
            PodWork::Create(pods) => {
                for pod in pods {
                    self.serial += 1;
                    let mut pod = pod.clone();
                    let name = format!(
                        "{}{:05}",
                        pod.metadata.generate_name.clone().unwrap(),
                        self.serial
                    );
                    pod.metadata.name = Some(name.clone());
                    pod.metadata.uid = Some(name.clone());
                    pod.metadata.creation_timestamp =
                        Some(Timestamp::from_secs(self.now).to_api_seconds());
                    self.pods.insert(name, pod);
                    done.created += 1;
                }
            }
            PodWork::Discard(pods) | PodWork::Stop(pods) => {
                for pod in pods {
                    if matches!(work, PodWork::Discard(_)) {
                        self.release(pod_state::uid(pod));
                    }
                    self.delete(pod_state::name(pod));
                    done.deleted += 1;
                    done.deleted_ready += usize::from(pod_state::is_ready(pod));
                }
            }
        }
        done
    }

    fn release(&mut self, uid: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.metadata.finalizers = None;
            if pod.metadata.deletion_timestamp.is_some() {
                self.pods.remove(uid);
            }
        }
    }

    /// Pods vanish at once, unless their finalizer holds them.
    fn delete(&mut self, name: &str) {
        let Some(pod) = self.pods.get_mut(name) else {
            return;
        };
        pod.metadata.deletion_timestamp = Some(Timestamp::from_secs(self.now).to_api_seconds());
        match is_tracked(pod) {
            true => pod.status.get_or_insert_default().phase = Some("Failed".to_owned()),
            false => drop(self.pods.remove(name)),
        }
    }

    fn end(&mut self, name: &str, status: Value) {
        let pod = self.pods.get_mut(name).unwrap();
        pod.status = Some(serde_json::from_value(status).unwrap());
    }

    fn succeed(&mut self, name: &str) {
        self.end(name, json!({"phase": "Succeeded"}));
    }

    fn fail(&mut self, name: &str) {
        let time = Timestamp::from_secs(self.now).to_string();
        let state = json!({"terminated": {"exitCode": 1, "finishedAt": time}});
        let container = json!({"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        self.end(
            name,
            json!({"phase": "Failed", "containerStatuses": [container]}),
        );
    }

    fn settle(&mut self) {
        for _ in 0..100 {
            if !self.step() {
                return;
            }
        }
        panic!("does not settle");
    }

    fn active(&self) -> Vec<String> {
        let active = self.pods.values().filter(|pod| pod_state::is_active(pod));
        active.map(|pod| pod_state::name(pod).to_owned()).collect()
    }

    fn status(&self) -> Value {
        serde_json::to_value(&self.job.status).unwrap()
    }

    fn conditions(&self) -> Vec<String> {
        let status = self.job.status.clone().unwrap();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        conditions
            .map(|c| {
                format!(
                    "{}={} {}: {}",
                    c.type_,
                    c.status,
                    c.reason.unwrap(),
                    c.message.unwrap()
                )
            })
            .collect()
    }

    fn annotation(&self, pod: &str, key: &str) -> Option<&str> {
        pod_state::annotation(&self.pods[pod], key)
    }
}

#[test]
fn pods_are_created_counted_and_lose_finalizer() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 3}));
    world.step();
    assert_eq!(world.active(), ["j-00001", "j-00002"]);
    let pod = &world.pods["j-00001"];
    assert!(is_tracked(pod));
    assert_eq!(
        pod.metadata.owner_references.as_ref().unwrap()[0].kind,
        "Job"
    );
    assert_eq!(world.status()["active"], 2);
    world.succeed("j-00001");
    world.step();
    assert_eq!(world.status()["succeeded"], 1);
    assert_eq!(world.active().len(), 2);
    for name in world.active() {
        world.succeed(&name);
    }
    world.settle();
    assert_eq!(
        world.conditions(),
        [
            "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods",
            "Complete=True CompletionsReached: Reached expected number of succeeded pods",
        ]
    );
    let status = world.status();
    assert_eq!(
        (
            &status["succeeded"],
            &status["ready"],
            &status["terminating"]
        ),
        (&json!(3), &json!(0), &json!(0))
    );
    assert!(status["completionTime"].is_string());
    assert_eq!(world.notes, [Note::normal("Completed", "Job completed")]);
    assert!(world.pods.values().all(|pod| !is_tracked(pod)));
}

#[test]
fn job_without_completions_succeeds_after_one_success_and_all_ends() {
    let mut world = World::new(json!({"parallelism": 3}));
    world.step();
    world.succeed("j-00001");
    world.settle();
    assert_eq!(world.active().len(), 2);
    assert!(!is_finished(&world.job));
    world.succeed("j-00002");
    world.fail("j-00003");
    world.settle();
    assert!(is_finished(&world.job));
}

#[test]
fn failures_are_replaced_with_back_off_until_the_limit() {
    let mut world = World::new(json!({"parallelism": 1, "completions": 1, "backoffLimit": 1}));
    world.step();
    world.fail("j-00001");
    world.settle();
    assert_eq!(world.status()["failed"], 1);
    assert!(world.active().is_empty());
    world.now += 9;
    world.settle();
    assert!(world.active().is_empty());
    world.now += 1;
    world.settle();
    assert_eq!(world.active(), ["j-00002"]);
    world.fail("j-00002");
    world.settle();
    let text = "BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(
        world.conditions(),
        [
            format!("FailureTarget=True {text}"),
            format!("Failed=True {text}")
        ]
    );
    assert_eq!(world.status()["failed"], 2);
    assert_eq!(
        world.notes,
        [Note::warning(
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit"
        )]
    );
}

#[test]
fn a_job_that_fails_stops_its_other_pods_and_counts_them() {
    let mut world = World::new(json!({"parallelism": 3, "completions": 3, "backoffLimit": 0}));
    world.step();
    world.fail("j-00002");
    world.settle();
    assert_eq!(world.status()["failed"], 3);
    assert!(world.active().is_empty());
    assert!(is_finished(&world.job));
}

#[test]
fn a_deadline_ends_the_job() {
    let mut world =
        World::new(json!({"parallelism": 1, "completions": 1, "activeDeadlineSeconds": 30}));
    world.step();
    world.now += 29;
    world.settle();
    assert!(!is_finished(&world.job));
    world.now += 1;
    world.settle();
    assert_eq!(
        world.conditions()[1],
        "Failed=True DeadlineExceeded: Job was active longer than specified deadline"
    );
}

#[test]
fn a_suspended_job_has_no_pods_and_no_start() {
    let mut world =
        World::new(json!({"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 30}));
    world.step();
    let suspend = |world: &mut World, is: bool| world.job.spec.as_mut().unwrap().suspend = Some(is);
    suspend(&mut world, true);
    world.settle();
    assert!(world.pods.is_empty());
    assert_eq!(
        world.conditions(),
        ["Suspended=True JobSuspended: Job suspended"]
    );
    assert_eq!(world.status().get("startTime"), None);
    world.now += 1000;
    suspend(&mut world, false);
    world.settle();
    assert_eq!(world.active().len(), 2);
    assert_eq!(
        world.conditions(),
        ["Suspended=False JobResumed: Job resumed"]
    );
    let reasons: Vec<&str> = world.notes.iter().map(|note| &*note.reason).collect();
    assert_eq!(reasons, ["Suspended", "Resumed"]);
    assert_eq!(world.status()["failed"], Value::Null);
}

#[test]
fn indexed_pods_know_their_index() {
    let mut world =
        World::new(json!({"parallelism": 2, "completions": 3, "completionMode": "Indexed"}));
    world.step();
    assert_eq!(world.active(), ["j-0-00001", "j-1-00002"]);
    let pod = &world.pods["j-1-00002"];
    assert_eq!(pod_state::annotation(pod, COMPLETION_INDEX), Some("1"));
    assert_eq!(pod_state::label(pod, COMPLETION_INDEX), Some("1"));
    let spec = serde_json::to_value(pod.spec.as_ref().unwrap()).unwrap();
    assert_eq!(spec["hostname"], "j-1");
    assert_eq!(
        spec["containers"][0]["env"],
        json!([{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}])
    );
    world.succeed("j-1-00002");
    world.settle();
    assert_eq!(world.status()["completedIndexes"], "1");
    assert_eq!(world.active(), ["j-0-00001", "j-2-00003"]);
    for name in world.active() {
        world.succeed(&name);
    }
    world.settle();
    assert_eq!(world.status()["completedIndexes"], "0-2");
    assert_eq!(world.status()["succeeded"], 3);
}

#[test]
fn index_fails_alone_and_keeps_its_failure_count() {
    let mut world = World::new(json!({
        "parallelism": 2, "completions": 2, "completionMode": "Indexed",
        "backoffLimitPerIndex": 1, "backoffLimit": 2_147_483_647,
    }));
    world.step();
    world.fail("j-0-00001");
    world.settle();
    // The failed pod is held until its replacement has its count.
    assert!(is_tracked(&world.pods["j-0-00001"]));
    world.now += 10;
    world.settle();
    let replacement = world.active()[0].clone();
    assert_eq!(world.annotation(&replacement, FAILURE_COUNT), Some("1"));
    assert!(!is_tracked(&world.pods["j-0-00001"]));
    world.fail(&replacement);
    world.settle();
    assert_eq!(world.status()["failedIndexes"], "0");
    assert!(!is_finished(&world.job));
    world.succeed("j-1-00002");
    world.settle();
    assert_eq!(
        world.conditions()[1],
        "Failed=True FailedIndexes: Job has failed indexes"
    );
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    let mut world = World::new(json!({
        "parallelism": 3, "completions": 3, "completionMode": "Indexed",
        "backoffLimitPerIndex": 0, "maxFailedIndexes": 0, "backoffLimit": 2_147_483_647,
    }));
    world.step();
    world.fail("j-2-00003");
    world.settle();
    assert_eq!(
        world.conditions()[1],
        "Failed=True MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"
    );
}

#[test]
fn disruptions_can_be_left_uncounted() {
    let rule = json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let mut world = World::new(json!({
        "parallelism": 1, "completions": 1, "backoffLimit": 0, "completionMode": "Indexed",
        "backoffLimitPerIndex": 0, "podFailurePolicy": {"rules": [rule]},
    }));
    world.step();
    let disrupted =
        json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]});
    world.end("j-0-00001", disrupted);
    world.settle();
    world.now += 60;
    world.settle();
    let replacement = world.active()[0].clone();
    assert_eq!(world.annotation(&replacement, FAILURE_COUNT), Some("0"));
    assert_eq!(
        world.annotation(&replacement, IGNORED_FAILURE_COUNT),
        Some("1")
    );
    assert_eq!(world.status()["failed"], Value::Null);
    assert!(!is_finished(&world.job));
}

#[test]
fn a_policy_can_fail_the_job_at_once() {
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}});
    let mut world = World::new(
        json!({"parallelism": 2, "completions": 2, "podFailurePolicy": {"rules": [rule]}}),
    );
    world.step();
    world.fail("j-00001");
    world.settle();
    assert_eq!(
        world.conditions()[1],
        "Failed=True PodFailurePolicy: Container c for pod /j-00001 failed with exit code 1 matching FailJob rule at index 0"
    );
}

#[test]
fn some_successes_can_be_enough() {
    let mut world = World::new(json!({
        "parallelism": 3, "completions": 3, "completionMode": "Indexed",
        "successPolicy": {"rules": [{"succeededIndexes": "1"}]},
    }));
    world.step();
    world.succeed("j-1-00002");
    world.settle();
    assert_eq!(
        world.conditions(),
        [
            "SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 0",
            "Complete=True SuccessPolicy: Matched rules at index 0"
        ]
    );
    // Pods that were stopped by a success have not failed.
    assert_eq!(world.status()["failed"], Value::Null);
    assert_eq!(world.status()["completedIndexes"], "1");
}

#[test]
fn terminating_pod_is_replaced_at_once_or_when_failed() {
    for (policy, expected) in [("TerminatingOrFailed", 1), ("Failed", 0)] {
        let mut world =
            World::new(json!({"parallelism": 1, "completions": 1, "podReplacementPolicy": policy}));
        world.step();
        let pod = world.pods.get_mut("j-00001").unwrap();
        pod.metadata.deletion_timestamp = Some(Timestamp::from_secs(0).to_api_seconds());
        world.now += 1;
        world.settle();
        assert_eq!(world.active().len(), expected, "{policy}");
    }
}

#[test]
fn surplus_pods_are_discarded_uncounted() {
    let mut world = World::new(json!({"parallelism": 4, "completions": 8}));
    world.step();
    world.job.spec.as_mut().unwrap().parallelism = Some(1);
    world.settle();
    assert_eq!(world.pods.len(), 1);
    assert_eq!(world.status()["failed"], Value::Null);
}

#[test]
fn restarts_in_place_count_towards_the_limit() {
    let template = json!({"spec": {"containers": [], "restartPolicy": "OnFailure"}});
    let mut world = World::new(
        json!({"parallelism": 1, "completions": 1, "backoffLimit": 2, "template": template}),
    );
    world.step();
    let restarted = |count: i32| {
        json!({"phase": "Running", "containerStatuses": [
            {"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": count},
        ]})
    };
    world.end("j-00001", restarted(1));
    world.settle();
    assert!(!is_finished(&world.job));
    world.end("j-00001", restarted(2));
    world.settle();
    assert!(is_finished(&world.job));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However writes fail, in the end every pod that ended is counted once.
    #[test]
    fn no_pod_is_counted_twice_or_missed(
        parallelism in 1_i32..5,
        completions in 1_i32..10,
        is_indexed in any::<bool>(),
        script in prop::collection::vec((any::<u8>(), any::<u8>()), 0..80),
    ) {
        let mode = if is_indexed { "Indexed" } else { "NonIndexed" };
        let mut world = World::new(json!({
            "parallelism": parallelism, "completions": completions, "completionMode": mode, "backoffLimit": 1000,
        }));
        let (mut succeeded, mut failed) = (0, 0);
        for (choice, faults) in script {
            let mut bits = faults;
            world.step_unless(|_| {
                bits = bits.rotate_left(1);
                bits & 1 == 1
            });
            if is_finished(&world.job) {
                break;
            }
            let active = world.active();
            if let Some(name) = active.get(usize::from(choice) % (active.len() + 1)) {
                if choice & 0x80 == 0 {
                    world.succeed(name);
                    succeeded += 1;
                } else {
                    world.fail(name);
                    failed += 1;
                }
            }
            world.now += 700;
        }
        for _ in 0..100 {
            world.settle();
            if is_finished(&world.job) {
                break;
            }
            for name in world.active() {
                world.succeed(&name);
                succeeded += 1;
            }
            world.now += 700;
        }
        let status = world.job.status.clone().unwrap();
        prop_assert!(is_finished(&world.job));
        prop_assert_eq!(status.succeeded.unwrap_or(0), succeeded);
        prop_assert_eq!(status.failed.unwrap_or(0), failed);
        prop_assert_eq!(succeeded, completions);
        prop_assert!(world.pods.values().all(|pod| !is_tracked(pod)));
    }
}
