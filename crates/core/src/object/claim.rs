//! The fields of a PersistentVolumeClaim that decisions read.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::problem::Problem;
use crate::resources::ResourceList;

use super::parse_resource_list;

/// A PersistentVolumeClaim, reduced to what it requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimView {
    /// Its requests, rounded to thousandths as the API stores them.
    pub requests: ResourceList,
}

impl ClaimView {
    /// Parses a claim; all its malformed quantities are reported.
    pub fn from_api(claim: &PersistentVolumeClaim) -> Result<ClaimView, Vec<Problem>> {
        let mut problems = Vec::new();
        let spec = claim.spec.as_ref();
        let requests = spec
            .and_then(|spec| spec.resources.as_ref())
            .and_then(|resources| resources.requests.as_ref());
        let mut requests = parse_resource_list("spec.resources.requests", requests, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        requests.round_up_to_milli();
        Ok(ClaimView { requests })
    }
}
