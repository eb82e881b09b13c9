//! The parts shared by all components that talk to a Kubernetes API.
//!
//! Nothing here makes decisions. [`process`] (identity of this process), [`holder`] (which process
//! has a port or a lock), [`clock`] (the time), [`watching`] (every change of a kind), [`informer`]
//! (objects kept in memory), [`events`] (events about objects), [`skip_verification`] (TLS with any
//! server), [`accept_loop`] (incoming connections), [`splice`] (two connections joined), [`supervision`] (tasks that are restarted), [`restarts`] (how often).
//! For tests, with the feature of that name, `testing`: an API server in memory.

pub mod accept_loop;
pub mod clock;
pub mod events;
pub mod holder;
pub mod informer;
pub mod process;
pub mod restarts;
pub mod skip_verification;
pub mod splice;
pub mod supervision;
#[cfg(any(test, feature = "testing"))]
#[expect(
    clippy::unwrap_used,
    reason = "a test that meets a fault of its server ends there"
)]
pub mod testing;
pub mod watching;
