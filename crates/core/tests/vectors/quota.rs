//! `api/quota.json`.

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::jiff::Timestamp;
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::forbidden::{forbidden_message, name_in_refusal};
use plimsoll_core::admission::pod_defaults;
use plimsoll_core::admission::quota::{PodCharge, admit};
use plimsoll_core::object::render_resource_list;
use plimsoll_core::object::resource_quota::QuotaView;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::admitted_pod::expected;

pub(crate) fn check(case: &Value) -> Outcome {
    let mut pod: Pod = serde_json::from_value(case["pod"].clone()).unwrap();
    let mut draft = PodDraft::from_api(&pod).unwrap();
    pod_defaults::apply(&mut draft.pod);
    draft.write_to(&mut pod);
    // Recorded by the clock on the wall; only pods under deletion would notice.
    let now: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
    let charge = PodCharge::from_api(&pod, now).unwrap();
    let quotas: Vec<ResourceQuota> = serde_json::from_value(case["quotas"].clone()).unwrap();
    let quotas: Vec<QuotaView> = quotas
        .iter()
        .map(|quota| QuotaView::from_api(quota).unwrap())
        .collect();
    let matches: Vec<bool> = quotas.iter().map(|q| charge.is_counted_by(q)).collect();
    let mut got = json!({
        "usage": render_resource_list(&charge.usage),
        "matches": matches,
    });
    match admit(&charge, None, &quotas) {
        Ok(used) => {
            let used: Vec<_> = used.iter().map(render_resource_list).collect();
            got["allowed"] = json!(true);
            got["usedAfter"] = json!(used);
        }
        Err(refusal) => {
            let name = name_in_refusal(&pod.metadata);
            got["allowed"] = json!(false);
            got["statusMessage"] = json!(forbidden_message("pods", name, &refusal.to_string()));
        }
    }
    compare(&got, &expected(case, &["pod", "quotas"]))
}
