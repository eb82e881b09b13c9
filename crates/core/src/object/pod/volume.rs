//! The volumes of a pod, as far as their disk usage matters.

use k8s_openapi::api::core::v1::Volume;

use crate::problem::Problem;
use crate::quantity::Quantity;

/// A volume, reduced to whose disk it fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeView {
    /// Its name in the pod.
    pub name: String,
    /// Whether it lives on the node's own disk: an emptyDir that is not in memory, a gitRepo, a
    /// configMap or a hostPath. Matches v1.36 `localVolumeNames` of pkg/kubelet/eviction.
    pub is_local: bool,
    /// The most an emptyDir may hold.
    pub size_limit: Option<Quantity>,
}

impl VolumeView {
    /// Parses an API volume that stands at `path`.
    pub(super) fn from_api(path: &str, volume: &Volume, problems: &mut Vec<Problem>) -> VolumeView {
        let empty_dir = volume.empty_dir.as_ref();
        let size_limit = empty_dir.and_then(|source| source.size_limit.as_ref());
        let size_limit = size_limit.and_then(|text| match text.0.trim().parse() {
            Ok(quantity) => Some(quantity),
            Err(error) => {
                let path = format!("{path}.emptyDir.sizeLimit");
                problems.push(Problem::invalid(path, &text.0, format!("{error}")));
                None
            }
        });
        let is_on_disk = |medium: Option<&str>| medium.unwrap_or_default().is_empty();
        VolumeView {
            name: volume.name.clone(),
            is_local: volume.host_path.is_some()
                || volume.git_repo.is_some()
                || volume.config_map.is_some()
                || empty_dir.is_some_and(|source| is_on_disk(source.medium.as_deref())),
            size_limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn view(volume: Value) -> (VolumeView, Vec<Problem>) {
        let mut problems = Vec::new();
        let volume = serde_json::from_value(volume).unwrap();
        let view = VolumeView::from_api("spec.volumes[0]", &volume, &mut problems);
        (view, problems)
    }

    #[test]
    fn memory_and_claims_do_not_fill_the_nodes_disk() {
        let is_local = |source: Value| view(source).0.is_local;
        assert!(is_local(json!({"name": "v", "emptyDir": {}})));
        assert!(is_local(json!({"name": "v", "hostPath": {"path": "/"}})));
        assert!(is_local(json!({"name": "v", "configMap": {"name": "c"}})));
        assert!(!is_local(
            json!({"name": "v", "emptyDir": {"medium": "Memory"}})
        ));
        assert!(!is_local(
            json!({"name": "v", "secret": {"secretName": "s"}})
        ));
        let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
        assert!(!is_local(claim));
    }

    #[test]
    fn malformed_size_limit_is_reported_with_its_path() {
        let (_, problems) = view(json!({"name": "v", "emptyDir": {"sizeLimit": "1Gib"}}));
        assert_eq!(problems[0].path, "spec.volumes[0].emptyDir.sizeLimit");
    }
}
