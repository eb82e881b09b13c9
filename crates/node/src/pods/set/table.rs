//! The pods of the node, and which of them waits for another to end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;

use super::entry::Entry;
use crate::pod_fields;
use crate::pods::note::Note;
use crate::pods::status::Forced;

/// Where pods come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The API server.
    Api,
    /// Files on the node.
    Files,
}

/// That an earlier agent has begun to end a pod, and has killed its processes or signalled them to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What its status says.
    pub forced: Forced,
    /// How long it may take.
    pub until: Timestamp,
    /// The event to record, in case the earlier agent ended before it could record it.
    pub note: Note,
}

/// All pods.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By uid.
    pub(super) entries: BTreeMap<String, Entry>,
    /// Pods that wait for another of their name to end, by full name.
    pub(super) waiting: BTreeMap<String, (Source, Arc<Pod>)>,
    /// Images of static pods in the API, by full name.
    pub(super) mirrors: BTreeMap<String, Arc<Pod>>,
    /// Uids of orphaned pods that are being stopped.
    pub(super) stopping: BTreeSet<String>,
    /// Pods that an earlier agent has begun to end, by uid.
    pub(super) begun: BTreeMap<String, Begun>,
    ready: BTreeSet<Source>,
}

/// Namespace and name.
pub(super) fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod_fields::namespace(pod), pod_fields::name(pod))
}

impl Table {
    /// Uids of pods that a source has no more.
    pub(super) fn replaced(&self, source: Source, kept: &[String]) -> Vec<String> {
        let is_kept = |uid: &String| kept.contains(uid);
        let entries = self.entries.iter();
        let entries = entries
            .filter(|(uid, entry)| entry.source == source && !entry.is_orphan && !is_kept(uid))
            .map(|(uid, _)| uid.clone());
        let waiting = self.waiting.values();
        let waiting = waiting
            .filter(|(own, pod)| *own == source && !is_kept(&pod_fields::uid(pod).to_owned()))
            .map(|(_, pod)| pod_fields::uid(pod).to_owned());
        let mirrors = self.mirrors.values().filter(|_| source == Source::Api);
        let mirrors = mirrors
            .map(|pod| pod_fields::uid(pod).to_owned())
            .filter(|uid| !is_kept(uid));
        entries.chain(waiting).chain(mirrors).collect()
    }

    /// Notes that all pods of a source are known.
    pub(super) fn set_ready(&mut self, source: Source) {
        self.ready.insert(source);
    }

    /// Whether all pods of both sources are known, so that any other pod on the node is orphaned.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.len() == 2
    }

    /// Whether the same pod, removed before, has not ended yet; or another static pod of its name.
    pub(super) fn has_to_wait(&self, pod: &Pod) -> bool {
        let uid = pod_fields::uid(pod);
        if let Some(entry) = self.entries.get(uid) {
            return entry.is_orphan;
        }
        let name = full_name(pod);
        let mut others = self.entries.values();
        pod_fields::is_static(pod)
            && others.any(|entry| !entry.is_finished() && full_name(&entry.pod()) == name)
    }

    /// Pods that hold resources, with what is allocated to them.
    pub(super) fn active_pods(&self) -> Vec<Arc<Pod>> {
        let entries = self.entries.values();
        let active = entries.filter(|entry| entry.is_active());
        active.map(Entry::pod).collect()
    }
}
