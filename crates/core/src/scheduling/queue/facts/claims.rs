//! The resource claims of a pod.

use k8s_openapi::api::core::v1::{
    Pod, PodExtendedResourceClaimStatus, PodResourceClaim, PodResourceClaimStatus,
};

/// The claims for devices that a pod uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceClaims {
    names: Vec<String>,
    is_one_missing: bool,
    generated: Vec<PodResourceClaimStatus>,
    for_extended_resources: Option<PodExtendedResourceClaimStatus>,
}

impl ResourceClaims {
    /// Matches v1.36 dynamic-resource-allocation/resourceclaim, `Name`.
    pub(super) fn of_pod(pod: &Pod) -> ResourceClaims {
        let status = pod.status.as_ref();
        let generated = status.and_then(|status| status.resource_claim_statuses.clone());
        let generated = generated.unwrap_or_default();
        let spec = pod.spec.as_ref();
        let claims = spec.and_then(|spec| spec.resource_claims.as_deref());
        let claims = claims.unwrap_or_default().iter();
        let (mut names, mut is_one_missing) = (Vec::new(), false);
        for claim in claims {
            match Name::of(claim, &generated) {
                Name::Known(name) => names.push(name.to_owned()),
                Name::NotNeeded => {}
                Name::Unknown => is_one_missing = true,
            }
        }
        ResourceClaims {
            names,
            is_one_missing,
            generated,
            for_extended_resources: status
                .and_then(|status| status.extended_resource_claim_status.clone()),
        }
    }

    /// Whether none is still to be generated.
    pub fn are_all_there(&self) -> bool {
        !self.is_one_missing
    }

    /// Whether the claim of that name, in the pod's namespace, is one of them.
    pub fn includes(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// Whether the statuses of both pods have the same claims generated for them.
    pub fn have_status_of(&self, other: &ResourceClaims) -> bool {
        self.generated == other.generated
            && self.for_extended_resources == other.for_extended_resources
    }
}

/// The known state of the name of a claim.
enum Name<'a> {
    Known(&'a str),
    /// It was found that none is needed.
    NotNeeded,
    /// To be generated yet, or stated in a way that is not known.
    Unknown,
}

impl<'a> Name<'a> {
    fn of(claim: &'a PodResourceClaim, generated: &'a [PodResourceClaimStatus]) -> Name<'a> {
        if let Some(name) = &claim.resource_claim_name {
            return Name::Known(name);
        }
        let mut statuses = generated.iter();
        let status = statuses.find(|status| status.name == claim.name);
        match status.filter(|_| claim.resource_claim_template_name.is_some()) {
            None => Name::Unknown,
            Some(status) => match &status.resource_claim_name {
                None => Name::NotNeeded,
                Some(name) => Name::Known(name),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claims(spec: Value, status: Value) -> ResourceClaims {
        let pod = json!({
            "spec": {"containers": [], "resourceClaims": spec},
            "status": status,
        });
        ResourceClaims::of_pod(&serde_json::from_value(pod).unwrap())
    }

    fn from_template() -> Value {
        json!([{"name": "gpu", "resourceClaimTemplateName": "t"}])
    }

    fn generated(name: Value) -> Value {
        json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]})
    }

    #[test]
    fn a_generated_claim_is_named_in_the_status() {
        let waiting = claims(from_template(), json!({}));
        assert!(!waiting.are_all_there());
        let there = claims(from_template(), generated(json!("x")));
        assert!(there.are_all_there() && there.includes("x"));
        assert!(!waiting.have_status_of(&there));
    }

    #[test]
    fn unneeded_claim_is_not_waited_for() {
        let claims = claims(from_template(), generated(json!(null)));
        assert!(claims.are_all_there());
    }

    #[test]
    fn claim_without_name_or_template_is_missing() {
        assert!(!claims(json!([{"name": "gpu"}]), generated(json!("x"))).are_all_there());
        let stated = claims(
            json!([{"name": "gpu", "resourceClaimName": "x"}]),
            json!({}),
        );
        assert!(stated.are_all_there() && stated.includes("x"));
    }

    #[test]
    fn a_claim_for_extended_resources_is_part_of_the_status() {
        let extended = json!({"extendedResourceClaimStatus": {
            "resourceClaimName": "x", "requestMappings": [],
        }});
        let (none, some) = (claims(json!([]), json!({})), claims(json!([]), extended));
        assert!(!none.have_status_of(&some));
        assert!(some.are_all_there() && !some.includes("x"));
    }
}
