//! Server-side apply, and the managers of fields.
//!
//! Every write has a named manager and is recorded in `metadata.managedFields`: a manager owns the
//! fields it applies, and a field that it no longer applies is removed unless another manager owns
//! it. Changing another manager's field is a conflict unless forced. Updates and client-side
//! patches take over what they change.
//!
//! Reading order: [`path`] and [`set`] (sets of fields), `atom` (a type's ownership), `validate`,
//! `typed` (walking objects by type), `updater` (the rules), `managers` (entries), [`reset`]
//! (fields an endpoint does not write), `conflict`, `last_applied`, `event` (two encodings), `cap`,
//! `created` (new objects), then [`field_manager`], which callers use, and [`scale`] for the one
//! subresource of another type.

mod atom;
mod cap;
mod conflict;
mod created;
mod event;
pub mod field_manager;
mod last_applied;
mod managers;
pub mod path;
pub mod reset;
pub mod scale;
pub mod set;
#[cfg(test)]
mod tests;
mod typed;
mod updater;
mod validate;

pub use field_manager::{FieldManager, check_managed_fields};
pub use set::FieldSet;
