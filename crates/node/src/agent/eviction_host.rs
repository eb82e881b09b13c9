//! What eviction needs of the agent: its pods, measurements and events.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::eviction::{Eviction, NodeReclaim};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold::{self, Signal};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::measure::Meter;
use crate::eviction::{Surroundings, Survey, Ticket};
use crate::pods::note::{Note, evicted};
use crate::pods::reports::Report;
use crate::pods::status::Forced;
use crate::pods::{KillNotice, Pods};

/// How long eviction waits for pods that cannot be observed before it decides about the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// The agent as the eviction thread uses it.
pub(super) struct EvictionHost {
    pub(super) pods: Pods,
    pub(super) host: Arc<NodeHost>,
    heartbeat: Arc<Heartbeat>,
    pub(super) meter: Arc<Meter>,
    begun: Instant,
    /// Whether all pods have been known once since the agent was started.
    are_pods_known: AtomicBool,
    survey: Mutex<Option<Arc<Survey>>>,
    reclaims: UnboundedSender<(Vec<NodeReclaim>, Ticket)>,
    handle: Handle,
}

impl fmt::Debug for EvictionHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvictionHost").finish_non_exhaustive()
    }
}

impl EvictionHost {
    /// For an agent that has just been started. Reclaims that eviction requests are sent to `reclaims`.
    pub(super) fn new(
        pods: Pods,
        host: Arc<NodeHost>,
        heartbeat: Arc<Heartbeat>,
        meter: Arc<Meter>,
        reclaims: UnboundedSender<(Vec<NodeReclaim>, Ticket)>,
    ) -> EvictionHost {
        EvictionHost {
            pods,
            host,
            heartbeat,
            meter,
            begun: Instant::now(),
            are_pods_known: AtomicBool::default(),
            survey: Mutex::default(),
            reclaims,
            handle: Handle::current(),
        }
    }

    /// Takes over the latest measurement.
    pub(super) fn take_survey(&self) {
        let summary = self.meter.summary();
        let survey = Survey {
            observation: summary.observation(),
            usages: summary.usages(),
        };
        let mut latest = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(Arc::new(survey));
    }
}

impl Surroundings for EvictionHost {
    fn pods(&self) -> Option<Vec<Report>> {
        if !self.are_pods_known.load(Ordering::Relaxed) {
            let is_late = self.begun.elapsed() >= PATIENCE && self.pods.are_all_listed();
            if !is_late && !self.pods.are_all_reported() {
                return None;
            }
            // Pods that are added later are reported before they run.
            self.are_pods_known.store(true, Ordering::Relaxed);
        }
        Some(self.pods.reports().all())
    }

    fn survey(&self) -> Option<Arc<Survey>> {
        let latest = self.survey.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn kill_notice(&self, uid: &PodUid) -> Option<Arc<KillNotice>> {
        self.pods.kill_notice(uid.as_str())
    }

    fn terminate(&self, eviction: &Arc<Eviction>) {
        let grace_secs = match eviction.is_immediate {
            true => 0,
            false => eviction.grace_period_seconds,
        };
        let forced = Forced::evicted(eviction);
        let uid = eviction.uid.as_str();
        let stopped = self.pods.kill(uid, Some(grace_secs), Some(forced));
        self.handle.spawn(async move {
            if let Err(error) = stopped.await {
                tracing::warn!(%error, "evicted pod did not terminate in time");
            }
        });
    }

    fn record_eviction(
        &self,
        eviction: &Eviction,
        at: Timestamp,
        stats_ages: &[(Signal, threshold::Duration)],
    ) {
        let age = stats_ages.first().map(|(_, age)| {
            let nanos = u64::try_from(age.as_nanos()).unwrap_or_default();
            Duration::from_nanos(nanos)
        });
        let label = eviction.cause.metric_label();
        self.meter.metrics.evicted(label, age);
        if let Some(report) = self.pods.reports().get(eviction.uid.as_str()) {
            let annotations = eviction.annotations.iter();
            let annotations = annotations.map(|(name, value)| ((*name).to_owned(), value.clone()));
            let note = evicted(&eviction.message, annotations.collect(), at);
            self.host.record_note(&report.pod, &note);
        }
    }

    fn conditions_changed(&self, conditions: &BTreeSet<NodeCondition>) {
        self.host.pressure.send_replace(conditions.clone());
        self.heartbeat.report_first();
    }

    fn warn(&self, reason: &'static str, message: String) {
        self.heartbeat.record_event(Note::warning(reason, message));
    }

    fn reclaim(&self, wanted: Vec<NodeReclaim>, ticket: Ticket) {
        // If the receiver is gone the agent is stopping, and the ticket is dropped.
        let _ = self.reclaims.send((wanted, ticket));
    }
}
