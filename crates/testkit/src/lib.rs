//! Test support shared by the crates; never linked into the product.
//!
//! - [`vectors`]: loads recorded cases, runs a check on each, reports per file.
//! - [`etcd`]: starts a real etcd and stops it.
//! - [`certificates`]: signs certificates.
//! - [`images`]: small images, one of which really runs.
//! - [`registry`]: starts a real image registry and stops it.
//! - [`cgroup`]: cgroups of a test's own.
//! - [`claim`]: numbers that only one test holds at a time.
//! - [`containerd`]: starts a real containerd and stops it.
//! - [`inventory`]: what a node has of the machine, and what of it is left behind.
//! - [`nftables`]: the kernel's tables of nftables.
//! - [`mount`]: takes mounts away.
//! - [`process`]: runs a program and shows its log when a test fails.
//! - [`proxy`]: a network that can be cut and slowed down.
//! - [`kubectl`]: runs kubectl and waits for what it shows.
//! - [`waiting`]: waits for what is about to happen.
//! - [`disk`]: small file systems in files.
//! - [`vm`]: boots a virtual machine and runs a command in it.
//! - [`difference`]: says in readable words where two JSON values differ.

pub mod certificates;
pub mod cgroup;
pub mod claim;
pub mod containerd;
pub mod difference;
pub mod disk;
pub mod etcd;
pub mod images;
pub mod inventory;
pub mod kubectl;
pub mod mount;
pub mod nftables;
pub mod process;
pub mod proxy;
pub mod registry;
pub mod vectors;
pub mod vm;
pub mod waiting;
