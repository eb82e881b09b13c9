//! One pod and its worker.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::resources::ResourceName;
use tokio::sync::watch;

use super::table::{Begun, Source};
use crate::pod_fields;
use crate::pods::Host;
use crate::pods::admission::{self, Admission, Rejection};
use crate::pods::note::Note;
use crate::pods::resize::{self, Allocation};
use crate::pods::status::{self, Forced};
use crate::pods::worker::{self, Desired, End, Record, Shared, grace};

/// One pod and its worker.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) source: Source,
    /// The pod as its source has it.
    pub(super) wanted: Arc<Pod>,
    /// What the node has set aside for it.
    pub(super) allocation: Allocation,
    /// Whether it requests other resources than it has.
    pub(super) has_pending_resize: bool,
    pub(super) record: Arc<Record>,
    pub(super) stopped: watch::Receiver<bool>,
    /// Whether its source has it no more.
    pub(super) is_orphan: bool,
    /// Whether the node did not take it, so that it never held anything.
    is_rejected: bool,
    desired: watch::Sender<Desired>,
    finished: watch::Sender<bool>,
}

/// How a pod is stopped.
#[derive(Clone, Debug, Default)]
pub(super) struct Kill {
    pub(super) grace_secs: Option<i64>,
    pub(super) forced: Option<Forced>,
}

/// The room that other pods have to make for a critical one.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// Their uids.
    pub(super) victims: Vec<String>,
    /// What there is too little of.
    pub(super) resource: ResourceName,
}

/// Whether a pod is to end by what its source says.
fn is_over(pod: &Pod) -> bool {
    pod_fields::is_deleted(pod) || pod_fields::is_terminal(pod)
}

/// Whether anything but the status differs.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    let (before, after) = (&old.metadata, &new.metadata);
    old.spec != new.spec
        || before.labels != after.labels
        || before.annotations != after.annotations
        || before.deletion_timestamp != after.deletion_timestamp
        || before.deletion_grace_period_seconds != after.deletion_grace_period_seconds
        || pod_fields::is_terminal(new) && !is_over(old)
}

impl Entry {
    /// Admits a pod, unless it is over, or an earlier agent has `begun` to end it; its work is to be
    /// started. The error is the room that has to be made first.
    pub(super) fn new(
        shared: &Arc<Shared>,
        source: Source,
        wanted: Arc<Pod>,
        others: &[Arc<Pod>],
        begun: Option<Begun>,
    ) -> Result<(Entry, impl Future<Output = ()> + Send + use<>), Room> {
        let allocation = Allocation::recovered(&wanted);
        let allocated = allocation.applied_to(&wanted);
        let has_pending_resize = allocated.is_some();
        let pod = allocated.map_or_else(|| Arc::clone(&wanted), Arc::new);
        let left = begun.as_ref().map(|begun| {
            let left = begun.until.saturating_since(shared.clock.now());
            i64::try_from(left.as_secs()).unwrap_or(i64::MAX)
        });
        let is_over_already = pod_fields::is_terminal(&wanted);
        if let Some(begun) = begun.as_ref().filter(|_| !is_over_already) {
            shared.host.record(&wanted, begun.note.clone());
        }
        let mut end = (begun.is_some() || is_over(&wanted)).then(|| End {
            grace_secs: grace::shorten(None, &wanted, left),
            // A container that has ended meanwhile, or ends in what is left of its time, was stopped by the
            // earlier agent.
            is_killed: begun.is_some(),
            forced: begun.map(|begun| begun.forced),
        });
        let mut settled = is_over_already.then(|| wanted.status.clone().unwrap_or_default());
        let mut is_rejected = false;
        let verdict = match end {
            None => admit(&*shared.host, &pod, others),
            Some(_) => Ok(Admission::Now),
        };
        if let Ok(Admission::After { victims, resource }) = verdict {
            return Err(Room { victims, resource });
        }
        if let Err(Rejection { reason, message }) = verdict {
            let now = shared.clock.now();
            shared.metrics.admission_rejected(&reason);
            settled = Some(status::rejected(&pod, &reason, &message, now));
            shared.host.record(&pod, Note::warning(reason, message));
            end = Some(End {
                grace_secs: grace::shorten(None, &wanted, None),
                forced: None,
                is_killed: false,
            });
            is_rejected = true;
        }
        let (desired, receiver) = watch::channel(Desired { pod, end });
        let (stopped_sender, stopped) = watch::channel(false);
        let known = Arc::clone(&desired.borrow().pod);
        // One that is over before it began has its last status already.
        let record = Arc::new(Record::new(Arc::clone(shared), known, settled));
        let work = worker::keep(Arc::clone(&record), receiver, stopped_sender);
        let entry = Entry {
            source,
            wanted,
            allocation,
            has_pending_resize,
            record,
            stopped,
            is_orphan: false,
            is_rejected,
            desired,
            finished: watch::Sender::new(false),
        };
        Ok((entry, work))
    }

