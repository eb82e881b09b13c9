//! Which node a pod goes to, and who makes room for it: the default scheduler of v1.36.
//!
//! Reading order:
//! 1. [`pod`] – what a pod asks for, read once.
//! 2. [`cluster`] – nodes, the pods on them and what else decides, kept from events.

pub mod cluster;
pub mod pod;
