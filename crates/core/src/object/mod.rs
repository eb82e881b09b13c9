//! Small views of API objects, made once and used everywhere after.
//!
//! k8s-openapi types enter the crate here and go no further, except into the admission functions
//! that change an object in place. A view holds parsed numbers, never texts that still have to be
//! parsed; making one reports every problem of the object with its path.
//!
//! Reading order: [`identity`], [`timestamp`], [`syntax`] (what keys and values may look like), [`user`], [`image_name`],
//! [`event`] (the text of an event), [`selector`], [`taint`], [`pod`], [`node`], [`resource_rules`], [`limit_range`], [`claim`],
//! [`resource_quota`], [`namespace`].

pub mod claim;
pub mod event;
pub mod identity;
pub mod image_name;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod pod;
mod quantities;
pub mod resource_quota;
pub mod resource_rules;
pub mod selector;
pub mod syntax;
pub mod taint;
pub mod timestamp;
pub mod user;

pub use quantities::{parse_resource_list, render_resource_list};
