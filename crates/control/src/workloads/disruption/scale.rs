//! How many pods there should be, by the specs of their controllers.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::workloads::ownership::controller_of;
use crate::workloads::pod_state;

/// A controller and the number of pods in its spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerScale {
    /// Its uid: a Deployment for pods of its ReplicaSets.
    pub uid: String,
    /// The number.
    pub replicas: i32,
}

/// Looks up the scale of controllers.
pub trait Owners {
    /// The scale of the controller named, in that namespace; `None` if there is no such one.
    fn scale_of(
        &self,
        namespace: &str,
        controller: &OwnerReference,
    ) -> Result<Option<OwnerScale>, ScaleError>;
}

/// Why the number of pods is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// The controller is gone.
    #[error("found no controllers for pod {pod:?}")]
    NoController {
        /// The pod's name.
        pod: String,
    },
    /// The controller has no scale.
    #[error("{resource} does not implement the scale subresource")]
    NoScale {
        /// Plural and group.
        resource: String,
    },
    /// The request failed.
    #[error("{0}")]
    Request(String),
}

/// How many pods there should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedScale {
    /// The sum over all controllers.
    pub replicas: i32,
    /// Names of pods without a controller; they are not in the sum.
    pub unmanaged: Vec<String>,
}

/// Adds up the scales of the pods' controllers, each once.
pub fn expected_scale(pods: &[&Pod], owners: &dyn Owners) -> Result<ExpectedScale, ScaleError> {
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    let mut unmanaged = Vec::new();
    for pod in pods {
        let name = || pod_state::name(pod).to_owned();
        let Some(controller) = controller_of(&pod.metadata) else {
            unmanaged.push(name());
            continue;
        };
        if !asked.insert(&controller.uid) {
            continue;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let Some(scale) = owners.scale_of(namespace, controller)? else {
            return Err(ScaleError::NoController { pod: name() });
        };
        scales.insert(scale.uid, scale.replicas);
    }
    Ok(ExpectedScale {
        replicas: scales.into_values().fold(0, i32::saturating_add),
        unmanaged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Known;

    impl Owners for Known {
        fn scale_of(
            &self,
            _: &str,
            controller: &OwnerReference,
        ) -> Result<Option<OwnerScale>, ScaleError> {
            let scale = |uid: &str, replicas| {
                Some(OwnerScale {
                    uid: uid.to_owned(),
                    replicas,
                })
            };
            Ok(match controller.uid.as_str() {
                "old set" | "new set" => scale("deployment", 5),
                "set" => scale("set", 3),
                _ => None,
            })
        }
    }

    fn pod(owner: Option<&str>) -> Pod {
        let owners = owner.map(|uid| json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid, "controller": true}]));
        serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners}}))
            .unwrap()
    }

    #[test]
    fn controllers_are_counted_once_and_deployments_for_their_sets() {
        let pods = [
            pod(Some("old set")),
            pod(Some("new set")),
            pod(Some("set")),
            pod(Some("set")),
            pod(None),
        ];
        let pods: Vec<&Pod> = pods.iter().collect();
        let scale = expected_scale(&pods, &Known).unwrap();
        assert_eq!(
            scale,
            ExpectedScale {
                replicas: 8,
                unmanaged: vec!["p".into()]
            }
        );
        let lost = expected_scale(&[&pod(Some("gone"))], &Known).unwrap_err();
        assert_eq!(lost.to_string(), "found no controllers for pod \"p\"");
    }
}
