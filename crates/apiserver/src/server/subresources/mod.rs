//! Parts of objects that have paths of their own, and what is answered without being stored.
//!
//! Each file is one of them. `route` finds the one that a request is about.

mod action;
mod binding;
mod eviction;
mod nodes;
mod reviews;
mod scale;
mod token;

pub(super) use action::part;
pub(crate) use scale::scale_of_stored;
