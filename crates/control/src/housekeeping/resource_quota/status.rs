//! The status of a quota.

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use plimsoll_core::object::{parse_resource_list, render_resource_list};
use plimsoll_core::problem::Problem;
use plimsoll_core::resources::ResourceList;

/// The status that the quota should have; nothing if it has it.
///
/// Resources that were not counted this time keep the usage in the status.
pub(super) fn changed(
    quota: &ResourceQuota,
    hard: &ResourceList,
    usage: &ResourceList,
) -> Result<Option<ResourceQuotaStatus>, Vec<Problem>> {
    let mut problems = Vec::new();
    let status = quota.status.as_ref();
    let mut parse = |field: &str, list| parse_resource_list(field, list, &mut problems);
    let hard_before = status.and_then(|status| status.hard.as_ref());
    let used_before = status.and_then(|status| status.used.as_ref());
    let is_first = hard_before.is_none() || used_before.is_none();
    let hard_before = parse("status.hard", hard_before);
    let used_before = parse("status.used", used_before);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut used = used_before.clone();
    for (name, quantity) in usage {
        used.insert(name.clone(), quantity.clone());
    }
    let used = used.filtered(|name| hard.contains(name));
    if !is_first && hard_before == *hard && used_before == used {
        return Ok(None);
    }
    Ok(Some(ResourceQuotaStatus {
        // An empty list is still one: it shows that the quota was counted.
        hard: Some(render_resource_list(hard).unwrap_or_default()),
        used: Some(render_resource_list(&used).unwrap_or_default()),
    }))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::quantity::Quantity;
    use plimsoll_core::resources::ResourceName;
    use serde_json::{Value, json};

    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        let parsed = pairs.iter().map(|(name, quantity)| {
            let quantity: Quantity = quantity.parse().unwrap();
            (ResourceName::new(*name), quantity)
        });
        parsed.collect()
    }

    fn status(status: Value, hard: &[(&str, &str)], usage: &[(&str, &str)]) -> Option<Value> {
        let quota = serde_json::from_value(json!({"status": status})).unwrap();
        let changed = changed(&quota, &list(hard), &list(usage)).unwrap();
        changed.map(|status| serde_json::to_value(status).unwrap())
    }

    #[test]
    fn quota_status_is_written_only_when_it_changes() {
        let hard = [("pods", "2"), ("cpu", "1")];
        let usage = [("pods", "1"), ("cpu", "500m")];
        let right =
            json!({"hard": {"pods": "2", "cpu": "1"}, "used": {"pods": "1", "cpu": "500m"}});
        assert_eq!(status(json!({}), &hard, &usage), Some(right.clone()));
        assert_eq!(status(right.clone(), &hard, &usage), None);
        let mut spelled = right.clone();
        spelled["used"]["cpu"] = "0.5".into();
        assert_eq!(status(spelled, &hard, &usage), None);
        let mut wrong = right.clone();
        wrong["used"]["pods"] = "2".into();
        assert_eq!(status(wrong, &hard, &usage), Some(right));
    }

    #[test]
    fn unlimited_resources_are_dropped_and_uncounted_ones_stay() {
        let before = json!({"hard": {"pods": "2", "a": "1"}, "used": {"pods": "1", "a": "1"}});
        let after = status(before.clone(), &[("a", "1")], &[]);
        assert_eq!(after, Some(json!({"hard": {"a": "1"}, "used": {"a": "1"}})));
        let empty = json!({"hard": {}, "used": {}});
        assert_eq!(status(before, &[], &[]), Some(empty.clone()));
        assert_eq!(status(empty, &[], &[]), None);
    }
}
