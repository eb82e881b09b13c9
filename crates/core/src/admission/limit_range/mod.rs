//! LimitRanger: defaults for containers, then limits on containers, pods and claims.
//!
//! [`apply_defaults`] runs while objects may still change, [`check_pod`] and [`check_claim`] after.
//! Pods meet it when they are created or resized, claims also when they are updated.
//! LimitRanges are taken in the order given and must carry their own API defaults
//! ([`LimitRangeView::apply_defaults`](crate::object::limit_range::LimitRangeView::apply_defaults)).
//! Matches v1.36 plugin/pkg/admission/limitranger/admission.go.

mod check;
mod constraint;
mod defaults;

pub use check::{Refusal, check_claim, check_pod};
pub use constraint::{Breach, Violation};
pub use defaults::{ANNOTATION, Defaulted, apply_defaults};

#[cfg(test)]
mod tests;
