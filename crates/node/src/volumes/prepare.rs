//! The plan for setting up a volume, once its sources are known.

use k8s_openapi::api::core::v1::{Pod, ProjectedVolumeSource, Volume};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::{Bytes, ResourceList};

use crate::pod_fields::common_user;
use crate::pod_fields::identity;

use super::claim::{self, Claimed};
use super::empty_dir::{Medium, medium, memory_size};
use super::ownership::Ownership;
use super::payload::{self, DEFAULT_MODE, Payload, one_or_many};
use super::token::Tokens;
use super::{Objects, SetUpError, Sources, TokenRequest};

/// A volume with all it is made from.
#[derive(Clone, Debug)]
pub(super) enum Prepared {
    EmptyDir(Medium),
    Files(Files),
    HostPath {
        path: String,
        kind: String,
        claim: Option<Claim>,
    },
    Local {
        path: std::path::PathBuf,
        claim: Claim,
    },
}

impl Prepared {
    /// The name that messages call the volume by: that of the persistent volume where it is one.
    pub(super) fn message_name<'a>(&'a self, in_pod: &'a str) -> &'a str {
        match self {
            Prepared::HostPath {
                claim: Some(claim), ..
            }
            | Prepared::Local { claim, .. } => &claim.volume,
            _ => in_pod,
        }
    }
}

/// The plugin of a volume with files that the agent writes.
pub(super) fn files_plugin(volume: &Volume) -> Option<&'static str> {
    match volume {
        volume if volume.config_map.is_some() => Some(CONFIG_MAP),
        volume if volume.secret.is_some() => Some(SECRET),
        volume if volume.downward_api.is_some() => Some(DOWNWARD_API),
        volume if volume.projected.is_some() => Some(PROJECTED),
        _ => None,
    }
}

pub(super) const CONFIG_MAP: &str = "kubernetes.io~configmap";
const SECRET: &str = "kubernetes.io~secret";
const DOWNWARD_API: &str = "kubernetes.io~downward-api";
const PROJECTED: &str = "kubernetes.io~projected";

/// Files that the agent writes.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) plugin: &'static str,
    pub(super) payload: Payload,
    pub(super) medium: Medium,
}

/// The claim through which storage is used.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) volume: String,
    pub(super) is_read_only: bool,
}

/// What volumes are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) pod: &'a Pod,
    pub(super) view: &'a PodView,
    pub(super) sources: &'a dyn Sources,
    pub(super) tokens: &'a Tokens,
    pub(super) allocatable: &'a ResourceList,
    pub(super) now: Timestamp,
}

