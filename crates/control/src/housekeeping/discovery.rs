//! Which kinds the server has.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::core::ApiResource;
use kube::discovery::{ApiCapabilities, ApiGroup, Discovery, Scope};

/// A kind, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
    verbs: BTreeSet<String>,
}

impl Kind {
    pub(super) fn supports(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }

    /// `group/version, Resource=plural`, as upstream's messages have it.
    pub(super) fn group_version_resource(&self) -> String {
        let ApiResource {
            group,
            version,
            plural,
            ..
        } = &self.resource;
        format!("{group}/{version}, Resource={plural}")
    }
}

/// All kinds that the server reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    /// Every kind, in every version, by `apiVersion` and `kind`.
    by_name: BTreeMap<(String, String), Kind>,
    /// Every kind once, in the version that the server prefers.
    preferred: Vec<Kind>,
}

impl Kinds {
    /// The kind that an object or a reference names.
    pub(super) fn named(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let name = (api_version.to_owned(), kind.to_owned());
        self.by_name.get(&name)
    }

    /// Every kind once, ordered by group and plural.
    pub(super) fn preferred(&self) -> &[Kind] {
        &self.preferred
    }

    fn add(&mut self, seen: &mut BTreeSet<(String, String)>, kind: Kind) {
        let ApiResource {
            group,
            api_version,
            kind: name,
            plural,
            ..
        } = &kind.resource;
        if seen.insert((group.clone(), plural.clone())) {
            self.preferred.push(kind.clone());
        }
        let name = (api_version.clone(), name.clone());
        self.by_name.insert(name, kind);
    }
}

/// Reads from the server which kinds it has.
pub(super) async fn discover(client: &Client) -> Result<Kinds, kube::Error> {
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        // Servers before 1.27 know only the older form.
        Err(_) => Discovery::new(client.clone()).run().await?,
    };
    let mut kinds = Kinds::default();
    for group in discovery.groups_alphabetical() {
        let mut seen = BTreeSet::new();
        for version in versions(group) {
            for (resource, capabilities) in group.versioned_resources(version) {
                kinds.add(&mut seen, kind(resource, &capabilities));
            }
        }
    }
    let order = |kind: &Kind| (kind.resource.group.clone(), kind.resource.plural.clone());
    kinds.preferred.sort_by_key(order);
    Ok(kinds)
}

/// The versions of a group, the preferred one first.
fn versions(group: &ApiGroup) -> Vec<&str> {
    let preferred = group.preferred_version_or_latest();
    let others = group.versions().filter(|version| *version != preferred);
    std::iter::once(preferred).chain(others).collect()
}

fn kind(resource: ApiResource, capabilities: &ApiCapabilities) -> Kind {
    Kind {
        resource,
        is_namespaced: capabilities.scope == Scope::Namespaced,
        verbs: capabilities.operations.iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_client::testing::Cluster;

    #[tokio::test]
    async fn kinds_are_found_by_name_with_scope_and_verbs() {
        let kinds = discover(&Cluster::new().client()).await.unwrap();
        let pods = kinds.named("v1", "Pod").unwrap();
        assert!(pods.is_namespaced && pods.supports("delete"));
        assert_eq!(pods.group_version_resource(), "/v1, Resource=pods");
        let sets = kinds.named("apps/v1", "ReplicaSet").unwrap();
        assert_eq!(
            sets.group_version_resource(),
            "apps/v1, Resource=replicasets"
        );
        assert!(!kinds.named("v1", "Node").unwrap().is_namespaced);
        assert_eq!(kinds.named("apps/v1", "Pod"), None);
        assert!(kinds.preferred().contains(sets));
    }
}
