//! The scale of controllers, from caches where there are some and from the server else.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, Client};

use crate::workloads::ownership::{controller_of, group_of};
use crate::workloads::writes::{is_not_found, message_of};
use plimsoll_client::informer::{Informer, Informers, Key};

use super::scale::{OwnerScale, Owners, ScaleError};

/// The kinds that control pods, as they are watched.
pub(super) struct KnownOwners {
    controllers: Arc<Informer<ReplicationController>>,
    sets: Arc<Informer<ReplicaSet>>,
    deployments: Arc<Informer<Deployment>>,
    stateful_sets: Arc<Informer<StatefulSet>>,
}

impl KnownOwners {
    pub(super) fn new(informers: &Informers) -> KnownOwners {
        KnownOwners {
            controllers: informers.of(),
            sets: informers.of(),
            deployments: informers.of(),
            stateful_sets: informers.of(),
        }
    }

    pub(super) async fn synced(&self) {
        self.controllers.synced().await;
        self.sets.synced().await;
        self.deployments.synced().await;
        self.stateful_sets.synced().await;
    }

    /// The scale of a controller of a kind that is watched; `None` for other kinds.
    fn watched(&self, namespace: &str, controller: &OwnerReference) -> Option<Option<OwnerScale>> {
        let key = Key::new(namespace, controller.name.as_str());
        let group = group_of(&controller.api_version);
        Some(match (group, controller.kind.as_str()) {
            ("", "ReplicationController") => {
                let object = self.controllers.get(&key);
                object.and_then(|o| scale(&o.metadata, o.spec.as_ref()?.replicas, controller))
            }
            ("apps" | "extensions", "ReplicaSet") => self.of_set(&key, controller),
            ("apps", "StatefulSet") => {
                let object = self.stateful_sets.get(&key);
                object.and_then(|o| scale(&o.metadata, o.spec.as_ref()?.replicas, controller))
            }
            _ => return None,
        })
    }

    /// A set counts for itself, unless a deployment controls it.
    fn of_set(&self, key: &Key, controller: &OwnerReference) -> Option<OwnerScale> {
        let set = self.sets.get(key)?;
        let own = scale(&set.metadata, set.spec.as_ref()?.replicas, controller)?;
        let Some(owner) = controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment")
        else {
            return Some(own);
        };
        let deployment = self
            .deployments
            .get(&Key::new(key.namespace.as_str(), owner.name.as_str()))?;
        scale(
            &deployment.metadata,
            deployment.spec.as_ref()?.replicas,
            owner,
        )
    }

    /// Reads from the server the scales of the other controllers of these pods, so that all of them
    /// are known.
    pub(super) async fn complete(&self, client: &Client, pods: &[&Pod]) -> CompleteOwners<'_> {
        let mut asked = BTreeMap::new();
        for pod in pods {
            let Some(controller) = controller_of(&pod.metadata) else {
                continue;
            };
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let is_known = asked.contains_key(&controller.uid);
            if !is_known && self.watched(namespace, controller).is_none() {
                let scale = ask(client, namespace, controller).await;
                asked.insert(controller.uid.clone(), scale);
            }
        }
        CompleteOwners { known: self, asked }
    }
}

pub(super) struct CompleteOwners<'a> {
    known: &'a KnownOwners,
    asked: BTreeMap<String, Result<Option<OwnerScale>, ScaleError>>,
}

impl Owners for CompleteOwners<'_> {
    fn scale_of(
        &self,
        namespace: &str,
        controller: &OwnerReference,
    ) -> Result<Option<OwnerScale>, ScaleError> {
        match self.known.watched(namespace, controller) {
            Some(scale) => Ok(scale),
            None => self.asked.get(&controller.uid).cloned().unwrap_or(Ok(None)),
        }
    }
}

fn scale(object: &ObjectMeta, replicas: Option<i32>, named: &OwnerReference) -> Option<OwnerScale> {
    let uid = object.uid.clone().filter(|uid| *uid == named.uid)?;
    Some(OwnerScale {
        uid,
        replicas: replicas.unwrap_or(1),
    })
}

async fn ask(
    client: &Client,
    namespace: &str,
    controller: &OwnerReference,
) -> Result<Option<OwnerScale>, ScaleError> {
    let group = group_of(&controller.api_version);
    let version = controller
        .api_version
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, &controller.kind);
    let request = |error: kube::Error| ScaleError::Request(message_of(&error));
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &kind)
        .await
        .map_err(request)?;
    let has_scale = capabilities
        .subresources
        .iter()
        .any(|(sub, _)| sub.plural == "scale");
    if !has_scale {
        let resource = match group {
            "" => resource.plural,
            group => format!("{}.{group}", resource.plural),
        };
        return Err(ScaleError::NoScale { resource });
    }
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    match api.get_scale(&controller.name).await {
        Ok(found) => Ok(scale(
            &found.metadata,
            found.spec.and_then(|spec| spec.replicas),
            controller,
        )),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(request(error)),
    }
}