impl Context<'_> {
    /// Gathers all that the volume is made from.
    pub(super) async fn prepare(&self, volume: &Volume) -> Result<Prepared, SetUpError> {
        let (namespace, _, _) = identity(self.pod);
        let mut objects = Objects::new(self.sources, namespace);
        if let Some(source) = &volume.empty_dir {
            return Ok(Prepared::EmptyDir(medium(
                source,
                self.view,
                self.allocatable,
            )?));
        }
        if let Some(source) = &volume.host_path {
            return Ok(Prepared::HostPath {
                path: source.path.clone(),
                kind: source.type_.clone().unwrap_or_default(),
                claim: None,
            });
        }
        if let Some(source) = &volume.config_map {
            let is_optional = source.optional.unwrap_or_default();
            let object = objects.config_map(&source.name, is_optional).await?;
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            let payload = payload::from_config_map(object.as_deref(), items, mode, is_optional)?;
            return Ok(self.files(CONFIG_MAP, payload, false));
        }
        if let Some(source) = &volume.secret {
            let is_optional = source.optional.unwrap_or_default();
            let name = source.secret_name.as_deref().unwrap_or_default();
            let object = objects.secret(name, is_optional).await?;
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            let payload = payload::from_secret(object.as_deref(), items, mode, is_optional)?;
            return Ok(self.files(SECRET, payload, true));
        }
        if let Some(source) = &volume.downward_api {
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            let payload = payload::from_pod(self.pod, items, mode, self.allocatable)?;
            return Ok(self.files(DOWNWARD_API, payload, true));
        }
        if let Some(source) = &volume.projected {
            let payload = self.project(source, &mut objects).await?;
            return Ok(self.files(PROJECTED, payload, true));
        }
        if let Some(source) = &volume.persistent_volume_claim {
            let is_read_only = source.read_only.unwrap_or_default();
            return self
                .claimed(&volume.name, &source.claim_name, is_read_only)
                .await;
        }
        if volume.ephemeral.is_some() {
            let (_, pod, _) = identity(self.pod);
            let claim = format!("{pod}-{}", volume.name);
            return self.claimed(&volume.name, &claim, false).await;
        }
        Err(unsupported(&volume.name, kind_of(volume)))
    }

    fn files(&self, plugin: &'static str, payload: Payload, is_in_memory: bool) -> Prepared {
        let medium = match is_in_memory {
            true => Medium::Memory(self.memory_size()),
            false => Medium::Disk,
        };
        Prepared::Files(Files {
            plugin,
            payload,
            medium,
        })
    }

    fn memory_size(&self) -> Bytes {
        memory_size(None, self.view, self.allocatable)
    }

    /// The files of all sources together. All that fail are reported.
    async fn project(
        &self,
        source: &ProjectedVolumeSource,
        objects: &mut Objects<'_>,
    ) -> Result<Payload, SetUpError> {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        let mut payload = Payload::new();
        let mut failures = Vec::new();
        for source in source.sources.iter().flatten() {
            let files = if let Some(source) = &source.secret {
                let is_optional = source.optional.unwrap_or_default();
                let items = source.items.as_deref().unwrap_or_default();
                match objects.secret(&source.name, is_optional).await {
                    Ok(object) => payload::from_secret(object.as_deref(), items, mode, is_optional),
                    Err(error) => Err(error.into()),
                }
            } else if let Some(source) = &source.config_map {
                let is_optional = source.optional.unwrap_or_default();
                let items = source.items.as_deref().unwrap_or_default();
                match objects.config_map(&source.name, is_optional).await {
                    Ok(object) => {
                        payload::from_config_map(object.as_deref(), items, mode, is_optional)
                    }
                    Err(error) => Err(error.into()),
                }
            } else if let Some(source) = &source.downward_api {
                let items = source.items.as_deref().unwrap_or_default();
                payload::from_pod(self.pod, items, mode, self.allocatable)
            } else if let Some(source) = &source.service_account_token {
                let audience = source.audience.as_deref().unwrap_or_default();
                let token = self.token(audience, source.expiration_seconds).await;
                token.map(|token| {
                    let spec = self.pod.spec.as_ref();
                    let owner = spec.and_then(common_user);
                    let has_group = Ownership::of(self.pod, true).is_some();
                    let file = payload::from_token(&token, mode, owner, has_group);
                    Payload::from([(source.path.clone(), file)])
                })
            } else {
                Err(unsupported(
                    "projected",
                    "clusterTrustBundle and podCertificate",
                ))
            };
            match files {
                Ok(files) => payload.extend(files),
                Err(error) => failures.push(error),
            }
        }
        one_or_many(failures).map_or(Ok(payload), Err)
    }

    async fn token(
        &self,
        audience: &str,
        expiration_secs: Option<i64>,
    ) -> Result<String, SetUpError> {
        let (namespace, name, uid) = identity(self.pod);
        let spec = self.pod.spec.as_ref();
        let account = spec.and_then(|spec| spec.service_account_name.clone());
        let request = TokenRequest {
            namespace: namespace.to_owned(),
            service_account: account.unwrap_or_else(|| "default".to_owned()),
            audience: audience.to_owned(),
            expiration_secs: Some(expiration_secs.unwrap_or(3600)),
            pod_name: name.to_owned(),
            pod_uid: uid.to_owned(),
        };
        self.tokens.get(&request, self.sources, self.now).await
    }

    async fn claimed(
        &self,
        volume: &str,
        name: &str,
        is_read_only: bool,
    ) -> Result<Prepared, SetUpError> {
        let (namespace, _, _) = identity(self.pod);
        let failed = |why: String| claim::failure(namespace, name, why);
        let found = self.sources.claim(namespace, name).await;
        let found = found.map_err(|error| failed(claim::fetch_failure("PVC", &error)))?;
        let bound = claim::bound_volume(&found).map_err(|why| failed(why.to_owned()))?;
        let storage = self.sources.persistent_volume(bound).await;
        let storage = storage
            .map_err(|error| failed(claim::fetch_failure(&format!("PV {bound}"), &error)))?;
        let uid = found.metadata.uid.as_deref().unwrap_or_default();
        claim::check_bound_to(&storage, uid).map_err(failed)?;
        let spec = storage.spec.unwrap_or_default();
        if let Some(mode @ "Block") = spec.volume_mode.as_deref() {
            return Err(SetUpError::Claim(format!(
                "volume {volume} has volumeMode {mode}, but is specified in volumeMounts"
            )));
        }
        let claim = Claim {
            name: name.to_owned(),
            volume: bound.to_owned(),
            is_read_only,
        };
        match claim::locate(&spec).map_err(|kind| unsupported(bound, kind))? {
            Claimed::HostPath { path, kind } => Ok(Prepared::HostPath {
                path,
                kind,
                claim: Some(claim),
            }),
            Claimed::Local { path } => Ok(Prepared::Local { path, claim }),
        }
    }
}

fn unsupported(volume: &str, kind: &str) -> SetUpError {
    SetUpError::Unsupported {
        volume: volume.to_owned(),
        kind: kind.to_owned(),
    }
}

/// What the API calls the kind of a volume: the one field it has besides its name.
fn kind_of(volume: &Volume) -> &'static str {
    match volume {
        volume if volume.csi.is_some() => "csi",
        volume if volume.nfs.is_some() => "nfs",
        volume if volume.iscsi.is_some() => "iscsi",
        volume if volume.fc.is_some() => "fc",
        volume if volume.image.is_some() => "image",
        _ => "such",
    }
}
