//! Advice on configurations and manifests: settings that work, but not as their author thinks.
//!
//! A [`Finding`] names a [`Rule`], the place, what is there, why it matters and what would be
//! right. Rules look at parsed values only and never at the machine: what is known of it comes in
//! as [`MachineFacts`].
//!
//! Reading order: [`Rule`], [`eviction_lines`] (the eviction lines side by side), `node`, `manifest`,
//! `unit` and `label` (the rules),
//! [`soft_cases`] (what covering the soft line costs).

pub mod eviction_lines;
mod finding;
mod label;
mod machine;
mod manifest;
mod node;
mod rule;
pub mod soft_cases;
mod unit;

pub use finding::{Finding, Level};
pub use label::lint_node_labels;
pub use machine::MachineFacts;
pub use manifest::{lint_daemon_set, lint_host_path, lint_override};
pub use node::{compute_memory_cases, lint_node};
pub use rule::Rule;
pub use unit::lint_units;

#[cfg(test)]
mod tests;
