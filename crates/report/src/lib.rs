//! What Plimsoll's screens show, without reading or printing: nodes and their eviction thresholds,
//! why a pod is where it is, and mistakes in configurations and manifests.
//!
//! Everything here is a function from objects, figures and documents to a report as data, and from a
//! report to text. There is no clock, file, socket, terminal or cluster client in this crate; the
//! command line, the simulator and web pages read and print.
//!
//! Reading order: [`text`] (tables, amounts, durations, colour), [`reading`] (what was read of a
//! node), [`loadline`] (capacity, usage and thresholds of nodes), [`explain`] (pods, nodes and
//! owners of pods), [`node_flags`] (settings that flags of a node decide), [`check`] (configurations
//! and manifests).

pub mod check;
pub mod explain;
pub mod loadline;
pub mod node_flags;
pub mod reading;
pub mod text;
