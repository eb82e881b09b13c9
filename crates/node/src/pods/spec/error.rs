//! Why a config cannot be made.

use std::path::PathBuf;

use plimsoll_core::cgroup::InvalidComponent;
use plimsoll_core::problem::Problem;

use crate::volumes::SourceError;

/// Why a pod's spec does not become a config. The texts are upstream's; they end in the status of
/// the container and in an event.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// A ConfigMap, Secret or the Services could not be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The ConfigMap has no such key.
    #[error("couldn't find key {key} in ConfigMap {namespace}/{name}")]
    NoConfigMapKey {
        /// The requested key.
        key: String,
        /// Where the ConfigMap is.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Secret has no such key.
    #[error("couldn't find key {key} in Secret {namespace}/{name}")]
    NoSecretKey {
        /// The requested key.
        key: String,
        /// Where the Secret is.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The volume of an environment file is not there.
    #[error("cannot find the volume {volume:?} referenced by FileKeyRef")]
    NoEnvFileVolume {
        /// The volume.
        volume: String,
    },
    /// The environment file cannot be read. Why stays in the node's log, as the file may be secret.
    #[error("couldn't parse env file")]
    EnvFile,
    /// The environment file has no such key.
    #[error("environment variable key {key:?} not found in file {path:?}")]
    NoEnvFileKey {
        /// The requested key.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// A field or resource of the pod that cannot be passed down.
    #[error(transparent)]
    Field(#[from] crate::volumes::downward::FieldError),
    /// A host name that is none.
    #[error("pod {field} {value:?} is not a valid DNS {form}: {rule}")]
    HostName {
        /// `Hostname`, `Subdomain` or `HostnameOverride`.
        field: &'static str,
        /// What it says.
        value: String,
        /// `label` or `subdomain`.
        form: &'static str,
        /// The rule it breaks.
        rule: String,
    },
    /// Nothing is left of a host name once it is short enough.
    #[error("hostname for pod {pod:?} was invalid: {value:?}")]
    EmptyHostName {
        /// The pod.
        pod: String,
        /// The name before it was cut.
        value: String,
    },
    /// A full name that the kernel cannot hold.
    #[error(
        "failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long \
         ({limit} characters is the max, {} characters requested)", .fqdn.len()
    )]
    LongFqdn {
        /// The name.
        fqdn: String,
        /// The kernel's limit.
        limit: usize,
    },
    /// The mount names a volume that the pod does not have or that is not mounted.
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    NoVolume {
        /// The volume.
        volume: String,
        /// The container.
        container: String,
    },
    /// The device names a volume that is no block device of the pod.
    #[error("cannot find volume {volume:?} to pass into container {container:?}")]
    NoDevice {
        /// The volume.
        volume: String,
        /// The container.
        container: String,
    },
    /// `subPathExpr` names variables that have no value.
    #[error("missing value for {}", .0.join(", "))]
    SubPathVariables(Vec<String>),
    /// A `subPath` from the root.
    #[error("error SubPath `{0}` must not be an absolute path")]
    AbsoluteSubPath(String),
    /// A `subPath` that leaves the volume.
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    SubPathBacksteps(String),
    /// The `subPath` is not in the volume and cannot be made. Why stays in the node's log, as it
    /// reveals details of the machine.
    #[error(
        "failed to create subPath directory for volumeMount {volume:?} of container {container:?}"
    )]
    CreateSubPath {
        /// The volume.
        volume: String,
        /// The container.
        container: String,
    },
    /// The `subPath` cannot be mounted, for a reason in the node's log.
    #[error("failed to prepare subPath for volumeMount {volume:?} of container {container:?}")]
    PrepareSubPath {
        /// The volume.
        volume: String,
        /// The container.
        container: String,
    },
    /// An unknown `mountPropagation`.
    #[error("invalid MountPropagation mode: {0:?}")]
    MountPropagation(String),
    /// A `recursiveReadOnly` that cannot be.
    #[error("failed to resolve recursive read-only mode: {0}")]
    RecursiveReadOnly(String),
    /// A file for the container cannot be written.
    #[error("cannot write {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the node cannot be read.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The container must not, but would run as root; or that cannot be determined.
    #[error("{0}")]
    RunAsNonRoot(String),
    /// An unknown `supplementalGroupsPolicy`.
    #[error("unsupported supplementalGroupsPolicy: {0}")]
    SupplementalGroupsPolicy(String),
    /// A seccomp profile without its file.
    #[error("localhostProfile must be set if seccompProfile type is Localhost.")]
    SeccompProfile,
    /// An AppArmor profile without its name.
    #[error("missing localhost apparmor profile name")]
    AppArmorProfile,
    /// An AppArmor profile of an unknown type.
    #[error("unknown apparmor profile type: {0:?}")]
    AppArmorType(String),
    /// A pod id that no cgroup may be called.
    #[error(transparent)]
    Cgroup(#[from] InvalidComponent),
    /// The agent ends while files were being made.
    #[error("the agent is stopping")]
    Stopped,
    /// Invalid quantities.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Quantities(Vec<Problem>),
}
