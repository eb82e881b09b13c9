//! Admission: what is set or refused before an object is stored, and before a node accepts a pod.
//!
//! Each file is one rule. A rule takes the object, adds defaults or refuses it with upstream's
//! message, and returns what it did as data: which value was set from which object, which limit was
//! exceeded by how much. Nothing here reads a cluster; callers pass what applies.
//!
//! Reading order: [`draft`] (the pod during admission), [`forbidden`] (how a refusal reads),
//! [`pod_defaults`], [`limit_range`], [`overcommit`], [`pod_validation`], [`quota`], and
//! [`pipeline`], which runs them in the API server's order. [`priority`],
//! [`default_toleration_seconds`], [`memory_pressure_toleration`], [`daemon_set`], [`node_taints`],
//! [`pod_resize`] and [`node_admit`] stand each on its own. [`configuration`] is the file in which plugins are
//! configured: [`pod_security`] and [`event_rate_limit`].

pub mod configuration;
pub mod daemon_set;
pub mod default_toleration_seconds;
pub mod draft;
pub mod event_rate_limit;
pub mod forbidden;
pub mod limit_range;
pub mod limit_range_validation;
pub mod memory_pressure_toleration;
pub mod node_admit;
pub mod node_taints;
pub mod overcommit;
pub mod pipeline;
pub mod pod_defaults;
pub mod pod_resize;
pub mod pod_security;
pub mod pod_validation;
pub mod priority;
pub mod quota;
mod ratio;
