//! `pods/eviction`: deletes a pod if its disruption budget allows it.
//!
//! Matches v1.36 pkg/registry/core/pod/storage/eviction.go.

use http::Response;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use plimsoll_core::object::pod::is_terminal_phase;
use plimsoll_core::object::selector::LabelSelector;
use serde_json::{Value, json};

use super::action::{part, set_condition, text};
use crate::body::Body;
use crate::cache::{self, Object};
use crate::http::query::{DeleteOptions, WriteOptions};
use crate::kinds::{self, GroupVersionKind};
use crate::machinery::write::{Accepted, Part};
use crate::server::objects::write::Change;
use crate::server::request::call::Call;
use crate::server::request::respond;
use crate::status::{Cause, Details, Status};
use crate::store::{Outcome, Txn};

/// If more pods are being disrupted than this, the disruption controller is lagging behind.
const MAX_DISRUPTED_PODS: usize = 2000;

/// How often an update of a budget is tried after conflicts.
const ATTEMPTS: usize = 20;

const EVICTION: GroupVersionKind = GroupVersionKind {
    group: "policy",
    version: "v1",
    kind: "Eviction",
};

const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

impl Call<'_> {
    /// Handles a POST of an Eviction.
    pub(crate) async fn evict(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let write = WriteOptions::for_create(self.query)?;
        let eviction = self.action(bytes, EVICTION)?;
        let name = text(&eviction, "/metadata/name");
        if !name.is_empty() && name != self.target.name {
            let text = "name in URL does not match name in Eviction object";
            return Err(Status::bad_request(text));
        }
        let mut options = match &eviction["deleteOptions"] {
            Value::Null => DeleteOptions::default(),
            body => DeleteOptions::from_body(body)?,
        };
        options.is_dry_run |= write.is_dry_run;
        self.admit_action(&eviction)?;
        for _ in 0..ATTEMPTS {
            match self.evict_once(&options).await {
                // Without a resource version from the caller, a concurrent change is no reason to
                // fail.
                Err(status)
                    if status.reason == "Conflict"
                        && options.preconditions.resource_version.is_none()
                        && options.preconditions.uid.is_none() => {}
                Err(status) => return Err(status),
                Ok(()) => return Ok(respond::status(&Status::new(201, "", ""))),
            }
        }
        Err(Status::modified(self.kind, &self.target.name))
    }

    async fn evict_once(&self, options: &DeleteOptions) -> Result<(), Status> {
        let pod = self.stored("").await?;
        let value = pod.value()?;
        let mut options = options.clone();
        let phase = text(&value, "/status/phase");
        let is_leaving = !value["metadata"]["deletionTimestamp"].is_null();
        let has_ended = is_terminal_phase(phase) || is_leaving;
        let is_ready = is_ready(&value);
        if has_ended || phase == "Pending" {
            if !has_ended {
                keep_version(&mut options, &value);
            }
            return self.mark_and_delete(&options).await;
        }
        let budgets = self.budgets(&pod)?;
        match budgets.as_slice() {
            [] => {}
            [budget] => {
                let stored = budget.value()?;
                let status = &stored["status"];
                let count = |field: &str| status[field].as_i64().unwrap_or_default();
                let policy = &stored["spec"]["unhealthyPodEvictionPolicy"];
                let is_healthy_enough = count("currentHealthy") >= count("desiredHealthy")
                    && count("desiredHealthy") > 0;
                if !is_ready && (*policy == "AlwaysAllow" || is_healthy_enough) {
                    keep_version(&mut options, &value);
                    let deleted = self.mark_and_delete(&options).await;
                    return deleted.map_err(|status| match status.reason {
                        "Conflict" => still_processed(budget.name()),
                        _ => status,
                    });
                }
                // A budget must not be charged for an eviction that is rejected afterwards.
                self.check_preconditions(&options.preconditions, &value)?;
                self.take_from(budget, options.is_dry_run).await?;
            }
            _ => {
                return Err(Status::new(
                    500,
                    "",
                    "This pod has more than one PodDisruptionBudget, which the eviction \
                     subresource does not support.",
                ));
            }
        }
        self.mark_and_delete(&options).await
    }

    /// The budgets that select the pod.
    fn budgets(&self, pod: &Object) -> Result<Vec<std::sync::Arc<Object>>, Status> {
        let row = kinds::by_resource("policy", "v1", "poddisruptionbudgets");
        let collection = row.and_then(|row| self.server.cache.collection(row));
        let Some(collection) = collection else {
            return Ok(Vec::new());
        };
        let unreadable = |key: &str| Status::unreadable(&format!("{}{key}", collection.prefix()));
        // A budget that cannot be decoded may select any pod.
        if let Some(key) = collection.unreadable_keys(&self.list_prefix()).first() {
            return Err(unreadable(key));
        }
        let everything = plimsoll_core::object::selector::FieldSelector::new(Vec::new());
        let mut budgets = Vec::new();
        for budget in collection.list(&self.list_prefix(), None) {
            let selector = budget.value()?["spec"]["selector"].take();
            let selector = serde_json::from_value::<Option<ApiLabelSelector>>(selector);
            let selector = selector.map_err(|_| unreadable(budget.key()))?;
            let selector = LabelSelector::from_api(selector.as_ref());
            if selector.is_ok_and(|selector| pod.matches(&selector, &everything)) {
                budgets.push(budget);
            }
        }
        Ok(budgets)
    }

    /// Takes one disruption from a budget, if it has one left.
    async fn take_from(&self, budget: &Object, is_dry_run: bool) -> Result<(), Status> {
        let row = kinds::by_resource("policy", "v1", "poddisruptionbudgets");
        let row = row.ok_or_else(Status::unknown_path)?;
        let collection = self.server.cache.collection(row);
        let collection = collection.ok_or_else(Status::unknown_path)?;
        let key = format!("{}{}", collection.prefix(), budget.key());
        let mut current = budget.value()?;
        let mut revision = budget.revision();
        for _ in 0..ATTEMPTS {
            check_budget(&current, row)?;
            if is_dry_run {
                return Ok(());
            }
            let now = self.now_text();
            let left = current["status"]["disruptionsAllowed"]
                .as_i64()
                .unwrap_or_default()
                - 1;
            let status = part(&mut current, "status");
            status["disruptionsAllowed"] = json!(left);
            part(status, "disruptedPods")[&self.target.name] = json!(now);
            if left == 0 {
                set_disruption_condition(&mut current, &now);
            }
            if let Some(meta) = current["metadata"].as_object_mut() {
                meta.remove("resourceVersion");
            }
            let txn = Txn::update(key.clone(), revision, cache::encode(&current));
            match self.commit(txn).await? {
                Outcome::Committed { .. } => return Ok(()),
                Outcome::Conflict { current: None, .. } => {
                    return Err(Status::not_found(row, budget.name()));
                }
                Outcome::Conflict {
                    current: Some(entry),
                    ..
                } => {
                    revision = entry.mod_revision;
                    current = serde_json::from_slice(&entry.value)
                        .map_err(|_| Status::unreadable(&key))?;
                }
            }
        }
        let name = budget.name();
        let text = format!("couldn't update PodDisruptionBudget {name:?} due to conflicts");
        Err(Status::timeout(&text, 10))
    }

    /// Sets the DisruptionTarget condition of the pod, then deletes it.
    async fn mark_and_delete(&self, options: &DeleteOptions) -> Result<(), Status> {
        let mut options = options.clone();
        if !options.is_dry_run {
            let now = self.now_text();
            let done = self
                .change(Part::Status, false, |old, _| {
                    self.check_preconditions(&options.preconditions, old)?;
                    let mut pod = old.clone();
                    if let Some(meta) = pod["metadata"].as_object_mut() {
                        meta.remove("resourceVersion");
                    }
                    let condition = json!({
                        "type": "DisruptionTarget",
                        "status": "True",
                        "lastProbeTime": null,
                        "reason": "EvictionByEvictionAPI",
                        "message": "Eviction API: evicting",
                    });
                    let conditions = &mut part(&mut pod, "status")["conditions"];
                    set_condition(conditions, &now, condition);
                    Ok(Change::Put(Accepted::unchecked(pod)))
                })
                .await?;
            if options.preconditions.resource_version.is_some() {
                // The update above changed the version.
                let pod = respond::converted(self.kind, &done.json)?;
                let version = text(&pod, "/metadata/resourceVersion").to_owned();
                options.preconditions.resource_version = Some(version);
            }
        }
        self.delete_now(&options).await
    }
}

