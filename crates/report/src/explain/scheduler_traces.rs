//! Whether the scheduler of a pod runs, from leases, pods and events in the cluster.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Pod};
use plimsoll_core::object::timestamp::Timestamp;

use crate::text::span;

use super::events;

/// The scheduler of pods without `schedulerName`.
pub(super) const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// The name of the default scheduler's lease.
const DEFAULT_LEASE: &str = "kube-scheduler";
/// The namespace of the leases of nodes, which belong to no scheduler.
const NODE_LEASES: &str = "kube-node-lease";
/// A scheduler whose lease was not renewed for this many lease durations does not run.
const EXPIRED_AFTER: f64 = 3.0;
/// The default duration of a lease, in seconds.
const LEASE_SECONDS: i32 = 15;

/// The objects in a cluster that show whether a scheduler runs.
#[derive(Clone, Debug, Default)]
pub struct SchedulerTraces {
    pub name: String,
    /// Leases that may belong to it.
    pub leases: Vec<Lease>,
    /// Events that it has recorded.
    pub events: Vec<Event>,
    /// All pods: one may run the scheduler, and the scheduler may have placed others.
    pub pods: Vec<Pod>,
    pub now: Timestamp,
}

/// The conclusion from those objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether it runs; `None` if there is no evidence.
    pub(super) runs: Option<bool>,
    /// The evidence, in sentences.
    pub(super) sentences: Vec<String>,
}

/// Whether a lease may be that of the scheduler.
pub fn is_lease_of(lease: &Lease, scheduler: &str) -> bool {
    let namespace = lease.metadata.namespace.as_deref();
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    let is_own = match scheduler {
        DEFAULT_SCHEDULER => name == DEFAULT_LEASE,
        scheduler => name.contains(scheduler),
    };
    namespace != Some(NODE_LEASES) && is_own
}

impl SchedulerTraces {
    pub(super) fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for lease in &self.leases {
            verdict.take(self.lease(lease));
        }
        verdict.take(self.own_pods());
        let latest = self.events.iter().filter_map(events::timestamp).max();
        verdict.take(latest.map(|at| {
            let ago = self.ago(at);
            (true, format!("Its latest event is {ago} old."))
        }));
        let placed = self.pods.iter().filter(|pod| self.has_placed(pod)).count();
        verdict.take((placed > 0).then(|| {
            let pods = if placed == 1 { "pod" } else { "pods" };
            (true, format!("It has placed {placed} {pods}."))
        }));
        let is_default = self.name == DEFAULT_SCHEDULER;
        if verdict.sentences.is_empty() && !is_default {
            verdict.runs = Some(false);
            verdict.sentences.push(
                "There is no lease, no pod and no event of that name, and no pod that it has placed."
                    .to_owned(),
            );
        }
        verdict
    }

    fn lease(&self, lease: &Lease) -> Option<(bool, String)> {
        let spec = lease.spec.as_ref()?;
        let renewed = spec.renew_time.as_ref()?;
        let renewed = Timestamp::from_rfc3339(&renewed.0.to_string())?;
        let duration = spec.lease_duration_seconds.unwrap_or(LEASE_SECONDS);
        let age = self.now.saturating_since(renewed).as_secs_f64();
        let is_held = age < f64::from(duration) * EXPIRED_AFTER;
        let metadata = &lease.metadata;
        let name = format!(
            "{}/{}",
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default()
        );
        let holder = spec.holder_identity.as_deref().unwrap_or("no process");
        let ago = self.ago(renewed);
        let text = match is_held {
            true => format!("{holder} renewed its lease {name} {ago} ago."),
            false => format!(
                "It does not run: its lease {name}, held by {holder}, was renewed {ago} ago."
            ),
        };
        Some((is_held, text))
    }

    fn own_pods(&self) -> Option<(bool, String)> {
        if self.name == DEFAULT_SCHEDULER {
            return None;
        }
        let phase = |pod: &Pod| {
            let status = pod.status.as_ref()?;
            status.phase.clone()
        };
        let mut found = self.pods.iter().filter(|pod| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let spec = pod.spec.as_ref();
            let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref());
            // Pods that name the scheduler often have similar names, but do not run it.
            name.contains(&*self.name) && scheduler != Some(&*self.name)
        });
        let pod = found.next()?;
        let phase = phase(pod).unwrap_or_default();
        let name = format!(
            "{}/{}",
            pod.metadata.namespace.as_deref().unwrap_or_default(),
            pod.metadata.name.as_deref().unwrap_or_default()
        );
        Some((
            phase == "Running",
            format!("Pod {name}, which may be it, is {phase}."),
        ))
    }

    fn has_placed(&self, pod: &Pod) -> bool {
        pod.spec.as_ref().is_some_and(|spec| {
            spec.scheduler_name.as_deref() == Some(&*self.name) && spec.node_name.is_some()
        }) && self.name != DEFAULT_SCHEDULER
    }

    fn ago(&self, at: Timestamp) -> String {
        span(self.now.saturating_since(at).as_secs_f64())
    }
}

impl Verdict {
    /// One piece of evidence that it runs outweighs all evidence that it does not.
    fn take(&mut self, sign: Option<(bool, String)>) {
        let Some((runs, sentence)) = sign else { return };
        self.runs = Some(self.runs.unwrap_or(false) || runs);
        self.sentences.push(sentence);
    }
}
