//! Watches the pods all the time, and remembers deleted ones.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_core::eviction::record::Record;
use serde_json::Value;

use crate::api::Api;
use crate::cluster::NODE;
use crate::rules;

/// Between two looks. Each costs the agent some milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// What was seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// Every pod there ever was, as it was seen last, by uid.
    pods: BTreeMap<String, Value>,
    /// Decisions, by time.
    records: BTreeMap<i64, Record>,
    broken: Vec<String>,
}

/// Watches until dropped.
pub(crate) struct Ledger {
    seen: Arc<Mutex<Seen>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ledger {
    /// Starts the watch. Retries if the API does not answer.
    pub(crate) fn keep(kubeconfig: PathBuf) -> Ledger {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (written, ended) = (Arc::clone(&seen), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let api = Api::new(&kubeconfig);
            while !ended.load(Ordering::Relaxed) {
                let pods = api.get("pods default");
                let decisions = api.get(&format!("decisions {NODE}"));
                let mut seen = written.lock().unwrap();
                seen.take_pods(&pods.unwrap_or_default());
                seen.take_decisions(&decisions.unwrap_or_default());
                drop(seen);
                thread::sleep(LOOK_EVERY);
            }
        });
        Ledger {
            seen,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn take_pods(&mut self, list: &Value) {
        for pod in list["items"].as_array().into_iter().flatten() {
            self.take(pod);
        }
    }

    /// Takes one pod as it is now.
    pub(crate) fn take(&mut self, pod: &Value) {
        let version = |pod: &Value| {
            let text = pod["metadata"]["resourceVersion"].as_str();
            text.and_then(|text| text.parse::<u64>().ok())
        };
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        if let Some(before) = self.pods.get(uid) {
            if version(pod) <= version(before) {
                return;
            }
            self.broken.extend(rules::of_changes(before, pod));
        }
        self.broken.extend(rules::of_pod(pod));
        self.pods.insert(uid.to_owned(), pod.clone());
    }

    fn take_decisions(&mut self, list: &Value) {
        for item in list["items"].as_array().into_iter().flatten() {
            match serde_json::from_value::<Record>(item.clone()) {
                Ok(record) => {
                    let at = record.at.map_or(0, |at| at.as_nanos());
                    self.records.insert(at, record);
                }
                Err(error) => self.broken.push(format!("{error}: {item}")),
            }
        }
    }

    /// How many pods were evicted so far, by the records.
    pub(crate) fn evictions(&self) -> usize {
        let records = self.records.values();
        records.map(|record| record.decision.evictions.len()).sum()
    }

    /// Everything that should not have been.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = self.broken.clone();
        broken.extend(rules::of_decisions(self.records.values()));
        let records: Vec<&Record> = self.records.values().collect();
        broken.extend(rules::of_agreement(self.pods.values(), &records));
        broken.dedup();
        broken
    }
}