fn keep_version(options: &mut DeleteOptions, pod: &Value) {
    if options.preconditions.resource_version.is_none() {
        let version = text(pod, "/metadata/resourceVersion").to_owned();
        options.preconditions.resource_version = Some(version);
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn check_budget(budget: &Value, row: &'static kinds::Kind) -> Result<(), Status> {
    let name = text(budget, "/metadata/name");
    let status = &budget["status"];
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    if count(&status["observedGeneration"]) < count(&budget["metadata"]["generation"]) {
        return Err(still_processed(name));
    }
    let allowed = count(&status["disruptionsAllowed"]);
    if allowed < 0 {
        return Err(Status::forbidden(
            row,
            name,
            "pdb disruptions allowed is negative",
        ));
    }
    if status["disruptedPods"]
        .as_object()
        .is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS)
    {
        let reason = "DisruptedPods map too big - too many evictions not confirmed by PDB \
                      controller";
        return Err(Status::forbidden(row, name, reason));
    }
    if allowed > 0 {
        return Ok(());
    }
    Err(too_many(0, exhausted(name, status)))
}

/// The message for a budget without disruptions left.
fn exhausted(name: &str, status: &Value) -> String {
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|c| c["type"] == "DisruptionAllowed");
    let condition = conditions
        .next()
        .filter(|c| c["status"] == "False" && !text(c, "/message").is_empty());
    let reason = condition.map(|c| text(c, "/reason"));
    let message = condition.map(|c| text(c, "/message")).unwrap_or_default();
    let (desired, current) = (count("desiredHealthy"), count("currentHealthy"));
    match reason {
        Some("SyncFailed") => format!(
            "The disruption budget {name} does not allow evicting pods currently because it \
             failed sync: {message}"
        ),
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some(reason) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn still_processed(name: &str) -> Status {
    let message = format!("The disruption budget {name} is still being processed by the server.");
    too_many(10, message)
}

fn too_many(retry_after_seconds: u32, message: String) -> Status {
    Status::new(429, "TooManyRequests", VIOLATION).about(Details {
        causes: vec![Cause {
            reason: "DisruptionBudget",
            message,
            field: String::new(),
        }],
        retry_after_seconds,
        ..Details::default()
    })
}

/// No disruptions are left: the budget's condition is updated at once.
fn set_disruption_condition(budget: &mut Value, now: &str) {
    let generation = budget["status"]["observedGeneration"].clone();
    let conditions = &mut budget["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    });
    match conditions
        .iter_mut()
        .find(|c| c["type"] == "DisruptionAllowed")
    {
        None => conditions.push(condition),
        Some(before) => {
            if before["status"] == "False" {
                condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
            *before = condition;
        }
    }
}
