//! Pods that want other resources than they have.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::Pods;
use super::entry::Entry;
use super::table::Table;
use crate::pod_fields;
use crate::pods::admission;
use crate::pods::note::{Note, reason};
use crate::pods::resize::{self, DEFERRED, IN_PROGRESS, PENDING};

impl Pods {
    /// Allocates the requested resources to pods as far as there is room. A pod that does not fit waits.
    pub(super) fn retry_resizes(&self, table: &mut Table) {
        let mut pending: Vec<(_, String)> = table
            .entries
            .iter()
            .filter(|(_, entry)| entry.has_pending_resize && !entry.is_ending())
            .map(|(uid, entry)| {
                let conditions = entry.record.state().resize.clone();
                let rank = resize::rank(&entry.wanted, &entry.pod(), &conditions);
                (rank, uid.clone())
            })
            .collect();
        pending.sort();
        for (_, uid) in pending {
            let others: Vec<Arc<Pod>> = table
                .active_pods()
                .into_iter()
                .filter(|other| pod_fields::uid(other) != uid)
                .collect();
            if let Some(entry) = table.entries.get_mut(&uid) {
                self.retry_resize(entry, &others);
            }
        }
    }

    fn retry_resize(&self, entry: &mut Entry, others: &[Arc<Pod>]) {
        let shared = &self.0.shared;
        let wanted = Arc::clone(&entry.wanted);
        let generation = pod_fields::generation(&wanted);
        let now = shared.clock.now();
        let facts = shared.host.admission_facts();
        let verdict = admission::fits(&wanted, others.iter().map(AsRef::as_ref), &facts);
        let conditions = |change: &mut dyn FnMut(&mut Vec<_>) -> bool| {
            let mut state = entry.record.state();
            change(&mut state.resize)
        };
        match verdict {
            Ok(()) => {
                conditions(&mut |conditions| {
                    resize::clear_condition(conditions, PENDING);
                    // What went wrong with an earlier change is no longer of interest.
                    resize::clear_condition(conditions, IN_PROGRESS);
                    resize::set_condition(conditions, IN_PROGRESS, "", "", generation, now)
                });
                let message = resize::message("Pod resize started", &wanted, generation, "");
                let note = Note::normal(reason::RESIZE_STARTED, message);
                shared.host.record(&wanted, note);
                entry.allocate();
            }
            Err(refused) => {
                let message = &refused.message;
                let is_news = conditions(&mut |conditions| {
                    resize::set_condition(conditions, PENDING, DEFERRED, message, generation, now)
                });
                if is_news {
                    let prefix = format!("Pod resize {DEFERRED}");
                    let message = resize::message(&prefix, &wanted, generation, message);
                    let note = Note::warning(reason::RESIZE_DEFERRED, message);
                    shared.host.record(&wanted, note);
                    entry.record.publish();
                }
            }
        }
    }
}
