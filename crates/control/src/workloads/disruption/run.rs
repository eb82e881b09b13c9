//! The loop of PodDisruptionBudgets.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use plimsoll_core::object::event::Note;
use plimsoll_core::object::selector::LabelSelector;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::disruption::patch_status;
use crate::work_queue::WorkQueue;
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::fraction::FractionError;
use crate::workloads::pod_state;
use crate::workloads::writes::{Writer, is_conflict, is_not_found, message_of};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};

use super::owners::KnownOwners;
use super::selector_text::selector_text;
use super::stale_condition::{cleared_condition, until_stale};
use super::{Budget, Input, Outcome, ScaleError, compute, expected_scale, fail_safe};

/// The component in events.
const COMPONENT: &str = "controllermanager";

/// Why a budget could not be computed or written.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The number of pods there should be is not known.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// A percentage of the budget is none.
    #[error(transparent)]
    Fraction(#[from] FractionError),
    /// The selector of the budget is none.
    #[error("{0}")]
    Selector(String),
    /// A write failed.
    #[error("{}", message_of(.0))]
    Write(kube::Error),
}

struct Controller {
    options: Options,
    budgets: Arc<Informer<PodDisruptionBudget>>,
    pods: Arc<Informer<Pod>>,
    owners: KnownOwners,
    writer: Writer,
    /// Pods whose condition may be stale one day.
    stale: Arc<WorkQueue<Key>>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        budgets: informers.of(),
        pods: informers.of(),
        owners: KnownOwners::new(&informers),
        writer: Writer::of(&informers, COMPONENT, &stop),
        stale: WorkQueue::new("stale_pod_disruption"),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "disruption";
    type Error = SyncError;

    async fn synced(&self) {
        self.budgets.synced().await;
        self.pods.synced().await;
        self.owners.synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let wake = Arc::clone(queue);
        let of_budgets = self.budgets.on_change(move |change| wake.add(change.key()));
        let (controller, wake) = (Arc::clone(self), Arc::clone(queue));
        let of_pods = self.pods.on_change(move |change| {
            let pod = change.object();
            let matching = controller.budgets_of(pod);
            if let (Change::Added(_), [first, _, ..]) = (change, matching.as_slice()) {
                let key = change.key();
                let message = format!(
                    "Pod {:?}/{:?} matches multiple PodDisruptionBudgets.  Chose {:?} arbitrarily.",
                    key.namespace, key.name, first.name
                );
                let note = Note::warning("MultiplePodDisruptionBudgets", message);
                controller.writer.record_event(&reference(&**pod), note);
            }
            matching.into_iter().for_each(|key| wake.add(key));
            let is_there = !matches!(change, Change::Deleted(_));
            if let Some(wait) =
                until_stale(pod, controller.options.clock.now()).filter(|_| is_there)
            {
                controller.stale.add_after(change.key(), wait);
            }
        });
        vec![of_budgets, of_pods]
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(budget) = self.budgets.get(key) else {
            return Ok(None);
        };
        match self.compute(&budget).await {
            Ok(outcome) => {
                for name in &outcome.not_deleted {
                    self.record_not_deleted(&budget, name);
                }
                if let Some(status) = outcome.status {
                    self.write(&budget, status).await?;
                }
                Ok(outcome.again_after)
            }
            Err(error) => {
                let status = fail_safe(&budget, &error.to_string(), self.options.clock.now());
                if budget.status.as_ref() != Some(&status) {
                    self.write(&budget, status).await?;
                }
                Ok(None)
            }
        }
    }

    async fn run_beside(self: &Arc<Self>) {
        let (queue, cleaner) = (Arc::clone(&self.stale), Arc::clone(self));
        let clear = move |key: Key| {
            let controller = Arc::clone(&cleaner);
            async move { controller.clear_stale_condition(&key).await }
        };
        queue.work(1, clear).await;
    }
}

