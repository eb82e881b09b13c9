//! Pods with requests may start on a node that is short of memory.
//!
//! A node under memory pressure is tainted, which keeps all pods away. Older releases kept only
//! BestEffort pods away, and the node agent still refuses only those. Upstream restores the old
//! rule with the PodTolerationRestriction plugin, which is off by default and gives every other
//! pod a toleration. Here it is the setting `addMemoryPressureToleration`. Matches v1.36
//! plugin/pkg/admission/podtolerationrestriction and pkg/util/tolerations.

use k8s_openapi::api::core::v1::{Pod, Toleration};

use crate::object::pod::{PodView, QosClass};
use crate::object::taint::NODE_MEMORY_PRESSURE;
use crate::problem::Problem;

/// The setting `addMemoryPressureToleration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddMemoryPressureToleration {
    /// As upstream by default: the taint keeps all pods away that do not tolerate it themselves.
    #[default]
    No,
    /// Pods that are not BestEffort tolerate the taint.
    Yes,
}

impl AddMemoryPressureToleration {
    /// Gives a new or updated pod the toleration if it should have it. Tolerations that another
    /// one makes redundant are dropped, as upstream does when it merges.
    pub fn admit(self, pod: &mut Pod) -> Result<(), Vec<Problem>> {
        if self == AddMemoryPressureToleration::No
            || PodView::from_api(pod)?.qos_class() == QosClass::BestEffort
        {
            return Ok(());
        }
        let spec = pod.spec.get_or_insert_default();
        let tolerations = spec.tolerations.get_or_insert_default();
        tolerations.push(Toleration {
            key: Some(NODE_MEMORY_PRESSURE.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoSchedule".to_owned()),
            ..Toleration::default()
        });
        *tolerations = without_redundant(tolerations);
        Ok(())
    }
}

/// Drops every toleration that an earlier kept one covers, or a different later one does.
fn without_redundant(all: &[Toleration]) -> Vec<Toleration> {
    let mut kept: Vec<Toleration> = Vec::new();
    for (index, own) in all.iter().enumerate() {
        let mut later = all[index + 1..].iter();
        let is_redundant = kept.iter().any(|other| covers(other, own))
            || later.any(|other| !is_equal(other, own) && covers(other, own));
        if !is_redundant {
            kept.push(own.clone());
        }
    }
    kept
}

fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

/// Absent and empty texts are the same to upstream.
fn is_equal(a: &Toleration, b: &Toleration) -> bool {
    text(&a.key) == text(&b.key)
        && text(&a.operator) == text(&b.operator)
        && text(&a.value) == text(&b.value)
        && text(&a.effect) == text(&b.effect)
        && a.toleration_seconds == b.toleration_seconds
}

/// Whether `wide` tolerates at least what `narrow` does.
fn covers(wide: &Toleration, narrow: &Toleration) -> bool {
    if is_equal(wide, narrow) {
        return true;
    }
    let is_of_all_keys = text(&wide.key).is_empty() && text(&wide.operator) == "Exists";
    if text(&wide.key) != text(&narrow.key) && !is_of_all_keys {
        return false;
    }
    let effect = text(&wide.effect);
    if !effect.is_empty() && effect != text(&narrow.effect) {
        return false;
    }
    if let Some(seconds) = wide.toleration_seconds
        && effect == "NoExecute"
        && narrow.toleration_seconds.is_none_or(|own| own > seconds)
    {
        return false;
    }
    match text(&wide.operator) {
        "Equal" | "" => {
            text(&narrow.operator) == "Equal" && text(&wide.value) == text(&narrow.value)
        }
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn admitted(setting: AddMemoryPressureToleration, requests: Value, own: Value) -> Value {
        let pod = json!({"spec": {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "tolerations": own,
        }});
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        setting.admit(&mut pod).unwrap();
        serde_json::to_value(pod.spec.unwrap().tolerations).unwrap()
    }

    #[test]
    fn pods_with_requests_get_the_toleration_if_the_setting_is_on() {
        use AddMemoryPressureToleration::{No, Yes};
        let requests = json!({"memory": "1Mi"});
        let added = json!([
            {"key": NODE_MEMORY_PRESSURE, "operator": "Exists", "effect": "NoSchedule"},
        ]);
        assert_eq!(admitted(Yes, requests.clone(), json!([])), added);
        assert_eq!(admitted(Yes, requests.clone(), added.clone()), added);
        assert_eq!(admitted(No, requests, json!([])), json!([]));
        assert_eq!(admitted(Yes, json!({}), json!([])), json!([]));
    }

    #[test]
    fn redundant_tolerations_are_dropped() {
        let key = NODE_MEMORY_PRESSURE;
        let wide = json!({"operator": "Exists"});
        let narrow = json!({"key": key, "operator": "Equal", "value": "x", "effect": "NoSchedule"});
        let other = json!({"key": "a", "operator": "Equal", "value": "b"});
        let added = json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
        let table = [
            (json!([wide]), json!([wide])),
            (json!([narrow, other]), json!([other, added])),
            (json!([other, wide]), json!([wide])),
        ];
        for (own, expected) in table {
            let result = admitted(AddMemoryPressureToleration::Yes, json!({"cpu": "1m"}), own);
            assert_eq!(result, expected);
        }
    }
}
