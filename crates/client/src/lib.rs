//! What every part that talks to a Kubernetes API shares.
//!
//! Nothing here decides anything. [`process`] (who this process is), [`holder`]
//! (which process has a port or a lock), [`clock`] (what time it is),
//! [`watching`] (every change of a kind), [`informer`] (objects kept in memory), [`events`] (what is
//! told to people), [`any_server`] (TLS with whoever answers), [`accepting`] (connections that come in),
//! [`open_files`] (how many of them), [`splice`] (two
//! connections made one), [`supervision`] (tasks that are started again),
//! [`restarts`] (how often).
//! For tests, with the feature of that name, `testing`: an API server in memory.

pub mod accepting;
pub mod any_server;
pub mod clock;
pub mod events;
pub mod holder;
pub mod informer;
pub mod open_files;
pub mod process;
pub mod restarts;
pub mod splice;
pub mod supervision;
#[cfg(any(test, feature = "testing"))]
#[expect(
    clippy::unwrap_used,
    reason = "a test that meets a fault of its server ends there"
)]
pub mod testing;
pub mod watching;