impl Controller {
    fn budgets_of(&self, pod: &Pod) -> Vec<Key> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let mut budgets = self.budgets.in_namespace(namespace);
        budgets
            .retain(|budget| selector_of(budget).is_ok_and(|selector| selector.matches(&labels)));
        budgets
            .iter()
            .map(|budget| Key::of(&budget.metadata))
            .collect()
    }

    async fn compute(&self, budget: &PodDisruptionBudget) -> Result<Outcome, SyncError> {
        let about = reference(budget);
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        let selector = selector_of(budget).inspect_err(|error| {
            let message = format!("Failed to get pods: {error}");
            self.writer
                .record_event(&about, Note::warning("NoPods", message));
        })?;
        let mut pods = self.pods.in_namespace(namespace);
        pods.retain(|pod| selector.matches(&pod.metadata.labels.clone().unwrap_or_default()));
        let pods = as_refs(&pods);
        if pods.is_empty() {
            self.writer
                .record_event(&about, Note::normal("NoPods", "No matching pods found"));
        }
        let spec = budget.spec.clone().unwrap_or_default();
        let mut scale = 0;
        if Budget::new(&spec).needs_scale() {
            let owners = self.owners.complete(self.writer.client(), &pods).await;
            let expected = expected_scale(&pods, &owners).inspect_err(|error| {
                let message = format!("Failed to calculate the number of expected pods: {error}");
                self.writer.record_event(
                    &about,
                    Note::warning("CalculateExpectedPodCountFailed", message),
                );
            })?;
            if !expected.unmanaged.is_empty() {
                self.record_unmanaged(budget);
            }
            scale = expected.replicas;
        }
        Ok(compute(Input {
            budget,
            pods: &pods,
            expected_scale: scale,
            now: self.options.clock.now(),
        })?)
    }

    fn record_unmanaged(&self, budget: &PodDisruptionBudget) {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. \
             As a result, the status of the PDB cannot be calculated correctly, which may result in \
             undefined behavior. To account for these pods please set \".spec.minAvailable\" field \
             of the PDB to an integer value.",
            selector_text(selector)
        );
        self.writer
            .record_event(&reference(budget), Note::warning("UnmanagedPods", message));
    }

    /// Upstream names the namespace twice, where the name was meant.
    fn record_not_deleted(&self, budget: &PodDisruptionBudget, pod: &str) {
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(pod) = self.pods.get(&Key::new(namespace, pod)) {
            let message = format!(
                "Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            );
            self.writer
                .record_event(&reference(&*pod), Note::warning("NotDeleted", message));
        }
    }

    async fn write(
        &self,
        budget: &PodDisruptionBudget,
        status: PodDisruptionBudgetStatus,
    ) -> Result<(), SyncError> {
        let changed = PodDisruptionBudget {
            status: Some(status),
            ..budget.clone()
        };
        let written = self.writer.replace_status(&changed).await;
        written.map(drop).map_err(SyncError::Write)
    }

    /// Takes a stale promise of deletion back.
    async fn clear_stale_condition(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(pod) = self.pods.get(key) else {
            return Ok(None);
        };
        let now = self.options.clock.now();
        match until_stale(&pod, now) {
            None => Ok(None),
            Some(wait) if !wait.is_zero() => Ok(Some(wait)),
            Some(_) => {
                let status = json!({"conditions": [cleared_condition(&pod, now)]});
                match patch_status(self.writer.client(), &pod, status).await {
                    Err(error) if !is_not_found(&error) && !is_conflict(&error) => {
                        Err(SyncError::Write(error))
                    }
                    _ => {
                        tracing::debug!(
                            pod = pod_state::name(&pod),
                            "reset stale DisruptionTarget condition"
                        );
                        Ok(None)
                    }
                }
            }
        }
    }
}

fn selector_of(budget: &PodDisruptionBudget) -> Result<LabelSelector, SyncError> {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    LabelSelector::from_api(selector).map_err(|error| SyncError::Selector(error.to_string()))
}
