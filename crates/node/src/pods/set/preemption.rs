//! Making room for a critical pod.
//!
//! Matches v1.36 pkg/kubelet/preemption/preemption.go; the pod waits here until room is made, where
//! upstream holds up all others meanwhile.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::Pods;
use super::entry::{Kill, Room};
use super::table::{Source, Table, full_name};
use crate::pod_fields;
use crate::pods::note::{Note, reason};
use crate::pods::status::Forced;

const MESSAGE: &str = "Preempted in order to admit critical pod";
const CONDITION_MESSAGE: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";

impl Pods {
    /// Ends pods so that another fits, which is looked at again when they are gone.
    pub(super) fn make_room(&self, table: &mut Table, source: Source, pod: Arc<Pod>, room: &Room) {
        let mut ends = Vec::new();
        for uid in &room.victims {
            let Some(entry) = table.entries.get_mut(uid) else {
                continue;
            };
            if !entry.is_ending() {
                let note = Note::warning(reason::PREEMPTING, MESSAGE);
                self.0.shared.host.record(&entry.pod(), note);
                self.metrics().preempted(room.resource.as_str());
            }
            entry.end(Kill {
                grace_secs: None,
                forced: Some(Forced {
                    reason: reason::PREEMPTING.to_owned(),
                    message: MESSAGE.to_owned(),
                    is_disruption: true,
                    condition_message: Some(CONDITION_MESSAGE),
                    keeps_success: false,
                }),
            });
            ends.push(entry.stopped.clone());
        }
        let (name, uid) = (full_name(&pod), pod_fields::uid(&pod).to_owned());
        tracing::info!(
            pod = name,
            victims = ?room.victims,
            "preempting pods to free up resources for critical pod"
        );
        table.waiting.insert(name.clone(), (source, pod));
        let pods = self.clone();
        self.0.tasks.spawn(async move {
            for mut end in ends {
                // An error is the end of the worker, and with it of the pod.
                let _ = end.wait_for(|stopped| *stopped).await;
            }
            let mut table = pods.table();
            let is_same = |(_, pod): &(Source, Arc<Pod>)| pod_fields::uid(pod) == uid;
            if table.waiting.get(&name).is_some_and(is_same)
                && let Some((source, pod)) = table.waiting.remove(&name)
            {
                pods.start(&mut table, source, pod);
            }
        });
    }
}
