//! Test support shared by the crates; never linked into the product.
//!
//! - [`vectors`]: loads recorded cases, runs a check on each, reports per file.
//! - [`etcd`]: starts a real etcd and stops it.
//! - [`certificates`]: signs certificates.
//! - [`difference`]: says in readable words where two JSON values differ.

pub mod certificates;
pub mod difference;
pub mod etcd;
pub mod vectors;
