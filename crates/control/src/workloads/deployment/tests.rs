//! Deployments through whole roll-outs: a world of one deployment whose sets follow orders.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::annotations::{DESIRED_REPLICAS, REVISION, REVISION_HISTORY, ROLLBACK_TO};
use super::rollout::{Action, Plan, View, reconcile, replicas};

/// A deployment and its sets; `available` pods of each set are up to the test.
struct World {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    now: i64,
    notes: Vec<Note>,
}

impl World {
    fn new(spec: Value) -> World {
        let mut spec = spec;
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        spec["template"] = template("v1");
        let deployment = json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 1},
            "spec": spec,
        });
        World {
            deployment: serde_json::from_value(deployment).unwrap(),
            sets: Vec::new(),
            pods: Vec::new(),
            now: 1_000_000,
            notes: Vec::new(),
        }
    }

    fn rolling(replicas: i32, surge: Value, unavailable: Value) -> World {
        World::new(json!({
            "replicas": replicas, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        }))
    }

    fn spec(&mut self) -> &mut k8s_openapi::api::apps::v1::DeploymentSpec {
        self.deployment.metadata.generation = self.deployment.metadata.generation.map(|g| g + 1);
        self.deployment.spec.as_mut().unwrap()
    }

    fn set_image(&mut self, image: &str) {
        self.spec().template = serde_json::from_value(template(image)).unwrap();
    }

    fn plan(&self) -> Plan {
        let sets: Vec<&ReplicaSet> = self.sets.iter().collect();
        let pods: Vec<&Pod> = self.pods.iter().collect();
        reconcile(View {
            deployment: &self.deployment,
            sets: &sets,
            pods: &pods,
            now: Timestamp::from_secs(self.now),
        })
    }

    /// One pass, carried out.
    fn step(&mut self) -> Plan {
        let plan = self.plan();
        for action in plan.actions.clone() {
            match action {
                Action::Create(set, notes) => {
                    let mut set = *set;
                    set.metadata.uid = set.metadata.name.clone();
                    set.metadata.generation = Some(1);
                    self.now += 1;
                    set.metadata.creation_timestamp =
                        Some(Timestamp::from_secs(self.now).to_api_seconds());
                    self.sets.push(set);
                    self.notes.extend(notes);
                }
                Action::Update(set, notes) => {
                    let place = self
                        .sets
                        .iter_mut()
                        .find(|s| s.metadata.name == set.metadata.name);
                    *place.unwrap() = *set;
                    self.notes.extend(notes);
                }
                Action::Delete(name) => self
                    .sets
                    .retain(|s| s.metadata.name.as_ref() != Some(&name)),
                Action::UpdateDeployment(deployment, notes) => {
                    self.deployment = *deployment;
                    self.notes.extend(notes);
                }
                Action::RecordEvent(note) => self.notes.push(note),
            }
        }
        if let Some(deployment) = &plan.status {
            self.deployment = (**deployment).clone();
        }
        plan
    }

    /// The sets have the pods in their specs; `available` says how many of them are up.
    fn obey(&mut self, available: impl Fn(usize, i32) -> i32) {
        for (index, set) in self.sets.iter_mut().enumerate() {
            let size = replicas(set);
            let up = available(index, size).clamp(0, size);
            set.status = Some(ReplicaSetStatus {
                replicas: size,
                ready_replicas: Some(up),
                available_replicas: Some(up),
                terminating_replicas: Some(0),
                observed_generation: set.metadata.generation,
                ..ReplicaSetStatus::default()
            });
        }
    }

    fn settle(&mut self) {
        for _ in 0..100 {
            let plan = self.step();
            self.obey(|_, size| size);
            if plan.actions.is_empty() && plan.status.is_none() {
                return;
            }
        }
        panic!("does not settle");
    }

    fn sizes(&self) -> Vec<i32> {
        self.sets.iter().map(replicas).collect()
    }

    fn annotation(&self, set: usize, key: &str) -> String {
        let annotations = self.sets[set].metadata.annotations.as_ref().unwrap();
        annotations.get(key).cloned().unwrap_or_default()
    }

    fn condition(&self, type_: &str) -> (String, String, String) {
        let conditions = self
            .deployment
            .status
            .as_ref()
            .unwrap()
            .conditions
            .clone()
            .unwrap();
        let found = conditions.into_iter().find(|c| c.type_ == type_);
        let found = found.unwrap_or_else(|| panic!("no condition {type_}"));
        (found.status, found.reason.unwrap(), found.message.unwrap())
    }

    fn messages(&self) -> Vec<&str> {
        self.notes
            .iter()
            .map(|note| note.message.as_str())
            .collect()
    }
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

