//! The HTTP endpoints of a running scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::object::identity::PodRef;
use serde_json::Value;

use crate::serving::{Check, Handlers};

use super::metrics::Metrics;
use super::records::{Record, Records};

/// The pages of a scheduler. Beside those that every loop has there is
/// `/decisions?namespace=NAMESPACE&name=NAME`: what was decided about a pod lately.
#[derive(Debug)]
pub(super) struct SchedulerHandlers {
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<Records>,
    pub(super) configuration: Value,
    pub(super) is_synced: Arc<AtomicBool>,
}

impl Handlers for SchedulerHandlers {
    fn readiness(&self) -> Vec<Check> {
        vec![Check {
            name: "sched-handler-sync",
            is_ok: self.is_synced.load(Ordering::Relaxed),
        }]
    }

    fn metrics(&self) -> String {
        self.metrics.text()
    }

    fn configuration(&self) -> Value {
        self.configuration.clone()
    }

    fn page(&self, path: &str, query: &str) -> Option<Value> {
        if path != "/decisions" {
            return None;
        }
        let value = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(own, _)| *own == key).map(|(_, value)| value);
            value.unwrap_or_default().to_owned()
        };
        let pod_ref = PodRef {
            namespace: value("namespace"),
            name: value("name"),
        };
        let records = self.records.about(&pod_ref);
        Some(records.iter().map(Record::to_json).collect())
    }
}
