//! Whole flows with real kubectl: server, controllers and scheduler on nodes that exist in the
//! API only.
//!
//! Every test is a story in kubectl's words. [`flow`] has what they share, [`kubelets`] plays the
//! nodes, and [`target`] decides where all of it runs: on processes that are started for the test,
//! or, with `PLIMSOLL_TARGET_KUBECONFIG`, on a cluster that is there already.

mod flow;
mod kubelets;
mod ledger;
mod manifest;
mod target;

mod adoption;
mod chaos;
mod cron_jobs;
mod daemon_sets;
mod deletion;
mod drain;
mod explain;
mod jobs;
mod leadership;
mod preemption;
mod quota;
mod replication_controllers;
mod rollout;
mod second_scheduler;
mod silent_node;
mod stateful_sets;
