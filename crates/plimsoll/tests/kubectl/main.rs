//! Real kubectl against a server, command by command: what a person types, and what is printed.
//!
//! What is expected is what upstream's API server makes kubectl print. There is no kubelet and no
//! controller: where a command waits for one, the test writes the status that it would write.
//!
//! Needs `kubectl` on the `PATH`; `PLIMSOLL_KUBECTL` names further ones, separated by colons, and
//! every test runs with each. `PLIMSOLL_TARGET_KUBECONFIG` names another cluster to run against,
//! which is how the expectations themselves are checked against upstream.
//!
//! Reading order: `target` (what is talked to), `session` (one kubectl in one namespace),
//! `printed` (what it said), then the commands by topic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;
mod printed;
mod session;
mod target;

mod agent;
mod apply;
mod auth;
mod create;
mod delete;
mod describe;
mod discovery;
mod drain;
mod edit;
mod events;
mod get;
mod http;
mod nodes;
mod patch;
mod refusals;
mod rollout;
mod scale;
mod set;
mod wait;
mod watch;
