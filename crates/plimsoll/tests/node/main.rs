//! Whole nodes with real pods: `plimsoll up` and `plimsoll node`, tested with kubectl, the kernel's
//! files and the running processes.
//!
//! Every test has a [`cluster::Cluster`] of its own, with its own cgroup, network and folders, so
//! that tests neither see each other nor anything else on the machine. Most of them are run with
//! both runtimes ([`cluster::Runtime`]), and some once more on cgroup v2 ([`vm`]).

#![expect(
    clippy::unwrap_used,
    reason = "what cannot go on here is a test, which fails"
)]

mod api;
mod cluster;
mod manifest;
mod transcript;

mod adoption;
mod cgroups;
mod clock_of_the_node;
mod clock_of_the_server;
mod confinement;
mod demo;
mod devices;
mod down;
mod explain;
mod figures;
mod hostile;
mod images;
mod interrupted;
mod lifecycle;
mod limits;
mod network;
mod node_object;
mod partition;
mod pressure;
mod priority;
mod readme;
mod refusals;
mod static_pods;
mod streams;
mod users;
mod vm;
mod volumes;
mod workloads;
