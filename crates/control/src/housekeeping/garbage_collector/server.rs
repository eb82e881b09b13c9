//! Asking the server about objects of any kind, and writing them.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::{Api, Client};
use serde_json::{Value, json};
use thiserror::Error;

use crate::housekeeping::discovery::{Kind, Kinds};
use plimsoll_client::informer::Metadata;

use super::identity::Identity;

/// How often the finalizer of an object that others write is tried to be removed.
const CONFLICTS: usize = 5;

/// Why an object cannot be read or written.
#[derive(Debug, Error)]
pub(super) enum Error {
    #[error("{0}: the server does not have this kind")]
    UnknownKind(Identity),
    /// A reference that can never be right; trying again does not help.
    #[error("{0}: a cluster-scoped object cannot have a namespaced owner")]
    NamespacedOwner(Identity),
    /// The watch may never report it, because the object came and went between two watches; reading
    /// it again finds out.
    #[error("{0}: exists, but no watch has reported it yet")]
    NotReported(Identity),
    #[error("{0}: {1}")]
    Api(Box<Identity>, kube::Error),
}

impl Error {
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Error::Api(_, kube::Error::Api(status)) if status.code == 404)
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Error::Api(_, kube::Error::Api(status)) if status.code == 409)
    }
}

fn api_error(object: &Identity, error: kube::Error) -> Error {
    Error::Api(Box::new(object.clone()), error)
}

/// The server, and the kinds it has.
pub(super) struct Server {
    client: Client,
    kinds: Mutex<Kinds>,
}

impl Server {
    pub(super) fn new(client: Client) -> Server {
        Server {
            client,
            kinds: Mutex::default(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn set_kinds(&self, kinds: Kinds) {
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner) = kinds;
    }

    /// The kind of an object.
    pub(super) fn kind(&self, object: &Identity) -> Result<Kind, Error> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.named(&object.api_version, &object.kind).cloned();
        kind.ok_or_else(|| Error::UnknownKind(object.clone()))
    }

    fn api(&self, object: &Identity) -> Result<Api<Metadata>, Error> {
        let kind = self.kind(object)?;
        let client = self.client.clone();
        match (kind.is_namespaced, object.namespace.as_str()) {
            (false, _) => Ok(Api::all_with(client, &kind.resource)),
            (true, "") => Err(Error::NamespacedOwner(object.clone())),
            (true, namespace) => Ok(Api::namespaced_with(client, namespace, &kind.resource)),
        }
    }

    /// The object of that name, with any uid; nothing if there is none.
    pub(super) async fn get(&self, object: &Identity) -> Result<Option<ObjectMeta>, Error> {
        let found = self.api(object)?.get_opt(&object.name).await;
        let found = found.map_err(|error| api_error(object, error))?;
        Ok(found.map(|object| object.metadata))
    }

    /// Deletes an object as it was seen. A change that leaves its owners alone is no reason not
    /// to.
    pub(super) async fn delete(
        &self,
        object: &Identity,
        seen: &ObjectMeta,
        policy: &PropagationPolicy,
    ) -> Result<(), Error> {
        let version = seen.resource_version.clone();
        let deleted = self.delete_version(object, version, policy).await;
        if !deleted.as_ref().is_err_and(Error::is_conflict) {
            return deleted;
        }
        let Some(live) = self.get(object).await? else {
            return Ok(());
        };
        let is_same = live.uid == seen.uid && live.owner_references == seen.owner_references;
        match is_same {
            true => self.delete_version(object, None, policy).await,
            false => deleted,
        }
    }

    async fn delete_version(
        &self,
        object: &Identity,
        resource_version: Option<String>,
        policy: &PropagationPolicy,
    ) -> Result<(), Error> {
        let params = DeleteParams {
            propagation_policy: Some(policy.clone()),
            preconditions: Some(Preconditions {
                uid: Some(object.uid.clone()),
                resource_version,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.api(object)?.delete(&object.name, &params).await;
        let deleted = deleted.map_err(|error| api_error(object, error));
        deleted.map(drop)
    }

    /// Replaces the owners of an object as it was seen.
    pub(super) async fn set_owners(
        &self,
        object: &Identity,
        seen: &ObjectMeta,
        owners: &[OwnerReference],
    ) -> Result<(), Error> {
        self.patch(object, seen, json!({"ownerReferences": owners}))
            .await
    }

    /// Removes a finalizer, if the object still has it.
    pub(super) async fn remove_finalizer(
        &self,
        object: &Identity,
        finalizer: &str,
    ) -> Result<(), Error> {
        let mut conflicts = 0;
        loop {
            let seen = self.get(object).await?;
            let Some(seen) = seen.filter(|seen| seen.uid.as_ref() == Some(&object.uid)) else {
                return Ok(());
            };
            let finalizers = seen.finalizers.clone().unwrap_or_default();
            if !finalizers.iter().any(|own| own == finalizer) {
                return Ok(());
            }
            let left: Vec<&String> = finalizers.iter().filter(|f| *f != finalizer).collect();
            let patched = self.patch(object, &seen, json!({"finalizers": left})).await;
            match patched {
                Err(error) if error.is_conflict() && conflicts < CONFLICTS => conflicts += 1,
                Err(error) if error.is_not_found() => return Ok(()),
                result => return result,
            }
        }
    }

    async fn patch(
        &self,
        object: &Identity,
        seen: &ObjectMeta,
        mut metadata: Value,
    ) -> Result<(), Error> {
        metadata["resourceVersion"] = json!(seen.resource_version);
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams::default();
        let patched = self.api(object)?.patch(&object.name, &params, &patch).await;
        let patched = patched.map_err(|error| api_error(object, error));
        patched.map(drop)
    }
}
