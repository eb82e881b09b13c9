//! Priority admission: a pod's priority comes from its class and from nowhere else.
//!
//! Matches v1.36 plugin/pkg/admission/priority.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::object::pod::{SYSTEM_CLUSTER_CRITICAL, SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL};

const PREEMPT_LOWER_PRIORITY: &str = "PreemptLowerPriority";

/// Why a pod or a priority class is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The pod names a class that does not exist.
    #[error("no PriorityClass with name {0} was found")]
    NoSuchClass(String),
    /// The pod states a priority that its class does not give.
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority \
         admission controller computed {computed} from the given PriorityClass name"
    )]
    OtherPriority {
        /// The value in the pod's spec.
        given: i32,
        /// The value from its class.
        computed: i32,
    },
    /// The pod states a preemption policy that its class does not give.
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
         admission controller computed {computed} from the given PriorityClass name"
    )]
    OtherPreemptionPolicy {
        /// The value in the pod's spec.
        given: String,
        /// The value from its class.
        computed: String,
    },
    /// Another class is the default already.
    #[error("PriorityClass {0} is already marked as default. Only one default can exist")]
    SecondDefault(String),
}

/// The priority classes of the cluster by name. The built-in ones are always there.
#[derive(Clone, Debug)]
pub struct PriorityClasses(BTreeMap<String, Class>);

#[derive(Clone, Debug)]
struct Class {
    value: i32,
    is_global_default: bool,
    preemption_policy: Option<String>,
}

impl PriorityClasses {
    /// Reads the classes of the cluster.
    pub fn from_api(classes: &[PriorityClass]) -> PriorityClasses {
        let mut parsed = BTreeMap::new();
        let system = system_priority_classes();
        for class in system.iter().chain(classes) {
            let name = class.metadata.name.clone().unwrap_or_default();
            let class = Class {
                value: class.value.unwrap_or_default(),
                is_global_default: class.global_default.unwrap_or_default(),
                preemption_policy: class.preemption_policy.clone(),
            };
            parsed.insert(name, class);
        }
        PriorityClasses(parsed)
    }

    /// The class for pods that name none. Of several, which only a race can make, the lowest.
    fn global_default(&self) -> Option<(&String, &Class)> {
        let defaults = self.0.iter().filter(|(_, class)| class.is_global_default);
        defaults.min_by_key(|(_, class)| class.value)
    }
}

