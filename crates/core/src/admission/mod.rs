//! What happens to a pod on its way in, and why.
//!
//! Each file is one rule. A rule takes the parsed pod, changes it or refuses it, and says what it
//! did as data: which value was set from which object, which limit was passed by how much. Nothing
//! here reads a cluster; callers pass the LimitRanges, quotas and namespace that apply.
//!
//! Reading order: [`draft`] (the pod on its way), [`forbidden`] (how a refusal reads),
//! [`pod_defaults`], [`limit_range`], [`overcommit`], [`pod_validation`], [`quota`], and
//! [`pipeline`], which runs them in the API server's order.

pub mod draft;
pub mod forbidden;
pub mod limit_range;
pub mod limit_range_validation;
pub mod overcommit;
pub mod pipeline;
pub mod pod_defaults;
pub mod pod_validation;
pub mod quota;
mod ratio;
