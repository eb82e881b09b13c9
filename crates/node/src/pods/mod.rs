//! Pods on the node: one worker each, from admission to the last status.

pub mod spec;