#[test]
fn the_first_set_carries_hash_revision_owner_and_sizes() {
    let mut world = World::rolling(10, json!("25%"), json!("25%"));
    let plan = world.step();
    let set = &world.sets[0];
    let hash = set.metadata.labels.as_ref().unwrap()["pod-template-hash"].clone();
    assert_eq!(
        set.metadata.name.as_deref(),
        Some(format!("web-{hash}").as_str())
    );
    let spec = set.spec.as_ref().unwrap();
    assert_eq!(spec.replicas, Some(10));
    assert_eq!(
        spec.selector.match_labels.as_ref().unwrap()["pod-template-hash"],
        hash
    );
    assert_eq!(spec.selector.match_labels.as_ref().unwrap()["app"], "web");
    let owner = &set.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str(), owner.controller),
        ("Deployment", "d", Some(true))
    );
    let annotations = set.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        serde_json::to_value(annotations).unwrap(),
        json!({
            "deployment.kubernetes.io/desired-replicas": "10",
            "deployment.kubernetes.io/max-replicas": "13",
            "deployment.kubernetes.io/revision": "1",
        })
    );
    assert_eq!(
        world.messages(),
        [format!("Scaled up replica set web-{hash} from 0 to 10")]
    );
    let written = plan.status.unwrap();
    assert_eq!(written.metadata.annotations.unwrap()[REVISION], "1");
    let (status, reason, message) = world.condition("Progressing");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", "NewReplicaSetCreated")
    );
    assert_eq!(message, format!("Created new replica set \"web-{hash}\""));
    assert_eq!(world.condition("Available").1, "MinimumReplicasUnavailable");
}

#[test]
fn finished_rollout_sets_condition_and_stops() {
    let mut world = World::rolling(3, json!(1), json!(0));
    world.settle();
    let name = world.sets[0].metadata.name.clone().unwrap();
    assert_eq!(
        world.condition("Progressing"),
        (
            "True".into(),
            "NewReplicaSetAvailable".into(),
            format!("ReplicaSet {name:?} has successfully progressed.")
        )
    );
    assert_eq!(
        world.condition("Available"),
        (
            "True".into(),
            "MinimumReplicasAvailable".into(),
            "Deployment has minimum availability.".into()
        )
    );
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(
        (
            status.replicas,
            status.available_replicas,
            status.unavailable_replicas
        ),
        (Some(3), Some(3), None)
    );
    world.now += 100_000;
    assert_eq!(world.plan(), Plan::default());
}

#[test]
fn change_rolls_within_surge_and_unavailability() {
    let mut world = World::rolling(4, json!(1), json!(1));
    world.settle();
    world.set_image("v2");
    let plan = world.plan();
    assert!(matches!(
        plan.actions[..],
        [Action::Create(..), Action::Update(..)]
    ));
    let mut seen = Vec::new();
    for _ in 0..20 {
        world.step();
        seen.push(world.sizes());
        world.obey(|_, size| size);
    }
    seen.dedup();
    assert_eq!(
        seen,
        [vec![3, 1], vec![3, 2], vec![1, 2], vec![1, 4], vec![0, 4]]
    );
    assert_eq!(world.annotation(1, REVISION), "2");
}

#[test]
fn a_broken_version_leaves_the_old_one_serving() {
    let mut world = World::rolling(10, json!(3), json!(2));
    world.settle();
    world.set_image("broken");
    for _ in 0..10 {
        world.step();
        world.obey(|index, size| if index == 0 { size } else { 0 });
    }
    assert_eq!(world.sizes(), [8, 5]);
    // Going back frees the broken pods' places at once.
    world.set_image("v1");
    world.step();
    world.obey(|index, size| if index == 0 { size } else { 0 });
    world.settle();
    assert_eq!(world.sizes(), [10, 0]);
    assert_eq!(world.annotation(0, REVISION), "3");
    assert_eq!(world.annotation(0, REVISION_HISTORY), "1");
    assert_eq!(
        world.deployment.metadata.annotations.as_ref().unwrap()[REVISION],
        "3"
    );
}