/// The classes that every cluster has, as the API server stores them at its start.
pub fn system_priority_classes() -> [PriorityClass; 2] {
    let class = |name: &str, value: i32, description: &str| PriorityClass {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        value: Some(value),
        description: Some(description.to_owned()),
        preemption_policy: Some(PREEMPT_LOWER_PRIORITY.to_owned()),
        ..PriorityClass::default()
    };
    [
        class(
            SYSTEM_NODE_CRITICAL,
            SYSTEM_CRITICAL_PRIORITY + 1000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            SYSTEM_CLUSTER_CRITICAL,
            SYSTEM_CRITICAL_PRIORITY,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
    ]
}

/// Fills in priority, preemption policy and, for a global default, the class of a new pod.
pub fn admit_new_pod(spec: &mut PodSpec, classes: &PriorityClasses) -> Result<(), Refusal> {
    let named = spec.priority_class_name.as_deref().unwrap_or_default();
    let (class_name, priority, policy) = if named.is_empty() {
        match classes.global_default() {
            Some((name, class)) => (
                Some(name.clone()),
                class.value,
                class.preemption_policy.clone(),
            ),
            None => (None, 0, Some(PREEMPT_LOWER_PRIORITY.to_owned())),
        }
    } else {
        let class = classes.0.get(named);
        let class = class.ok_or_else(|| Refusal::NoSuchClass(named.to_owned()))?;
        let policy = class.preemption_policy.clone();
        (Some(named.to_owned()), class.value, policy)
    };
    if let Some(given) = spec.priority.filter(|given| *given != priority) {
        return Err(Refusal::OtherPriority {
            given,
            computed: priority,
        });
    }
    if let (Some(given), Some(computed)) = (&spec.preemption_policy, &policy)
        && given != computed
    {
        return Err(Refusal::OtherPreemptionPolicy {
            given: given.clone(),
            computed: computed.clone(),
        });
    }
    spec.priority_class_name = class_name;
    spec.priority = Some(priority);
    // A class without a policy, which only an old store can hold, leaves the pod's own.
    if policy.is_some() {
        spec.preemption_policy = policy;
    }
    Ok(())
}

/// Keeps what admission gave the pod when an update leaves it out.
pub fn admit_updated_pod(spec: &mut PodSpec, old: &PodSpec) {
    if spec.priority.is_none() {
        spec.priority = old.priority;
    }
    if spec.preemption_policy.is_none() {
        spec.preemption_policy = old.preemption_policy.clone();
    }
}

/// Refuses a new class that would be a second global default.
pub fn validate_new_class(
    class: &PriorityClass,
    existing: &PriorityClasses,
) -> Result<(), Refusal> {
    match existing.global_default() {
        Some((name, _)) if class.global_default == Some(true) => {
            Err(Refusal::SecondDefault(name.clone()))
        }
        _ => Ok(()),
    }
}

/// Refuses an update that would make a second global default; the default itself may be updated.
pub fn validate_updated_class(
    class: &PriorityClass,
    existing: &PriorityClasses,
) -> Result<(), Refusal> {
    match existing.global_default() {
        Some((name, _)) if class.metadata.name.as_ref() == Some(name) => Ok(()),
        _ => validate_new_class(class, existing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, value: i32, is_default: bool) -> PriorityClass {
        PriorityClass {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            value: Some(value),
            global_default: Some(is_default),
            preemption_policy: Some("Never".to_owned()),
            ..PriorityClass::default()
        }
    }

    fn admitted(spec: PodSpec, classes: &[PriorityClass]) -> Result<PodSpec, Refusal> {
        let mut spec = spec;
        admit_new_pod(&mut spec, &PriorityClasses::from_api(classes))?;
        Ok(spec)
    }

    fn of_class(name: &str) -> PodSpec {
        PodSpec {
            priority_class_name: Some(name.to_owned()),
            ..PodSpec::default()
        }
    }

    #[test]
    fn a_pod_without_a_class_gets_the_global_default_or_zero() {
        let spec = admitted(PodSpec::default(), &[class("some", 7, false)]).unwrap();
        assert_eq!(spec.priority_class_name, None);
        assert_eq!(spec.priority, Some(0));
        assert_eq!(
            spec.preemption_policy.as_deref(),
            Some("PreemptLowerPriority")
        );

        let classes = [class("high", 9, true), class("low", 3, true)];
        let spec = admitted(PodSpec::default(), &classes).unwrap();
        assert_eq!(spec.priority_class_name.as_deref(), Some("low"));
        assert_eq!(spec.priority, Some(3));
        assert_eq!(spec.preemption_policy.as_deref(), Some("Never"));
    }

    #[test]
    fn the_built_in_classes_are_always_there() {
        let spec = admitted(of_class("system-node-critical"), &[]).unwrap();
        assert_eq!(spec.priority, Some(2_000_001_000));
        let spec = admitted(of_class("system-cluster-critical"), &[]).unwrap();
        assert_eq!(spec.priority, Some(2_000_000_000));
    }

    #[test]
    fn pod_priority_must_match_its_class() {
        assert_eq!(
            admitted(of_class("gone"), &[]).unwrap_err().to_string(),
            "no PriorityClass with name gone was found"
        );
        let classes = [class("mine", 5, false)];
        let mut spec = of_class("mine");
        spec.priority = Some(6);
        assert_eq!(
            admitted(spec, &classes).unwrap_err(),
            Refusal::OtherPriority {
                given: 6,
                computed: 5
            }
        );
        let mut spec = of_class("mine");
        spec.preemption_policy = Some("PreemptLowerPriority".to_owned());
        assert_eq!(
            admitted(spec, &classes).unwrap_err().to_string(),
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in \
             pod spec; priority admission controller computed Never from the given PriorityClass \
             name"
        );
    }

    #[test]
    fn update_keeps_omitted_fields() {
        let old = admitted(PodSpec::default(), &[]).unwrap();
        let mut spec = PodSpec::default();
        admit_updated_pod(&mut spec, &old);
        assert_eq!(spec.priority, Some(0));
        assert_eq!(spec.preemption_policy, old.preemption_policy);
    }

    #[test]
    fn only_one_class_can_be_the_default() {
        let existing = PriorityClasses::from_api(&[class("first", 1, true)]);
        assert!(validate_new_class(&class("second", 2, false), &existing).is_ok());
        assert_eq!(
            validate_new_class(&class("second", 2, true), &existing)
                .unwrap_err()
                .to_string(),
            "PriorityClass first is already marked as default. Only one default can exist"
        );
        assert!(validate_updated_class(&class("first", 1, true), &existing).is_ok());
        assert!(validate_updated_class(&class("second", 2, true), &existing).is_err());
    }
}
