//! The revisions of a daemon set's template.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

use crate::workloads::pod_state;
use crate::workloads::revision::{REVISION_HASH, restores_same, revision_data, revision_metadata};
use crate::workloads::template_hash::compute_hash;

use super::KIND;

/// The work on the revisions that comes before anything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPlan {
    /// The revision with the set's template; `None` if it is to be made, see [`snapshot`].
    pub current: Option<ControllerRevision>,
    /// The number the current revision has or shall have.
    pub revision: i64,
    /// Revisions to be written: they lacked a label, or became current again.
    pub update: Vec<ControllerRevision>,
    /// Names of revisions that say the same as the current one.
    pub duplicates: Vec<String>,
    /// The other revisions.
    pub old: Vec<ControllerRevision>,
}

/// Sorts the set's revisions. Of several with its template the one with the highest number counts.
pub fn plan_history(set: &DaemonSet, revisions: &[&ControllerRevision]) -> HistoryPlan {
    let template = set.spec.as_ref().map(|spec| spec.template.clone());
    let data = revision_data(&template.unwrap_or_default());
    let mut plan = HistoryPlan::default();
    let mut current: Vec<ControllerRevision> = Vec::new();
    for revision in revisions {
        let mut revision = (*revision).clone();
        let name = revision.metadata.name.clone().unwrap_or_default();
        let labels = revision.metadata.labels.get_or_insert_default();
        if !labels.contains_key(REVISION_HASH) {
            labels.insert(REVISION_HASH.to_owned(), name);
            plan.update.push(revision.clone());
        }
        let says_same = revision
            .data
            .as_ref()
            .is_some_and(|found| restores_same(&found.0, &data));
        if says_same {
            current.push(revision);
        } else {
            plan.old.push(revision);
        }
    }
    let highest = plan.old.iter().map(|revision| revision.revision).max();
    let next = highest.unwrap_or(0).max(0).saturating_add(1);
    current.sort_by_key(|revision| revision.revision);
    plan.current = current.pop();
    plan.duplicates = current
        .into_iter()
        .filter_map(|revision| revision.metadata.name)
        .collect();
    plan.revision = match &mut plan.current {
        Some(current) if current.revision < next => {
            current.revision = next;
            plan.update
                .retain(|revision| revision.metadata.name != current.metadata.name);
            plan.update.push(current.clone());
            next
        }
        Some(current) => current.revision,
        None => next,
    };
    plan
}

/// The revision of the set's template, not yet created.
pub fn snapshot(set: &DaemonSet, revision: i64) -> ControllerRevision {
    let template = set
        .spec
        .as_ref()
        .map(|spec| spec.template.clone())
        .unwrap_or_default();
    let collisions = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let hash = compute_hash(&template, collisions);
    let data = revision_data(&template);
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let mut labels = template.metadata.and_then(|m| m.labels).unwrap_or_default();
    labels.insert(REVISION_HASH.to_owned(), hash.clone());
    ControllerRevision {
        metadata: revision_metadata(&set.metadata, KIND, format!("{name}-{hash}"), labels),
        data: Some(RawExtension(data)),
        revision,
    }
}

/// Names of old revisions beyond the limit that no pod is of, from the oldest.
pub fn cleanup(limit: i32, old: &[ControllerRevision], pods: &[&Pod]) -> Vec<String> {
    let excess = old
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(0));
    let live: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| pod_state::label(pod, REVISION_HASH))
        .collect();
    let mut old: Vec<&ControllerRevision> = old.iter().collect();
    old.sort_by_key(|revision| revision.revision);
    let is_live = |revision: &ControllerRevision| {
        let labels = revision.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(REVISION_HASH))
            .is_some_and(|hash| live.contains(hash.as_str()))
    };
    let unused = old.into_iter().filter(|revision| !is_live(revision));
    unused
        .take(excess)
        .filter_map(|revision| revision.metadata.name.clone())
        .collect()
}
