//! Charging quotas: the usage is written together with the object that causes it.
//!
//! One transaction holds both, so that two concurrent writers cannot exceed a quota, and no quota
//! is charged for an object that was never stored.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use k8s_openapi::jiff;
use plimsoll_core::admission::quota::{self, ObjectCharge, PodCharge};
use plimsoll_core::object::resource_quota::QuotaView;
use plimsoll_core::problem::aggregate;
use plimsoll_core::resources::ResourceList;
use serde::Deserialize;
use serde_json::Value;

use super::call::Call;
use crate::cache::{self, Object};
use crate::kinds::Kind;
use crate::store::{Revision, Txn};

/// Quotas with their new usage.
#[derive(Debug, Default)]
pub(crate) struct QuotaUpdates(Vec<(String, Revision, Bytes)>);

impl QuotaUpdates {
    /// Adds the writes of the quotas to a transaction.
    pub(crate) fn add_to(&self, mut txn: Txn) -> Txn {
        for (key, revision, bytes) in &self.0 {
            txn = txn
                .if_at(key.clone(), *revision)
                .put(key.clone(), bytes.clone());
        }
        txn
    }
}

/// The usage that the object adds to the quotas of its namespace, or the 403.
pub(crate) fn charge(
    call: &Call<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<QuotaUpdates, String> {
    let Some(collection) = call.server.cache.stored("resourcequotas") else {
        return Ok(QuotaUpdates::default());
    };
    let prefix = format!("{}/", call.target.namespace);
    // A quota that cannot be decoded may apply to anything.
    if let Some(key) = collection.unreadable_keys(&prefix).first() {
        return Err(unknown(key));
    }
    if collection.is_empty() {
        return Ok(QuotaUpdates::default());
    }
    let stored = collection.list(&prefix, None);
    let views = stored.iter().map(view);
    let views: Vec<QuotaView> = views.collect::<Result<_, _>>()?;
    if views.is_empty() {
        return Ok(QuotaUpdates::default());
    }
    let used = usage(call, object, old, &views)?;
    let changed = stored.iter().zip(&views).zip(used);
    let changed = changed.filter(|((_, view), used)| view.used != *used);
    let charges = changed.map(|((object, _), used)| {
        let mut quota = object.value().map_err(|_| unknown(object.key()))?;
        quota["status"]["used"] = amounts(&used);
        if let Some(meta) = quota["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let key = format!("{}{}", collection.prefix(), object.key());
        Ok((key, object.revision(), cache::encode(&quota)))
    });
    Ok(QuotaUpdates(charges.collect::<Result<_, String>>()?))
}

/// The error that names a quota which cannot be decoded.
fn unknown(key: &str) -> String {
    let name = key.split_once('/').map_or(key, |(_, name)| name);
    format!("status unknown for quota: {name}: the quota cannot be read")
}

/// The usage of an object; an object that cannot be decoded may have any.
fn object_charge(kind: &Kind, object: &Value) -> Result<ObjectCharge, String> {
    match (kind.group, kind.kind) {
        ("", "Service") => {
            let service = Service::deserialize(object).map_err(|error| uncounted(&error))?;
            Ok(ObjectCharge::of_service(&service))
        }
        ("", "PersistentVolumeClaim") => {
            let claim = PersistentVolumeClaim::deserialize(object);
            let claim = claim.map_err(|error| uncounted(&error))?;
            ObjectCharge::of_claim(&claim).map_err(|problems| uncounted(&aggregate(&problems)))
        }
        _ => Ok(ObjectCharge::of_kind(kind.group, kind.plural)),
    }
}

fn pod_charge(pod: &Value, now: jiff::Timestamp) -> Result<PodCharge, String> {
    let pod = Pod::deserialize(pod).map_err(|error| uncounted(&error))?;
    PodCharge::from_api(&pod, now).map_err(|problems| uncounted(&aggregate(&problems)))
}

fn uncounted(error: &impl std::fmt::Display) -> String {
    format!("the object's use of quotas cannot be determined: {error}")
}

fn amounts(list: &ResourceList) -> Value {
    let amounts = list
        .iter()
        .map(|(name, quantity)| (name.as_str().to_owned(), Value::from(quantity.to_string())));
    Value::Object(amounts.collect())
}

fn view(object: &Arc<Object>) -> Result<QuotaView, String> {
    let quota = serde_json::from_slice::<ResourceQuota>(object.json());
    let view = quota
        .ok()
        .and_then(|quota| QuotaView::from_api(&quota).ok());
    view.ok_or_else(|| unknown(object.key()))
}

fn usage(
    call: &Call<'_>,
    object: &Value,
    old: Option<&Value>,
    quotas: &[QuotaView],
) -> Result<Vec<ResourceList>, String> {
    let is_pod = (call.kind.group, call.kind.kind) == ("", "Pod");
    if !is_pod {
        // An object that can no longer be decoded has been charged before: it is charged again.
        let before = old.and_then(|old| object_charge(call.kind, old).ok());
        let charge = object_charge(call.kind, object)?;
        let admitted = quota::admit_object(&charge, before.as_ref(), quotas);
        return admitted.map_err(|refusal| refusal.to_string());
    }
    let now = call.now.to_api().0;
    let pod = pod_charge(object, now)?;
    let before = old.and_then(|old| pod_charge(old, now).ok());
    quota::admit(&pod, before.as_ref(), quotas).map_err(|refusal| refusal.to_string())
}
