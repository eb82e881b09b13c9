//! The garbage collector: objects go when all their owners are gone.
//!
//! Watches report the metadata of every object of every kind that can be deleted, and a graph of
//! owners and dependents is kept of it. The graph only says what to check; before anything is
//! deleted, the object and each of its owners are read from the server. Three ways of
//! deleting an owner:
//! - *background*: the owner goes at once, its dependents when the watch reports it,
//! - *foreground*: the owner waits for those dependents that block it,
//! - *orphan*: its dependents lose their reference and stay.
//!
//! Matches v1.36 pkg/controller/garbagecollector.
//!
//! Reading order: `identity`, `absent` (owners known to be gone), `graph` (what follows from what
//! the watches report), `decision` (what to do with an object), `server` (reading and writing),
//! `collector` (the loop).

mod absent;
mod collector;
mod decision;
mod graph;
mod identity;
mod server;

pub use collector::{Options, run};

/// The finalizer of an owner that waits for its dependents.
const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner whose dependents are to stay.
const ORPHAN: &str = "orphan";

fn has_finalizer(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    finalizer: &str,
) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    finalizers.any(|own| own == finalizer)
}

#[cfg(test)]
mod tests;
