//! RBAC: roles and bindings.
//!
//! Rules only add up; nothing denies. A request is answered from an index by subject: its cost
//! depends on the bindings of its user and groups, not on those of the cluster.
//!
//! Reading order: `rule` (what one rule allows), `cover` (whether rules cover others), `bindings`
//! and `policy` (the index), `aggregate` (aggregated cluster roles), `escalation` (checks on
//! writing roles and bindings), `standard` (the default ones), `reconcile` (restoring them at
//! start), `rules_review` (`kubectl auth can-i --list`).

mod aggregate;
mod bindings;
mod cover;
mod escalation;
mod policy;
mod reconcile;
mod rule;
mod rules_review;
mod standard;

pub use bindings::{Binding, Grant};
pub use escalation::{EscalationError, PolicyKind, PolicyWrite, check_write};
pub use policy::{Malformed, Policy};
pub use reconcile::{Change, reconcile};
pub use rule::rule_allows;
pub use rules_review::rules_review;
pub use standard::{Standard, node_rules};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

#[cfg(test)]
mod tests;
