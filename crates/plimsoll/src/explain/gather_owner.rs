//! Reads an owner of pods, and its pods.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use plimsoll_client::watching;
use plimsoll_report::explain::{FoundOwner, OwnerKind};

/// The fields read of any owner.
#[derive(Default)]
struct Owner {
    uid: String,
    wanted: i32,
    succeeded: i32,
    conditions: Vec<String>,
}

/// Everything about an owner of pods. Returns the API server's NotFound error if it does not exist.
pub(super) async fn owner(
    client: &Client,
    kind: OwnerKind,
    namespace: &str,
    name: &str,
) -> Result<FoundOwner> {
    let owner = read(client, kind, namespace, name).await?;
    let mut owners = BTreeSet::from([owner.uid.clone()]);
    let mut involved = vec![(kind.as_str(), name.to_owned())];
    if kind == OwnerKind::Deployment {
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), namespace);
        let sets = watching::list(sets, &ListParams::default()).await?;
        for set in sets.iter().filter(|set| is_owned(&set.metadata, &owners)) {
            involved.push(("ReplicaSet", set.name_any()));
        }
        let uids: Vec<String> = sets
            .iter()
            .filter(|set| is_owned(&set.metadata, &owners))
            .filter_map(|set| set.metadata.uid.clone())
            .collect();
        owners.extend(uids);
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut pods = watching::list(pods, &ListParams::default()).await?;
    pods.retain(|pod| is_owned(&pod.metadata, &owners));
    let mut events = Vec::new();
    for (kind, name) in involved {
        let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
        let api: Api<Event> = Api::namespaced(client.clone(), namespace);
        let listed = watching::list(api, &ListParams::default().fields(&about)).await;
        events.extend(listed.unwrap_or_default());
    }
    Ok(FoundOwner {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        wanted: owner.wanted,
        succeeded: owner.succeeded,
        conditions: owner.conditions,
        pods,
        events,
    })
}

fn is_owned(metadata: &ObjectMeta, owners: &BTreeSet<String>) -> bool {
    let references = metadata.owner_references.iter().flatten();
    let mut controllers = references.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| owners.contains(&owner.uid))
}

async fn get<K>(client: &Client, namespace: &str, name: &str) -> Result<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    Ok(api.get(name).await?)
}

async fn read(client: &Client, kind: OwnerKind, namespace: &str, name: &str) -> Result<Owner> {
    let uid = |metadata: &ObjectMeta| metadata.uid.clone().unwrap_or_default();
    Ok(match kind {
        OwnerKind::Deployment => {
            let found: Deployment = get(client, namespace, name).await?;
            let status = found.status.unwrap_or_default();
            let conditions = status.conditions.into_iter().flatten();
            let wrong = conditions.filter(|condition| {
                let is_true = condition.status == "True";
                is_true == (condition.type_ == "ReplicaFailure")
            });
            Owner {
                uid: uid(&found.metadata),
                wanted: found.spec.and_then(|spec| spec.replicas).unwrap_or(1),
                conditions: wrong
                    .map(|one| sentence(&one.type_, one.reason, one.message))
                    .collect(),
                ..Owner::default()
            }
        }
        OwnerKind::ReplicaSet => {
            let found: ReplicaSet = get(client, namespace, name).await?;
            let status = found.status.unwrap_or_default();
            let conditions = status.conditions.into_iter().flatten();
            let wrong =
                conditions.filter(|one| one.type_ == "ReplicaFailure" && one.status == "True");
            Owner {
                uid: uid(&found.metadata),
                wanted: found.spec.and_then(|spec| spec.replicas).unwrap_or(1),
                conditions: wrong
                    .map(|one| sentence(&one.type_, one.reason, one.message))
                    .collect(),
                ..Owner::default()
            }
        }
        OwnerKind::ReplicationController => {
            let found: ReplicationController = get(client, namespace, name).await?;
            Owner {
                uid: uid(&found.metadata),
                wanted: found.spec.and_then(|spec| spec.replicas).unwrap_or(1),
                ..Owner::default()
            }
        }
        OwnerKind::StatefulSet => {
            let found: StatefulSet = get(client, namespace, name).await?;
            Owner {
                uid: uid(&found.metadata),
                wanted: found.spec.and_then(|spec| spec.replicas).unwrap_or(1),
                ..Owner::default()
            }
        }
        OwnerKind::DaemonSet => {
            let found: DaemonSet = get(client, namespace, name).await?;
            let status = found.status.unwrap_or_default();
            Owner {
                uid: uid(&found.metadata),
                wanted: status.desired_number_scheduled,
                ..Owner::default()
            }
        }
        OwnerKind::Job => {
            let found: Job = get(client, namespace, name).await?;
            let status = found.status.unwrap_or_default();
            let conditions = status.conditions.into_iter().flatten();
            let wrong = conditions.filter(|one| {
                one.status == "True" && matches!(&*one.type_, "Failed" | "Suspended")
            });
            Owner {
                uid: uid(&found.metadata),
                wanted: found.spec.and_then(|spec| spec.completions).unwrap_or(1),
                succeeded: status.succeeded.unwrap_or(0),
                conditions: wrong
                    .map(|one| sentence(&one.type_, one.reason, one.message))
                    .collect(),
            }
        }
    })
}

/// A condition in one sentence.
fn sentence(condition: &str, reason: Option<String>, message: Option<String>) -> String {
    let reason = reason.unwrap_or_default();
    let message = message.unwrap_or_default();
    match (reason.as_str(), message.as_str()) {
        ("", "") => condition.to_owned(),
        (reason, "") => format!("{condition}: {reason}"),
        ("", message) => format!("{condition}: {message}"),
        (reason, message) => format!("{condition}: {reason}: {message}"),
    }
}
