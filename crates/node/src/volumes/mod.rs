//! Directories and files that pods mount.
//!
//! [`Volumes`] sets up what a pod's spec names, below `<root>/pods/<uid>/volumes`, and tears it
//! down. The content of files is decided without touching any ([`payload`], [`downward`]);
//! [`atomic_writer`] changes all files of a volume at once; [`ownership`] gives them to the pod's
//! group. Nothing is kept but what the disk and the kernel's mount table say, so an agent that was
//! killed carries on where it was, and nothing is ever removed through a mount ([`removal`]).
//!
//! Not done: storage behind CSI drivers and networks. Pods that name it wait with an event.
//!
//! Reading order: [`Sources`], [`payload`], [`atomic_writer`], [`EmptyDir`](empty_dir),
//! [`host_path`], [`claim`], [`Volumes`].

pub mod atomic_writer;
pub mod claim;
pub mod downward;
pub mod empty_dir;
mod error;
pub mod host_path;
pub mod mount_point;
mod mounted;
mod named;
pub mod nested;
pub mod ownership;
pub mod payload;
mod prepare;
pub mod removal;
mod set_up;
mod sources;
pub mod token;
mod volume_set;

pub use error::{SetUpError, VolumeError, VolumeFailure};
pub use mounted::{MountedVolume, MountedVolumes};
pub use named::{Named, Names};
pub use sources::{KubeSources, MemorySources, Objects, SourceError, Sources, Token, TokenRequest};
pub use volume_set::Volumes;
