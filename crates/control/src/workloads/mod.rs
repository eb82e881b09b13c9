//! The workload controllers: they create and delete the pods of workloads.
//!
//! Each controller is a folder of pure decisions (object, children and time in; actions and status
//! out) and one file that reads watches and carries the actions out.
//!
//! Reading order: `ownership` (controller references), `pod_state` (the state of a
//! pod), `deletion_order`, `fraction`, `template_hash`, `pod_template`, `revision` (templates to go
//! back to), `expectations` (what was ordered and not yet seen), `pod_orders` (the orders),
//! `owners` (which controllers an object concerns), `control_loop` (how a controller is run); then
//! the kinds: `replica_set`, `deployment`, `daemon_set`, `stateful_set`, `job`, `cron_job`,
//! `disruption`.

pub mod claiming;
mod control_loop;
pub mod cron_job;
pub mod daemon_set;
pub mod deletion_order;
pub mod deployment;
pub mod disruption;
pub mod expectations;
pub mod fraction;
pub mod job;
pub mod owners;
pub mod ownership;
pub mod pod_orders;
pub mod pod_owners;
pub mod pod_state;
pub mod pod_template;
pub mod replica_set;
pub mod revision;
pub mod stateful_set;
pub mod template_hash;
pub mod writes;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;
use plimsoll_client::clock::Clock;
use plimsoll_core::lifecycle::recreation;

use crate::loops::Loops;

/// The settings of a workload loop.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many objects are worked on at a time.
    pub workers: usize,
    /// How long a set waits whose pods are evicted again and again. Upstream never waits; a longest
    /// wait of zero does as upstream does.
    pub recreation: recreation::Settings,
    /// The clock.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 5,
            recreation: recreation::Settings::default(),
            clock: Clock::default(),
        }
    }
}

/// Has all workload controllers run.
pub(crate) fn supervise(loops: &Loops<'_>, options: &Options) {
    let options = || options.clone();
    loops.keep("cronjob-controller", options(), cron_job::run);
    loops.keep("daemonset-controller", options(), daemon_set::run);
    loops.keep("deployment-controller", options(), deployment::run);
    loops.keep("disruption-controller", options(), disruption::run);
    loops.keep("job-controller", options(), job::run);
    loops.keep(
        "replicaset-controller",
        options(),
        replica_set::run::<ReplicaSet>,
    );
    loops.keep(
        "replicationcontroller-controller",
        options(),
        replica_set::run::<ReplicationController>,
    );
    loops.keep("statefulset-controller", options(), stateful_set::run);
}

/// The objects behind shared pointers.
fn as_refs<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(|object| &**object).collect()
}

#[cfg(test)]
mod tests;
