//! Subresources, and requests that are answered without storing anything.
//!
//! One file each. `route` finds the one of a request.

mod action;
mod binding;
mod eviction;
mod nodes;
mod reviews;
mod scale;
mod token;

pub(in crate::server) use action::part;
pub(crate) use scale::scale_of_stored;
