//! ClusterResourceOverride: requests as a percentage of limits, cpu limits as one of memory.
//!
//! OpenShift's way to overcommit: users state limits, the administrator decides what share of them
//! is set aside. Three generations behave differently, see [`Variant`]. The override works on a
//! pod that already has its API defaults and those of LimitRanges; LimitRanges judge the result.
//!
//! - `settings`: the configuration file.
//! - `bounds`: how far LimitRanges hold the results.
//! - `apply`: the arithmetic.
//!
//! Matches openshift/origin pkg/quota/admission/clusterresourceoverride (release-3.6 and 3.9) and
//! openshift/cluster-resource-override-admission pkg/clusterresourceoverride.

mod apply;
mod bounds;
mod settings;

use crate::object::namespace::NamespaceView;

pub use apply::{Overridden, Rule};
pub use bounds::{Bound, Floor};
pub use settings::Settings;

/// On a namespace, anything but `true` switches the override off. For the OKD variants.
pub const OPT_OUT_ANNOTATION: &str = "quota.openshift.io/cluster-resource-override-enabled";
/// On a namespace, `true` switches the override on. For the modern variant.
pub const OPT_IN_LABEL: &str =
    "clusterresourceoverrides.admission.autoscaling.openshift.io/enabled";
/// On a pod, followed by a dash and a container: the cpu request before the override.
pub const ORIGINAL_CPU_REQUEST_ANNOTATION: &str =
    "clusterresourceoverrides.admission.autoscaling.openshift.io/original-cpu-request";

/// Namespaces with these names, or these names and a dash in front, belong to the platform.
const PLATFORM_NAMESPACES: [&str; 3] = ["openshift", "kubernetes", "kube"];

/// The generation of the override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// OKD 3.6: on everywhere but where the annotation disables it.
    Okd36,
    /// OKD 3.9: also skips the platform's namespaces, and respects the namespace's minimum.
    Okd39,
    /// The webhook of OpenShift 4: on only where the label enables it, respects minimum and
    /// maximum, and can scale cpu requests by themselves. As a webhook it is followed by another
    /// round of API and LimitRange defaults.
    Modern,
}

impl Variant {
    /// How far this generation holds results by the namespace's minimum.
    pub fn usual_floor(self) -> Floor {
        match self {
            Variant::Okd36 => Floor::None,
            Variant::Okd39 | Variant::Modern => Floor::LimitRangeMin,
        }
    }
}

/// The override as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its generation.
    pub variant: Variant,
    /// Its percentages.
    pub settings: Settings,
    /// Whether the minimum in LimitRanges holds results up.
    pub floor: Floor,
}

impl Override {
    /// The override of that generation, with the floor it has unless the settings say otherwise.
    pub fn new(variant: Variant, settings: Settings) -> Override {
        Override {
            variant,
            floor: settings.floor.unwrap_or(variant.usual_floor()),
            settings,
        }
    }

    /// Whether pods of the namespace are overridden.
    pub fn applies_to(&self, namespace: &NamespaceView) -> bool {
        let is_not_opted_out = || {
            let annotation = namespace.annotations.get(OPT_OUT_ANNOTATION);
            annotation.is_none_or(|value| value == "true")
        };
        match self.variant {
            Variant::Okd36 => is_not_opted_out(),
            Variant::Okd39 => is_not_opted_out() && !is_platform(&namespace.name),
            Variant::Modern => namespace
                .labels
                .get(OPT_IN_LABEL)
                .is_some_and(|value| value == "true"),
        }
    }
}

fn is_platform(name: &str) -> bool {
    PLATFORM_NAMESPACES.iter().any(|platform| {
        let rest = name.strip_prefix(platform);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests;
