//! Which set has the deployment's template, and how it is made.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::template_hash::compute_hash;

use super::KIND;
use super::annotations::{self, REVISION};
use super::condition::{
    self, FOUND_NEW_REPLICA_SET, NEW_REPLICA_SET_CREATED, PROGRESSING, REPLICA_SET_CREATE_ERROR,
};
use super::desired_state::DesiredState;
use super::rollout::{Rollout, SetState};

const HASH_LABEL: &str = "pod-template-hash";
const LONGEST_NAME: usize = 253;

/// Whether two templates describe the same pods: equal but for the hash label.
pub fn is_same_template(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    let plain = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        let metadata = template.metadata.get_or_insert_default();
        if let Some(labels) = &mut metadata.labels {
            labels.remove(HASH_LABEL);
        }
        metadata.labels.take_if(|labels| labels.is_empty());
        metadata
            .annotations
            .take_if(|annotations| annotations.is_empty());
        template
    };
    plain(a) == plain(b)
}

impl Rollout<'_> {
    /// Finds the oldest set with the deployment's template and brings its annotations up to date.
    pub(super) fn find_newest(&mut self) {
        let Some(spec) = &self.view.deployment.spec else {
            return;
        };
        self.newest = self.sets.iter().position(|set| {
            let template = set
                .found
                .spec
                .as_ref()
                .and_then(|spec| spec.template.as_ref());
            template.is_some_and(|template| is_same_template(template, &spec.template))
        });
        let Some(index) = self.newest else {
            return;
        };
        let revision = self.next_revision();
        let state = &mut self.sets[index];
        let mut metadata = state.desired.metadata.clone();
        if annotations::sync_newest(&self.deployment.metadata, &mut metadata, revision) {
            state.desired.metadata = metadata;
        }
        let set_spec = state.desired.spec.get_or_insert_default();
        if set_spec.min_ready_seconds.unwrap_or(0) != self.wanted.min_ready_seconds.unwrap_or(0) {
            set_spec.min_ready_seconds = self.wanted.min_ready_seconds;
        }
        let name = state.name().to_owned();
        let revision = annotations::get(&state.desired.metadata, REVISION)
            .unwrap_or_default()
            .to_owned();
        annotations::set(&mut self.deployment.metadata, REVISION, revision);
        let status = self.deployment.status.get_or_insert_default();
        let asks_progress = self.wanted.progress_deadline_seconds.is_some();
        if asks_progress && condition::get(status, PROGRESSING).is_none() {
            let message = format!("Found new replica set {name:?}");
            let found = condition::new(
                PROGRESSING,
                "True",
                FOUND_NEW_REPLICA_SET,
                message,
                self.view.now,
            );
            condition::set(status, found);
        }
    }

    fn next_revision(&self) -> i64 {
        let old = self.old().into_iter();
        let revisions =
            old.filter_map(|index| annotations::revision(&self.sets[index].found.metadata));
        revisions.max().unwrap_or(0).max(0).saturating_add(1)
    }

    /// Makes the set for the deployment's template, unless there is one.
    pub(super) fn ensure_newest(&mut self) {
        self.find_newest();
        if self.newest.is_some() {
            return;
        }
        let revision = self.next_revision();
        let mut set = build(&self.deployment, &self.wanted);
        annotations::sync_newest(&self.deployment.metadata, &mut set.metadata, revision);
        annotations::remember_sizes(&mut set.metadata, &self.wanted);
        let size = self.size_of_newest(0);
        set.spec.get_or_insert_default().replicas = Some(size);
        let name = set.metadata.name.clone().unwrap_or_default();
        let mut notes = Vec::new();
        if size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            notes.push(Note::normal("ScalingReplicaSet", message));
        }
        self.newest = Some(self.sets.len());
        self.sets.push(SetState {
            found: set.clone(),
            desired: set,
            notes,
            is_created: true,
        });
        annotations::set(
            &mut self.deployment.metadata,
            REVISION,
            revision.to_string(),
        );
        if self.wanted.progress_deadline_seconds.is_some() {
            let message = format!("Created new replica set {name:?}");
            let created = condition::new(
                PROGRESSING,
                "True",
                NEW_REPLICA_SET_CREATED,
                message,
                self.view.now,
            );
            condition::set(self.deployment.status.get_or_insert_default(), created);
        }
    }
}

/// The set for the deployment's template, without pods. Its name follows from the template, so
/// that making it twice makes it once.
fn build(deployment: &Deployment, wanted: &DesiredState) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let hash = compute_hash(&spec.template, collisions);
    let mut template = spec.template;
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let labels: BTreeMap<String, String> = labels.clone();
    let mut selector: LabelSelector = spec.selector;
    let match_labels = selector.match_labels.get_or_insert_default();
    match_labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let metadata = &deployment.metadata;
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(set_name(
                metadata.name.as_deref().unwrap_or_default(),
                &hash,
            )),
            namespace: metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![KIND.reference_to(metadata)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: wanted.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

/// Deployment and hash; a long name is cut to leave room for the hash.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(1 + hash.len());
    let end = deployment.floor_char_boundary(room.min(deployment.len()));
    format!("{}-{hash}", &deployment[..end])
}

/// The deployment to be written when its set could not be created, and the event.
pub fn on_failed_creation(
    deployment: &Deployment,
    set_name: &str,
    error: &str,
    now: Timestamp,
) -> (Option<Deployment>, Note) {
    let message = format!("Failed to create new replica set {set_name:?}: {error}");
    let note = Note::warning(REPLICA_SET_CREATE_ERROR, message.clone());
    let wanted = DesiredState::from_deployment(deployment);
    let failed = wanted.progress_deadline_seconds.map(|_| {
        let mut deployment = deployment.clone();
        let failed = condition::new(PROGRESSING, "False", REPLICA_SET_CREATE_ERROR, message, now);
        condition::set(deployment.status.get_or_insert_default(), failed);
        deployment
    });
    (failed, note)
}

/// The deployment to be written when the name of its set is taken by a set with another template:
/// the raised count gives another name.
pub fn on_hash_collision(deployment: &Deployment) -> Deployment {
    let mut deployment = deployment.clone();
    let status = deployment.status.get_or_insert_default();
    status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
    deployment
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_are_the_same_but_for_the_hash() {
        let template = |value| serde_json::from_value::<PodTemplateSpec>(value).unwrap();
        let plain =
            template(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}));
        let hashed = template(
            json!({"metadata": {"labels": {"a": "b", HASH_LABEL: "x"}}, "spec": {"containers": []}}),
        );
        let other =
            template(json!({"metadata": {"labels": {"a": "c"}}, "spec": {"containers": []}}));
        assert!(is_same_template(&plain, &hashed));
        assert!(!is_same_template(&plain, &other));
        let bare = template(json!({"spec": {"containers": []}}));
        let empty = template(
            json!({"metadata": {"creationTimestamp": null, "labels": {}}, "spec": {"containers": []}}),
        );
        assert!(is_same_template(&bare, &empty));
    }

    #[test]
    fn long_names_are_cut_for_the_hash() {
        assert_eq!(set_name("web", "5d9c"), "web-5d9c");
        let name = set_name(&"a".repeat(253), "0123456789");
        assert_eq!(name.len(), 253);
        assert!(name.ends_with("a-0123456789"));
    }

    #[test]
    fn collisions_are_counted() {
        let deployment = Deployment::default();
        let once = on_hash_collision(&deployment);
        let twice = on_hash_collision(&once);
        assert_eq!(twice.status.unwrap().collision_count, Some(2));
    }
}
