//! The agent: registers a node, keeps it alive in the API, and runs its pods.
//!
//! Reading order: `options`; `system_info`, `conditions`, `node_object` (the Node object, as pure
//! values), `heartbeat` (reports it), `priority_lane` (reports pressure first); `prepare` (prepares the
//! machine for pods), `credentials`, `user_namespaces` and `host` (what pod workers need), `upkeep` (periodic
//! work), `measure`, `eviction_host` (what eviction needs), `garbage_collection` (frees disk space), `pressure`
//! (runs both), `kubelet_api` (what the server shows), `serving` (its certificate), `device_plugins` and `tasks` (the tasks that
//! run as long as the agent), `vitals` (their health), `run` (starts all of it).

mod conditions;
mod credentials;
mod device_plugins;
mod eviction_host;
mod garbage_collection;
mod heartbeat;
mod host;
mod kubelet_api;
mod measure;
mod node_object;
mod options;
mod prepare;
mod pressure;
mod priority_lane;
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
