//! Which objects count for what a quota limits.

use plimsoll_core::admission::quota::is_charged_to_pods;
use plimsoll_core::resources::ResourceName;

/// The prefix of names that count objects of any kind.
const COUNT_PREFIX: &str = "count/";
/// In the names of what claims of a storage class use.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Kinds that are also counted by their plain name, apart from services and claims.
const BY_PLAIN_NAME: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

/// The objects that count for a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Pods,
    Services,
    Claims,
    /// The number of objects of another kind.
    Kind {
        plural: String,
        group: String,
    },
}

/// The objects that count for the resource; nothing if quotas cannot limit it.
pub(super) fn counted_for(name: &ResourceName) -> Option<Counted> {
    if is_charged_to_pods(name) {
        return Some(Counted::Pods);
    }
    let text = name.as_str();
    match text {
        "services" | "services.nodeports" | "services.loadbalancers" | "count/services" => {
            return Some(Counted::Services);
        }
        "persistentvolumeclaims" | "requests.storage" | "count/persistentvolumeclaims" => {
            return Some(Counted::Claims);
        }
        _ => {}
    }
    if text.contains(STORAGE_CLASS) {
        return Some(Counted::Claims);
    }
    let plural_and_group = match BY_PLAIN_NAME.contains(&text) {
        true => text,
        false => text.strip_prefix(COUNT_PREFIX)?,
    };
    let (plural, group) = plural_and_group
        .split_once('.')
        .unwrap_or((plural_and_group, ""));
    Some(Counted::Kind {
        plural: plural.to_owned(),
        group: group.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_has_its_objects() {
        let kind = |plural: &str, group: &str| Counted::Kind {
            plural: plural.to_owned(),
            group: group.to_owned(),
        };
        let table = [
            ("pods", Some(Counted::Pods)),
            ("count/pods", Some(Counted::Pods)),
            ("limits.memory", Some(Counted::Pods)),
            ("requests.example.com/gpu", Some(Counted::Pods)),
            ("services.nodeports", Some(Counted::Services)),
            ("count/services", Some(Counted::Services)),
            ("requests.storage", Some(Counted::Claims)),
            (
                "gold.storageclass.storage.k8s.io/requests.storage",
                Some(Counted::Claims),
            ),
            ("secrets", Some(kind("secrets", ""))),
            ("count/secrets", Some(kind("secrets", ""))),
            ("count/deployments.apps", Some(kind("deployments", "apps"))),
            (
                "count/leases.coordination.k8s.io",
                Some(kind("leases", "coordination.k8s.io")),
            ),
            ("deployments", None),
        ];
        for (name, expected) in table {
            assert_eq!(counted_for(&ResourceName::new(name)), expected, "{name}");
        }
    }
}
