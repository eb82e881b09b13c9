//! The messages of CRI v1 that the agent uses.
//!
//! They are the vocabulary of [`super::Runtime`], so that nothing is translated between the agent
//! and a runtime behind a socket. Names and numbers are those of the v1 protocol in v1.36
//! (staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto); unused fields are left out,
//! which the encoding allows.

mod container;
mod image;
mod runtime;
mod sandbox;
mod stats;
mod stream;

pub use container::*;
pub use image::*;
pub use runtime::*;
pub use sandbox::*;
pub use stats::*;
pub use stream::*;
