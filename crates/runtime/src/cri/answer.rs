//! What an answer must have before the agent relies on it.
//!
//! Matches v1.36 staging/src/k8s.io/cri-client/pkg/utils.go and the checks around each call there.

use super::super::wire::{
    ContainerStatus, Image, PodSandboxStatus, RuntimeStatus, VersionResponse,
};

/// An answer that lacks something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Lacking(String);

fn require(holds: bool, problem: impl Into<String>) -> Result<(), Lacking> {
    if holds {
        return Ok(());
    }
    Err(Lacking(problem.into()))
}

pub(super) fn check_version(version: &VersionResponse) -> Result<(), Lacking> {
    let fields = [
        (&version.version, "Version"),
        (&version.runtime_name, "RuntimeName"),
        (&version.runtime_api_version, "RuntimeApiVersion"),
        (&version.runtime_version, "RuntimeVersion"),
    ];
    let empty = fields.into_iter().filter(|(value, _)| value.is_empty());
    let missing: Vec<&str> = empty.map(|(_, name)| name).collect();
    let problem = format!(
        "not all fields are set in VersionResponse (missing {})",
        missing.join(", ")
    );
    require(missing.is_empty(), problem)
}

pub(super) fn check_runtime_status(status: &RuntimeStatus) -> Result<(), Lacking> {
    let problem = "RuntimeReady or NetworkReady condition are not set";
    require(status.conditions.len() >= 2, problem)
}

pub(super) fn check_sandbox_status(status: &PodSandboxStatus) -> Result<(), Lacking> {
    require(!status.id.is_empty(), "status.Id is not set")?;
    let metadata = status.metadata.clone().unwrap_or_default();
    require(status.metadata.is_some(), "status.Metadata is not set")?;
    let is_named =
        !metadata.name.is_empty() && !metadata.namespace.is_empty() && !metadata.uid.is_empty();
    let problem = format!(
        "metadata.Name, metadata.Namespace or metadata.Uid is not in metadata {metadata:?}"
    );
    require(is_named, problem)?;
    require(status.created_at != 0, "status.CreatedAt is not set")
}

pub(super) fn check_container_status(status: &ContainerStatus) -> Result<(), Lacking> {
    require(!status.id.is_empty(), "status.Id is not set")?;
    let metadata = status.metadata.clone().unwrap_or_default();
    require(status.metadata.is_some(), "status.Metadata is not set")?;
    let problem = format!("metadata.Name is not in metadata {metadata:?}");
    require(!metadata.name.is_empty(), problem)?;
    require(status.created_at != 0, "status.CreatedAt is not set")?;
    let has_image = (status.image.as_ref()).is_some_and(|image| !image.image.is_empty());
    require(has_image, "status.Image is not set")?;
    require(!status.image_ref.is_empty(), "status.ImageRef is not set")
}

pub(super) fn check_image(name: &str, image: &Image) -> Result<(), Lacking> {
    let problem = format!("Id or size of image {name:?} is not set");
    require(!image.id.is_empty() && image.size != 0, problem)
}

/// A text that names something, such as an id or an address.
pub(super) fn named(text: String, problem: impl Into<String>) -> Result<String, Lacking> {
    require(!text.is_empty(), problem)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::super::wire::{
        ContainerMetadata, ImageSpec, PodSandboxMetadata, RuntimeCondition,
    };
    use super::*;

    #[test]
    fn a_version_lacks_fields_by_name() {
        let version = VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: "containerd".to_owned(),
            ..VersionResponse::default()
        };
        assert_eq!(
            check_version(&version).unwrap_err().to_string(),
            "not all fields are set in VersionResponse (missing RuntimeApiVersion, RuntimeVersion)"
        );
    }

    #[test]
    fn runtime_status_needs_runtime_and_network_conditions() {
        let one = RuntimeStatus {
            conditions: vec![RuntimeCondition::default()],
        };
        assert!(check_runtime_status(&one).is_err());
        let two = RuntimeStatus {
            conditions: vec![RuntimeCondition::default(); 2],
        };
        assert_eq!(check_runtime_status(&two), Ok(()));
    }

    #[test]
    fn a_sandbox_is_named_and_dated() {
        let whole = PodSandboxStatus {
            id: "s1".to_owned(),
            metadata: Some(PodSandboxMetadata {
                name: "web".to_owned(),
                uid: "u1".to_owned(),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            created_at: 1,
            ..PodSandboxStatus::default()
        };
        assert_eq!(check_sandbox_status(&whole), Ok(()));
        let mut nameless = whole.clone();
        nameless.metadata = None;
        let mut undated = whole.clone();
        undated.created_at = 0;
        for (status, problem) in [
            (PodSandboxStatus::default(), "status.Id is not set"),
            (nameless, "status.Metadata is not set"),
            (undated, "status.CreatedAt is not set"),
        ] {
            let lacking = check_sandbox_status(&status).unwrap_err();
            assert_eq!(lacking.to_string(), problem);
        }
    }

    #[test]
    fn a_container_has_an_image() {
        let imageless = ContainerStatus {
            id: "c1".to_owned(),
            metadata: Some(ContainerMetadata {
                name: "main".to_owned(),
                attempt: 0,
            }),
            created_at: 1,
            ..ContainerStatus::default()
        };
        let mut unresolved = imageless.clone();
        unresolved.image = Some(ImageSpec {
            image: "busybox".to_owned(),
            ..ImageSpec::default()
        });
        let mut whole = unresolved.clone();
        whole.image_ref = "sha256:1".to_owned();
        assert_eq!(check_container_status(&whole), Ok(()));
        for (status, problem) in [
            (imageless, "status.Image is not set"),
            (unresolved, "status.ImageRef is not set"),
        ] {
            let lacking = check_container_status(&status).unwrap_err();
            assert_eq!(lacking.to_string(), problem);
        }
    }
}
