//! The revisions of a stateful set's template.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

use crate::workloads::pod_state;
use crate::workloads::revision::{REVISION_HASH, restores_same, revision_data, revision_metadata};
use crate::workloads::template_hash::compute_data_hash;

use super::KIND;
use super::identity::name_of;

/// The label of a revision with its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// Longer names of sets are cut in the names of their revisions.
const LONGEST_PREFIX: usize = 223;

/// The revision with the set's template.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// It is the latest one.
    Found(ControllerRevision),
    /// It is an earlier one, which becomes the latest: it has its new number.
    Renumber(ControllerRevision),
    /// It is to be made, with that number; see [`snapshot`].
    Create(i64),
}

/// Sorts the revisions of the set by number, and finds the one with its template.
pub fn plan_history(set: &StatefulSet, revisions: &mut [&ControllerRevision]) -> Update {
    revisions.sort_by_key(|revision| {
        let created = revision.metadata.creation_timestamp.clone();
        (revision.revision, created, revision.metadata.name.clone())
    });
    let data = data_of(set);
    let restores = |revision: &&&ControllerRevision| {
        let found = revision.data.as_ref();
        found.is_some_and(|found| restores_same(&found.0, &data))
    };
    let last = revisions.last();
    let next = last.map_or(1, |last| last.revision.saturating_add(1));
    if let Some(last) = last.filter(restores) {
        return Update::Found((*last).clone());
    }
    match revisions.iter().rev().find(restores) {
        Some(earlier) => {
            let mut earlier = (*earlier).clone();
            earlier.revision = next;
            Update::Renumber(earlier)
        }
        None => Update::Create(next),
    }
}

fn data_of(set: &StatefulSet) -> serde_json::Value {
    let template = set.spec.as_ref().map(|spec| spec.template.clone());
    revision_data(&template.unwrap_or_default())
}

/// The revision of the set's template, not yet created. Its name is another after a collision.
pub fn snapshot(set: &StatefulSet, revision: i64, collisions: i32) -> ControllerRevision {
    let data = data_of(set);
    let hash = compute_data_hash(&data, Some(collisions));
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let metadata = template.and_then(|template| template.metadata.as_ref());
    let labels = metadata.and_then(|metadata| metadata.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let name = name_of(set);
    let prefix = name.get(..LONGEST_PREFIX).unwrap_or(name);
    ControllerRevision {
        metadata: revision_metadata(&set.metadata, KIND, format!("{prefix}-{hash}"), labels),
        data: Some(RawExtension(data)),
        revision,
    }
}

/// Names of revisions beyond the limit that are not in use, from the oldest. `live` are the names of
/// the current and the new one; `revisions` are sorted.
pub fn cleanup(
    set: &StatefulSet,
    revisions: &[&ControllerRevision],
    live: [&str; 2],
    pods: &[&Pod],
) -> Vec<String> {
    let spec = set.spec.as_ref();
    let limit = spec.and_then(|spec| spec.revision_history_limit);
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else {
        return Vec::new();
    };
    let of_pods = pods
        .iter()
        .filter_map(|pod| pod_state::label(pod, REVISION_HASH));
    let live: BTreeSet<&str> = live.into_iter().chain(of_pods).collect();
    let names = revisions.iter().filter_map(|r| r.metadata.name.as_deref());
    let unused: Vec<&str> = names.filter(|name| !live.contains(name)).collect();
    let excess = unused.len().saturating_sub(limit);
    unused[..excess]
        .iter()
        .map(|name| (*name).to_owned())
        .collect()
}
