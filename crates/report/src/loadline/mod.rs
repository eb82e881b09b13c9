//! The load line of a node: capacity, usage and eviction thresholds.
//!
//! Reading order: `compute` (the load line of a node), [`report`] (the result as data; documented
//! in docs/loadline.md), `bar`, `overview` and `render` (the result as text).

mod bar;
mod compute;
mod overview;
mod render;
pub mod report;
#[cfg(test)]
mod tests;

pub use compute::compute;
pub use render::{Detail, render, render_node, render_to_fit};
pub use report::{NodeLine, Report};
