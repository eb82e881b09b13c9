//! Where pods go: which pod is next, and which node it gets.

pub mod queue;