#[test]
fn no_progress_within_the_deadline_is_reported_once() {
    let mut world = World::rolling(2, json!(1), json!(0));
    world.settle();
    world.set_image("broken");
    for _ in 0..5 {
        world.step();
        world.obey(|index, size| if index == 0 { size } else { 0 });
    }
    let wait = world
        .plan()
        .again_after
        .expect("a stuck roll-out is looked at again");
    assert!(wait.as_secs() <= 601, "{wait:?}");
    world.now += i64::try_from(wait.as_secs()).unwrap();
    world.step();
    let (status, reason, message) = world.condition("Progressing");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "ProgressDeadlineExceeded")
    );
    assert!(message.ends_with("has timed out progressing."), "{message}");
    assert_eq!(world.plan(), Plan::default());
}

#[test]
fn a_pause_allows_resizing_but_no_roll_out() {
    let mut world = World::rolling(4, json!(1), json!(1));
    world.settle();
    world.spec().paused = Some(true);
    world.set_image("v2");
    world.spec().replicas = Some(6);
    world.settle();
    assert_eq!(world.sizes(), [6]);
    assert_eq!(world.condition("Progressing").1, "DeploymentPaused");
    world.spec().paused = Some(false);
    world.step();
    assert_eq!(world.condition("Progressing").1, "NewReplicaSetCreated");
    world.settle();
    assert_eq!(world.sizes(), [0, 6]);
}

#[test]
fn a_resize_in_the_middle_is_spread_in_proportion() {
    let mut world = World::rolling(10, json!(3), json!(2));
    world.settle();
    world.set_image("v2");
    for _ in 0..4 {
        world.step();
        world.obey(|index, size| if index == 0 { size } else { 0 });
    }
    assert_eq!(world.sizes(), [8, 5]);
    world.spec().replicas = Some(15);
    world.step();
    assert_eq!(world.sizes(), [11, 7]);
    assert_eq!(world.annotation(0, DESIRED_REPLICAS), "15");
    assert_eq!(world.annotation(1, DESIRED_REPLICAS), "15");
    world.spec().replicas = Some(0);
    world.obey(|_, size| size);
    world.settle();
    assert_eq!(world.sizes(), [0, 0]);
}

