//! What goes over the wire besides objects.

pub mod status;
pub mod warning;
