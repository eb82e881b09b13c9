//! The workload controllers: what turns a wish for pods into pods.
//!
//! Each controller is a folder of pure decisions (object, children and time in; actions and status
//! out) and one file that reads watches and carries the actions out.
//!
//! Reading order: `note` (what is told), `ownership` (whose is it), `pod_state` (what can
//! be asked of a pod), `deletion_order`, `fraction`, `template_hash`, `pod_template`,
//! `expectations` (what was ordered and not yet seen); then the kinds: `replica_set`,
//! `deployment`, `daemon_set`, `job`, `disruption`.

pub mod daemon_set;
pub mod deletion_order;
pub mod deployment;
pub mod disruption;
pub mod expectations;
pub mod fraction;
pub mod job;
pub mod note;
pub mod ownership;
pub mod pod_state;
pub mod pod_template;
pub mod replica_set;
pub mod template_hash;
