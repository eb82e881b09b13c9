//! The ConfigMaps and Secrets that volumes of pods are made from.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, Volume, VolumeProjection};

use crate::pod_fields::identity;

/// By namespace and name.
pub type Names = BTreeSet<(String, String)>;

/// Objects that pods name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// ConfigMaps.
    pub config_maps: Names,
    /// Secrets.
    pub secrets: Names,
}

impl Named {
    /// What the volumes of a pod name, whether or not a container mounts them.
    pub fn by_volumes_of(pod: &Pod) -> Named {
        let (namespace, _, _) = identity(pod);
        let mut named = Named::default();
        for volume in pod
            .spec
            .iter()
            .flat_map(|spec| spec.volumes.iter().flatten())
        {
            let at = |name: &str| (namespace.to_owned(), name.to_owned());
            named.config_maps.extend(config_maps(volume).map(at));
            named.secrets.extend(secrets(volume).map(at));
        }
        named
    }

    /// Adds what others name.
    pub fn add(&mut self, other: &Named) {
        self.config_maps.extend(other.config_maps.iter().cloned());
        self.secrets.extend(other.secrets.iter().cloned());
    }
}

fn config_maps(volume: &Volume) -> impl Iterator<Item = &str> {
    let own = volume.config_map.iter().map(|source| &source.name);
    let projected = projected(volume).filter_map(|source| source.config_map.as_ref());
    own.chain(projected.map(|source| &source.name))
        .map(String::as_str)
}

fn secrets(volume: &Volume) -> impl Iterator<Item = &str> {
    let own = volume.secret.iter();
    let own = own.filter_map(|source| source.secret_name.as_ref());
    let projected = projected(volume).filter_map(|source| source.secret.as_ref());
    own.chain(projected.map(|source| &source.name))
        .map(String::as_str)
}

fn projected(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    let projected = volume.projected.iter();
    projected.flat_map(|projected| projected.sources.iter().flatten())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_named_by_volumes_of_their_own_and_by_projected_ones() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
            "spec": {"containers": [], "volumes": [
                {"name": "a", "configMap": {"name": "c1"}},
                {"name": "b", "secret": {"secretName": "s1"}},
                {"name": "c", "projected": {"sources": [
                    {"configMap": {"name": "c2"}},
                    {"secret": {"name": "s2"}},
                    {"serviceAccountToken": {"path": "token"}},
                ]}},
                {"name": "d", "emptyDir": {}},
            ]},
        }))
        .unwrap();
        let names = |names: [&str; 2]| names.map(|name| ("ns".to_owned(), name.to_owned())).into();
        let expected = Named {
            config_maps: names(["c1", "c2"]),
            secrets: names(["s1", "s2"]),
        };
        assert_eq!(Named::by_volumes_of(&pod), expected);
        let mut all = Named::default();
        all.add(&expected);
        assert_eq!(all, expected);
    }
}
