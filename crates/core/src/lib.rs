//! The decisions of Plimsoll: what fits on a node, what a pod may use, what is refused and why.
//!
//! Everything here is a function of its arguments. There is no clock, file, socket, thread,
//! randomness or async in this crate: time and observations are passed in, decisions and their
//! reasons come back as data. That is what lets the simulator run the production code.
//!
//! Reading order, which is also the order in which modules may import each other (a module uses
//! only those above it; the tidy test checks this):
//!
//! 1. [`quantity`] – Kubernetes' numbers: parse, print, compare, round.
//! 2. [`resources`] – typed amounts (`Millicores`, `Bytes`, `Count`) and lists of them.
//! 3. [`problem`] – what is wrong with an input: field, value, rule.
//! 4. [`object`] – views of API objects: pods, nodes, selectors, taints.
//! 5. [`threshold`] – eviction signals, thresholds and Go's durations.
//! 6. [`config`] – the node's configuration, from any of the files people already have.
//! 7. [`allocatable`] – what of a machine is left for pods, term by term.
//! 8. [`cgroup`] – the cgroups of a node and what is written into them.

pub mod allocatable;
pub mod cgroup;
pub mod config;
pub mod object;
pub mod problem;
pub mod quantity;
pub mod resources;
pub mod threshold;