#[test]
fn a_resize_to_the_size_a_set_has_already_does_not_stop_the_roll_out() {
    let mut world = World::rolling(2, json!(1), json!(2));
    world.settle();
    world.set_image("v2");
    world.step();
    assert_eq!(world.sizes(), [0, 1]);
    world.obey(|_, size| size);
    world.spec().replicas = Some(1);
    world.settle();
    assert_eq!(world.condition("Progressing").1, "NewReplicaSetAvailable");
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let mut world = World::new(json!({"replicas": 2, "strategy": {"type": "Recreate"}}));
    world.settle();
    assert_eq!(world.sizes(), [2]);
    world.set_image("v2");
    world.step();
    assert_eq!(world.sizes(), [0]);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": world.sets[0].metadata.uid, "controller": true}]);
    let leaving = json!({"metadata": {"name": "p", "ownerReferences": owner, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
    world.pods = vec![serde_json::from_value(leaving).unwrap()];
    world.obey(|_, size| size);
    world.step();
    assert_eq!(world.sizes(), [0]);
    world.pods.clear();
    world.settle();
    assert_eq!(world.sizes(), [0, 2]);
}

#[test]
fn old_replica_sets_are_kept_up_to_the_history_limit() {
    let mut world = World::rolling(1, json!(1), json!(0));
    world.spec().revision_history_limit = Some(2);
    for version in 0..6 {
        world.set_image(&version.to_string());
        world.settle();
    }
    let revisions: Vec<String> = (0..3).map(|set| world.annotation(set, REVISION)).collect();
    assert_eq!(revisions, ["4", "5", "6"]);
    assert_eq!(world.sets.len(), 3);
}

#[test]
fn rollback_by_annotation_restores_template_and_annotations() {
    let mut world = World::rolling(1, json!(1), json!(0));
    let annotate = |world: &mut World, key: &str, value: &str| {
        let annotations = world
            .deployment
            .metadata
            .annotations
            .get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
    };
    annotate(&mut world, "cause", "one");
    world.settle();
    annotate(&mut world, "cause", "two");
    world.set_image("v2");
    world.settle();
    annotate(&mut world, ROLLBACK_TO, "0");
    world.step();
    let annotations = world.deployment.metadata.annotations.clone().unwrap();
    assert_eq!(annotations["cause"], "one");
    assert!(!annotations.contains_key(ROLLBACK_TO));
    assert_eq!(
        world.messages().last(),
        Some(&"Rolled back deployment \"web\" to revision 1")
    );
    world.settle();
    assert_eq!(world.sizes(), [1, 0]);

    for (asked, message) in [
        ("9", "Unable to find the revision to rollback to."),
        (
            "3",
            "The rollback revision contains the same template as current deployment \"web\"",
        ),
    ] {
        annotate(&mut world, ROLLBACK_TO, asked);
        world.step();
        assert_eq!(world.messages().last(), Some(&message));
    }
}

#[test]
fn a_deployment_that_selects_everything_is_refused() {
    let mut world = World::rolling(1, json!(1), json!(0));
    world.spec().selector =
        k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::default();
    world.step();
    assert!(world.sets.is_empty());
    assert_eq!(
        world.messages(),
        ["This deployment is selecting all pods. A non-empty selector is required."]
    );
    assert_eq!(
        world
            .deployment
            .status
            .as_ref()
            .unwrap()
            .observed_generation,
        Some(2)
    );
}

#[test]
fn failure_of_set_is_a_deployment_condition() {
    let mut world = World::rolling(1, json!(1), json!(0));
    world.step();
    world.obey(|_, _| 0);
    let failure = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}]);
    world.sets[0].status.as_mut().unwrap().conditions = serde_json::from_value(failure).unwrap();
    world.step();
    assert_eq!(
        world.condition("ReplicaFailure"),
        ("True".into(), "FailedCreate".into(), "quota".into())
    );
}

proptest! {
    /// Whatever the pods do, sets keep to the surge, never delete an available pod that is still
    /// needed, and once the pods become ready the roll-out ends.
    #[test]
    fn bounds_hold_under_random_readiness(
        size in 1_i32..12,
        surge in 0_i32..5,
        unavailable in 0_i32..5,
        steps in prop::collection::vec((0_u8..4, any::<u8>(), any::<u8>(), any::<u8>()), 1..40),
    ) {
        let mut world = World::rolling(size, json!(surge), json!(unavailable));
        world.settle();
        for (kind, first, second, third) in steps {
            match kind {
                0 => world.set_image(&format!("v{}", first % 3)),
                1 if second % 4 == 0 => { world.spec().replicas = Some(i32::from(first % 12) + 1); }
                _ => {}
            }
            let wanted = super::desired_state::DesiredState::from_deployment(&world.deployment);
            let availability = |world: &World| -> i32 {
                world.sets.iter().map(|set| {
                    let up = set.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0);
                    up.min(replicas(set))
                }).sum()
            };
            let total_before: i32 = world.sizes().iter().sum();
            let available_before = availability(&world);
            world.step();
            let total: i32 = world.sizes().iter().sum();
            prop_assert!(total <= wanted.max_total().max(total_before), "{total} pods for {wanted:?}");
            // A resize may take available pods of the whole, never more than its proportion.
            if world.sizes().len() > 1 && total_before <= wanted.max_total() {
                let floor = available_before.min(wanted.min_available());
                prop_assert!(availability(&world) >= floor.min(total), "{:?} {wanted:?}", world.sizes());
            }
            let ups = [first, second, third];
            world.obey(|index, size| i32::from(ups[index % 3]) % (size + 1));
        }
        world.obey(|_, size| size);
        world.settle();
        let total: i32 = world.sizes().iter().sum();
        let wanted = super::desired_state::DesiredState::from_deployment(&world.deployment).replicas;
        prop_assert_eq!(total, wanted);
        prop_assert_eq!(world.condition("Progressing").1, "NewReplicaSetAvailable");
    }
}
