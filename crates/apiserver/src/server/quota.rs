//! Charging quotas: the use is written together with the object that makes it.
//!
//! One transaction holds both, so that a quota can neither be passed by two writers at once nor be
//! charged for an object that was never stored.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use plimsoll_core::admission::quota::{self, ObjectCharge, PodCharge};
use plimsoll_core::object::resource_quota::QuotaView;
use plimsoll_core::resources::ResourceList;
use serde::Deserialize;
use serde_json::Value;

use super::call::Call;
use crate::cache::{self, Object};
use crate::kinds::{self, Kind};
use crate::store::{Revision, Txn};

/// Quotas with their new use.
#[derive(Debug, Default)]
pub(crate) struct Charges(Vec<(String, Revision, Bytes)>);

impl Charges {
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

/// What the object adds to the quotas of its namespace, or why it may not.
pub(crate) fn charge(
    call: &Call<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<Charges, String> {
    let kind = kinds::by_resource("", "v1", "resourcequotas").expect("quotas are served");
    let Some(collection) = call.server.cache.collection(kind) else {
        return Ok(Charges::default());
    };
    if collection.is_empty() {
        return Ok(Charges::default());
    }
    let stored = collection.list(&format!("{}/", call.target.namespace), None);
    let views = stored.iter().map(view);
    let views: Vec<QuotaView> = views.collect::<Option<_>>().unwrap_or_default();
    if views.is_empty() {
        return Ok(Charges::default());
    }
    let used = usage(call, object, old, &views)?;
    let changed = stored.iter().zip(&views).zip(used);
    let changed = changed.filter(|((_, view), used)| view.used != *used);
    let charges = changed.map(|((object, _), used)| {
        let mut quota = object.value();
        quota["status"]["used"] = amounts(&used);
        if let Some(meta) = quota["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let key = format!("{}{}", collection.prefix(), object.key());
        (key, object.revision(), cache::encode(&quota))
    });
    Ok(Charges(charges.collect()))
}

fn object_charge(kind: &Kind, object: &Value) -> ObjectCharge {
    let plain = || ObjectCharge::of_kind(kind.group, kind.plural);
    match (kind.group, kind.kind) {
        ("", "Service") => Service::deserialize(object)
            .map(|service| ObjectCharge::of_service(&service))
            .unwrap_or_else(|_| plain()),
        ("", "PersistentVolumeClaim") => PersistentVolumeClaim::deserialize(object)
            .ok()
            .and_then(|claim| ObjectCharge::of_claim(&claim).ok())
            .unwrap_or_else(plain),
        _ => plain(),
    }
}

fn amounts(list: &ResourceList) -> Value {
    let amounts = list
        .iter()
        .map(|(name, quantity)| (name.as_str().to_owned(), Value::from(quantity.to_string())));
    Value::Object(amounts.collect())
}

fn view(object: &Arc<Object>) -> Option<QuotaView> {
    let quota: ResourceQuota = serde_json::from_slice(object.json()).ok()?;
    QuotaView::from_api(&quota).ok()
}

fn usage(
    call: &Call<'_>,
    object: &Value,
    old: Option<&Value>,
    quotas: &[QuotaView],
) -> Result<Vec<ResourceList>, String> {
    let is_pod = (call.kind.group, call.kind.kind) == ("", "Pod");
    if !is_pod {
        let before = old.map(|old| object_charge(call.kind, old));
        let admitted =
            quota::admit_object(&object_charge(call.kind, object), before.as_ref(), quotas);
        return admitted.map_err(|refusal| refusal.to_string());
    }
    let pod_charge = |object: &Value| {
        let pod = Pod::deserialize(object).ok()?;
        PodCharge::from_api(&pod, call.now.to_api().0).ok()
    };
    let Some(pod) = pod_charge(object) else {
        return Ok(quotas.iter().map(|quota| quota.used.clone()).collect());
    };
    let before = old.and_then(pod_charge);
    quota::admit(&pod, before.as_ref(), quotas).map_err(|refusal| refusal.to_string())
}
