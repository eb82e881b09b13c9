//! A container runtime that needs nothing but the agent's own binary.

mod images;

pub use images::{ImageConfig, Images};
