//! Why a volume cannot be set up or removed.

use std::io;
use std::path::PathBuf;

use plimsoll_core::error_chain::error_chain;

use super::SourceError;
use super::downward::FieldError;

/// What went wrong with the volumes of a pod.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// Some could not be set up. Each failure is worth an event of reason `FailedMount`.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    SetUp(Vec<VolumeFailure>),
    /// The kernel's mount table cannot be read.
    #[error("cannot read the mount table")]
    MountTable(#[source] io::Error),
    /// A mount of the pod cannot be unmounted.
    #[error("cannot unmount {path:?}")]
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A directory of the pod cannot be removed.
    #[error("cannot remove {path:?}")]
    Remove {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The pod's resources are no quantities.
    #[error("{0}")]
    Quantity(String),
    /// The pod's directory cannot be made.
    #[error("cannot create directory {path:?}")]
    MakePodDir {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A uid that is not a pod's: as a path it would lead elsewhere.
    #[error("pod UID {0:?} is not a valid directory name")]
    Uid(String),
    /// The agent is ending.
    #[error("the agent is stopping")]
    Stopped,
}

impl VolumeError {
    /// The texts of the events to record on the pod, reason `FailedMount`.
    pub fn events(&self) -> Vec<String> {
        match self {
            VolumeError::SetUp(failures) => failures.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }
}

/// One volume that could not be set up; reads as upstream's event does.
#[derive(Debug, thiserror::Error)]
pub enum VolumeFailure {
    /// Its plugin is known, but its data cannot be prepared.
    #[error(
        "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], \
         failed to process volumes=[{volume}]: {}", error_chain(.source)
    )]
    Process {
        /// The volume's name in the pod.
        volume: String,
        /// Why.
        source: SetUpError,
    },
    /// Its source on the node does not exist.
    #[error("MountVolume.NewMounter initialization failed for volume {volume:?} : {}", error_chain(.source))]
    NewMounter {
        /// The name of the persistent volume.
        volume: String,
        /// Why.
        source: SetUpError,
    },
    /// It could not be set up.
    #[error("MountVolume.SetUp failed for volume {volume:?} : {}", error_chain(.source))]
    SetUp {
        /// The name of the volume, or of the persistent volume where it is one.
        volume: String,
        /// Why.
        source: SetUpError,
    },
}

/// Why a volume cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// An object that it is made from cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Fields or resources of the pod cannot be written down.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Several sources of one volume failed.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Many(Vec<SetUpError>),
    /// The ConfigMap has no such key.
    #[error("configmap references non-existent config key: {0}")]
    NoConfigMapKey(String),
    /// The Secret has no such key.
    #[error("references non-existent secret key: {0}")]
    NoSecretKey(String),
    /// There is no token.
    #[error("failed to fetch token: {0}")]
    Token(SourceError),
    /// There is no new token and the old one has expired.
    #[error("token expired and refresh failed: {0}")]
    TokenExpired(SourceError),
    /// A path in the volume that cannot be.
    #[error("invalid path: {0}")]
    Path(String),
    /// An unknown medium.
    #[error("unknown storage medium {0:?}")]
    Medium(String),
    /// Huge pages that the pod does not request, or of several sizes.
    #[error("{0}")]
    HugePages(String),
    /// The path on the node is not what the pod says.
    #[error("hostPath type check failed: {path} is not a {wanted}")]
    HostPathType {
        /// The path.
        path: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// An unknown `hostPath` type.
    #[error("{0} is an invalid volume type")]
    UnknownHostPathType(String),
    /// A path with `..`.
    #[error("invalid HostPath `{0}`: must not contain '..'")]
    HostPathBacksteps(String),
    /// The claim is not there, not bound, or not this pod's.
    #[error("{0}")]
    Claim(String),
    /// A local volume without its directory.
    #[error("path {0:?} does not exist")]
    NoLocalPath(PathBuf),
    /// A kind of volume that this agent does not have.
    #[error(
        "failed to get Plugin from volumeSpec for volume {volume:?} err=no volume plugin matched \
         ({kind} volumes are not supported by this node)"
    )]
    Unsupported {
        /// The volume.
        volume: String,
        /// What it is: `nfs`.
        kind: String,
    },
    /// Quantities that are none.
    #[error("{0}")]
    Quantity(String),
    /// A container's mount that would lead out of its file system.
    #[error("invalid container mount point {0}")]
    MountPoint(String),
    /// A directory or file cannot be made.
    #[error("cannot write {path:?}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something cannot be mounted.
    #[error("cannot mount {what} at {path:?}")]
    Mount {
        /// What.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl SetUpError {
    /// A failed write, for `map_err`.
    pub(super) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SetUpError {
        let path = path.into();
        move |source| SetUpError::Write { path, source }
    }
}