    /// The pod with the resources allocated to it.
    pub(super) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.desired.borrow().pod)
    }

    /// Whether nothing is left of the pod on the node.
    pub(super) fn is_finished(&self) -> bool {
        *self.finished.borrow()
    }

    /// Set to true when nothing is left of the pod.
    pub(super) fn finished_sender(&self) -> watch::Sender<bool> {
        self.finished.clone()
    }

    /// Whether the pod holds resources.
    pub(super) fn is_active(&self) -> bool {
        !self.is_rejected && !*self.stopped.borrow()
    }

    /// Whether the pod is being stopped, or has been.
    pub(super) fn is_ending(&self) -> bool {
        self.desired.borrow().end.is_some()
    }

    /// Takes what the source says; answers whether other resources are wanted than before.
    pub(super) fn take(&mut self, wanted: Arc<Pod>) -> bool {
        let is_changed = is_changed(&self.wanted, &wanted);
        self.wanted = wanted;
        let allocated = self.allocation.applied_to(&self.wanted);
        let had_pending_resize = self.has_pending_resize;
        self.has_pending_resize = allocated.is_some() && !self.is_ending();
        if had_pending_resize && !self.has_pending_resize {
            let conditions = &mut self.record.state().resize;
            resize::clear_condition(conditions, resize::PENDING);
        }
        let pod = allocated.map_or_else(|| Arc::clone(&self.wanted), Arc::new);
        if is_over(&pod) {
            self.set_end(&pod, Kill::default());
        }
        self.set_pod(pod, is_changed);
        self.has_pending_resize && is_changed
    }

    /// Gives the pod what it wants.
    pub(super) fn allocate(&mut self) {
        self.allocation = Allocation::of(&self.wanted);
        self.has_pending_resize = false;
        let pod = Arc::clone(&self.wanted);
        self.set_pod(pod, true);
    }

    /// Has the pod end.
    pub(super) fn end(&mut self, kill: Kill) {
        let pod = self.pod();
        self.set_end(&pod, kill);
    }

    /// Once a pod is to end that stays so; its grace period only becomes shorter, and the first
    /// reason stays.
    fn set_end(&self, pod: &Pod, kill: Kill) {
        self.desired.send_if_modified(|desired| {
            let known = desired.end.take();
            let grace_secs = known.as_ref().map(|end| end.grace_secs);
            let forced = known.as_ref().and_then(|end| end.forced.clone());
            let is_killed = known.as_ref().is_some_and(|end| end.is_killed);
            desired.end = Some(End {
                grace_secs: grace::shorten(grace_secs, pod, kill.grace_secs),
                forced: forced.or(kill.forced),
                is_killed,
            });
            desired.end != known
        });
    }

    /// Passes the pod on. Its worker looks at it only if there is something to see: most changes
    /// are the agent's own words coming back.
    fn set_pod(&self, pod: Arc<Pod>, is_changed: bool) {
        self.desired.send_if_modified(|desired| {
            desired.pod = Arc::clone(&pod);
            is_changed
        });
        let has_gates = pod_fields::spec(&pod)
            .and_then(|spec| spec.readiness_gates.as_ref())
            .is_some_and(|gates| !gates.is_empty());
        if self.is_finished() {
            self.record.state().pod = pod;
            self.record.repeat();
        } else if !is_changed {
            self.record.shared().reports.set_pod(&pod);
            self.record.state().pod = pod;
            if has_gates {
                self.record.publish();
            }
        }
    }
}

fn admit(host: &dyn Host, pod: &Pod, others: &[Arc<Pod>]) -> Result<Admission, Rejection> {
    let facts = host.admission_facts();
    admission::admit(pod, others.iter().map(AsRef::as_ref), &facts)
}
