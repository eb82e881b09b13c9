//! The agent: registers a node, keeps it alive in the API, and runs its pods.
//!
//! Reading order: `options`; `system_info`, `conditions`, `node_object` (what is said of the node, as
//! pure values), `heartbeat` (saying it), `precedence` (before anything else); `prepare` (a machine
//! made ready for pods), `credentials`, `user_namespaces` and `host` (what workers need), `upkeep` (what is done again
//! and again), `measure`, `neighbours` (what eviction sees), `house` (what the node frees), `pressure`
//! (both at work), `face` (what is shown), `serving` (as whom), `tasks` (what runs as long as the
//! agent), `vitals` (whether they get on), `run` (all of it).

mod conditions;
mod credentials;
mod face;
mod heartbeat;
mod host;
mod house;
mod measure;
mod neighbours;
mod node_object;
mod options;
mod precedence;
mod prepare;
mod pressure;
mod ranking;
mod run;
mod serving;
mod settings;
mod system_info;
mod tasks;
#[cfg(test)]
mod tests;
mod upkeep;
mod user_namespaces;
mod vitals;
mod walks;

pub(crate) use host::chain;
pub(crate) use options::walks_cgroup;
pub use options::{Directories, EmbeddedChoice, EvictionChoice, Options, RuntimeChoice, Serving};
pub use prepare::StartError;
pub use run::run;
pub use system_info::KUBELET_VERSION;
pub use user_namespaces::UserNamespaceError;
