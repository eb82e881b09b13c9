//! The environment of a container.
//!
//! Matches v1.36 makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go. Where upstream leaves the
//! order to chance, names are sorted.

pub mod expansion;
pub mod file;
pub mod service_links;

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, EnvFromSource, EnvVarSource, FileKeySelector, Pod,
    SecretKeySelector,
};

use crate::volumes::downward::{self, Addresses};
use crate::volumes::{MountedVolumes, Objects, Sources};

use super::sub_path::read_in_volume;
use super::{NodeContext, SpecError};
use crate::pod_fields::{display_pod, identity};
use expansion::{expand, reference};

/// Variables by name.
pub type Environment = BTreeMap<String, Vec<u8>>;

/// All that variables are made from.
#[derive(Clone, Copy, Debug)]
pub struct EnvInput<'a> {
    /// The node.
    pub node: &'a NodeContext,
    /// The pod.
    pub pod: &'a Pod,
    /// The container.
    pub container: &'a Container,
    /// Addresses of the pod.
    pub pod_ips: &'a [String],
    /// Volumes, for files of variables.
    pub volumes: &'a MountedVolumes,
}

/// The variables of a container: those of `envFrom` and `env`, and of Services where neither names
/// them.
pub async fn environment(
    input: &EnvInput<'_>,
    sources: &dyn Sources,
) -> Result<Environment, SpecError> {
    let (namespace, _, _) = identity(input.pod);
    let services = match sources.services(namespace).await {
        // The API server itself may be among the pods that need none.
        Err(_) if is_static(input.pod) => Vec::new(),
        services => services?,
    };
    let spec = input.pod.spec.as_ref();
    let wants_links = spec.and_then(|spec| spec.enable_service_links);
    let services =
        service_links::service_variables(&services, namespace, wants_links.unwrap_or(true));

    let mut objects = Objects::new(sources, namespace);
    let mut own = Environment::new();
    for from in input.container.env_from.iter().flatten() {
        add_all(from, &mut objects, &mut own).await?;
    }
    for variable in input.container.env.iter().flatten() {
        let value = match (variable.value.as_deref(), &variable.value_from) {
            (None | Some(""), Some(from)) => resolve(input, from, &mut objects).await?,
            (value, _) => Some(expand(value.unwrap_or_default(), |name| {
                let value = own.get(name).or_else(|| services.get(name));
                value.cloned().unwrap_or_else(|| reference(name))
            })),
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in services {
        own.entry(name).or_insert(value);
    }
    Ok(own)
}

/// Whether the pod comes from a file or URL of the node.
fn is_static(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let source = annotations.and_then(|all| all.get("kubernetes.io/config.source"));
    source.is_some_and(|source| source != "api")
}

/// Adds every key of a ConfigMap or Secret.
async fn add_all(
    from: &EnvFromSource,
    objects: &mut Objects<'_>,
    environment: &mut Environment,
) -> Result<(), SpecError> {
    let prefix = from.prefix.as_deref().unwrap_or_default();
    if let Some(source) = &from.config_map_ref {
        let is_optional = source.optional.unwrap_or_default();
        let object = objects.config_map(&source.name, is_optional).await?;
        for (key, value) in object
            .iter()
            .flat_map(|object| object.data.iter().flatten())
        {
            environment.insert(format!("{prefix}{key}"), value.clone().into_bytes());
        }
    } else if let Some(source) = &from.secret_ref {
        let is_optional = source.optional.unwrap_or_default();
        let object = objects.secret(&source.name, is_optional).await?;
        for (key, value) in object
            .iter()
            .flat_map(|object| object.data.iter().flatten())
        {
            environment.insert(format!("{prefix}{key}"), value.0.clone());
        }
    }
    Ok(())
}

/// The value of a variable that is taken from elsewhere; `None` where it is optional and missing.
async fn resolve(
    input: &EnvInput<'_>,
    from: &EnvVarSource,
    objects: &mut Objects<'_>,
) -> Result<Option<Vec<u8>>, SpecError> {
    if let Some(field) = &from.field_ref {
        let value = downward::env_field(input.pod, field, &addresses(input))?;
        return Ok(Some(value.into_bytes()));
    }
    if let Some(resource) = &from.resource_field_ref {
        let allocatable = &input.node.allocatable;
        let value = downward::env_resource(input.pod, input.container, resource, allocatable)?;
        return Ok(Some(value.into_bytes()));
    }
    if let Some(from) = &from.config_map_key_ref {
        return config_map_key(input, from, objects).await;
    }
    if let Some(from) = &from.secret_key_ref {
        return secret_key(input, from, objects).await;
    }
    if let Some(from) = &from.file_key_ref {
        return file_key(input, from);
    }
    Ok(Some(Vec::new()))
}

async fn config_map_key(
    input: &EnvInput<'_>,
    from: &ConfigMapKeySelector,
    objects: &mut Objects<'_>,
) -> Result<Option<Vec<u8>>, SpecError> {
    let is_optional = from.optional.unwrap_or_default();
    let Some(object) = objects.config_map(&from.name, is_optional).await? else {
        return Ok(None);
    };
    match object.data.as_ref().and_then(|data| data.get(&from.key)) {
        Some(value) => Ok(Some(value.clone().into_bytes())),
        None if is_optional => Ok(None),
        None => Err(SpecError::NoConfigMapKey {
            key: from.key.clone(),
            namespace: identity(input.pod).0.to_owned(),
            name: from.name.clone(),
        }),
    }
}

async fn secret_key(
    input: &EnvInput<'_>,
    from: &SecretKeySelector,
    objects: &mut Objects<'_>,
) -> Result<Option<Vec<u8>>, SpecError> {
    let is_optional = from.optional.unwrap_or_default();
    let Some(object) = objects.secret(&from.name, is_optional).await? else {
        return Ok(None);
    };
    match object.data.as_ref().and_then(|data| data.get(&from.key)) {
        Some(value) => Ok(Some(value.0.clone())),
        None if is_optional => Ok(None),
        None => Err(SpecError::NoSecretKey {
            key: from.key.clone(),
            namespace: identity(input.pod).0.to_owned(),
            name: from.name.clone(),
        }),
    }
}

fn file_key(input: &EnvInput<'_>, from: &FileKeySelector) -> Result<Option<Vec<u8>>, SpecError> {
    let Some(volume) = input.volumes.get(&from.volume_name) else {
        return Err(SpecError::NoEnvFileVolume {
            volume: from.volume_name.clone(),
        });
    };
    let refused = |error: &dyn std::fmt::Display| {
        let pod = display_pod(input.pod);
        tracing::warn!(pod, %error, "failed to parse env file");
        SpecError::EnvFile
    };
    let text = read_in_volume(&volume.path, &from.path).map_err(|error| refused(&error))?;
    let value = file::value_in_file(&text, &from.key).map_err(|error| refused(&error))?;
    match value.as_str() {
        "" if from.optional.unwrap_or_default() => Ok(None),
        "" => Err(SpecError::NoEnvFileKey {
            key: from.key.clone(),
            path: volume.path.join(&from.path),
        }),
        value => Ok(Some(value.as_bytes().to_vec())),
    }
}

/// The addresses that variables may name: one of each family, the node's own family first.
fn addresses(input: &EnvInput<'_>) -> Addresses {
    let prefers_v6 = input.node.ips.first().is_some_and(IpAddr::is_ipv6);
    let parsed: Vec<IpAddr> = input
        .pod_ips
        .iter()
        .filter_map(|ip| ip.parse().ok())
        .collect();
    let spec = input.pod.spec.as_ref();
    let is_host_network = spec.and_then(|spec| spec.host_network) == Some(true);
    let known = match parsed.is_empty() && is_host_network {
        true => &input.node.ips,
        false => &parsed,
    };
    let of_family = |is_v6: bool| known.iter().find(|ip| ip.is_ipv6() == is_v6);
    let pod_ips = [of_family(prefers_v6), of_family(!prefers_v6)];
    Addresses {
        pod_ips: pod_ips.into_iter().flatten().copied().collect(),
        host_ips: input.node.ips.clone(),
    }
}

/// The texts with references to variables replaced.
pub fn expand_all(texts: Option<&Vec<String>>, environment: &Environment) -> Vec<String> {
    let value_of = |name: &str| {
        let value = environment.get(name).cloned();
        value.unwrap_or_else(|| reference(name))
    };
    let texts = texts.into_iter().flatten();
    texts
        .map(|text| String::from_utf8_lossy(&expand(text, value_of)).into_owned())
        .collect()
}

/// A `subPathExpr` with references replaced; each must have a value.
pub fn expand_sub_path(text: &str, environment: &Environment) -> Result<String, SpecError> {
    let mut missing = std::collections::BTreeSet::new();
    let expanded = expand(text, |name| match environment.get(name) {
        Some(value) if !value.is_empty() => value.clone(),
        _ => {
            missing.insert(name.to_owned());
            Vec::new()
        }
    });
    if missing.is_empty() {
        Ok(String::from_utf8_lossy(&expanded).into_owned())
    } else {
        Err(SpecError::SubPathVariables(missing.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests;
