//! ResourceQuota: what an object is charged, which quotas count it, whether it fits.
//!
//! Quotas are checked one after another; the first that is exceeded refuses the pod. Matches v1.36
//! pkg/quota/v1/evaluator/core/pods.go and
//! apiserver/pkg/admission/plugin/resourcequota/controller.go, without limited resources.
//!
//! Reading order: `charge` (what is read off a pod), `scope` (which quotas count it), `check`, `object` (kinds
//! other than pods).

mod charge;
mod check;
mod object;
mod scope;

pub use charge::PodCharge;
pub use check::{Refusal, admit};
pub use object::{ObjectCharge, admit_object};
pub use scope::is_charged_to_pods;

#[cfg(test)]
mod tests;
