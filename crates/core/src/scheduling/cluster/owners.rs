//! Services and controllers: they define which pods are of one kind.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as ApiLabelSelector, ObjectMeta,
};

use crate::object::selector::LabelSelector;
use crate::scheduling::pod::SchedulingPod;

type Labels = BTreeMap<String, String>;
type ByName<T> = BTreeMap<String, T>;

/// The objects by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    namespaces: BTreeMap<String, OfNamespace>,
    version: u64,
}

#[derive(Clone, Debug, Default)]
struct OfNamespace {
    services: ByName<Labels>,
    replication_controllers: ByName<Labels>,
    replica_sets: ByName<LabelSelector>,
    stateful_sets: ByName<LabelSelector>,
}

impl Owners {
    /// A number that changes with anything here.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Learns a service. One without a selector is no use, one with an empty selector selects all.
    pub fn set_service(&mut self, service: &Service) {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
        let (all, name) = self.of(&service.metadata);
        match selector {
            Some(selector) => all.services.insert(name, selector),
            None => all.services.remove(&name),
        };
    }

    /// Removes a service.
    pub fn remove_service(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        if let Some(all) = self.namespaces.get_mut(namespace) {
            all.services.remove(name);
        }
    }

    /// Learns a replication controller.
    pub fn set_replication_controller(&mut self, controller: &ReplicationController) {
        let spec = controller.spec.as_ref();
        let selector = spec.and_then(|spec| spec.selector.clone());
        let (all, name) = self.of(&controller.metadata);
        let selector = selector.unwrap_or_default();
        all.replication_controllers.insert(name, selector);
    }

    /// Removes a replication controller.
    pub fn remove_replication_controller(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        if let Some(all) = self.namespaces.get_mut(namespace) {
            all.replication_controllers.remove(name);
        }
    }

    /// Learns a replica set.
    pub fn set_replica_set(&mut self, set: &ReplicaSet) {
        let selector = selector(set.spec.as_ref().map(|spec| &spec.selector));
        let (all, name) = self.of(&set.metadata);
        all.replica_sets.insert(name, selector);
    }

    /// Removes a replica set.
    pub fn remove_replica_set(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        if let Some(all) = self.namespaces.get_mut(namespace) {
            all.replica_sets.remove(name);
        }
    }

    /// Learns a stateful set.
    pub fn set_stateful_set(&mut self, set: &StatefulSet) {
        let selector = selector(set.spec.as_ref().map(|spec| &spec.selector));
        let (all, name) = self.of(&set.metadata);
        all.stateful_sets.insert(name, selector);
    }

    /// Removes a stateful set.
    pub fn remove_stateful_set(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        if let Some(all) = self.namespaces.get_mut(namespace) {
            all.stateful_sets.remove(name);
        }
    }

    /// The selector that its services and its controller together give the pod; empty if none do.
    ///
    /// Matches v1.36 plugins/helper/spread.go, `DefaultSelector`.
    pub fn default_selector(&self, pod: &SchedulingPod) -> LabelSelector {
        let Some(all) = self.namespaces.get(&pod.pod_ref.namespace) else {
            return LabelSelector::everything();
        };
        let is_met = |(key, value): (&String, &String)| pod.labels.get(key) == Some(value);
        let of_services = all.services.values();
        let of_services = of_services.filter(|selector| selector.iter().all(is_met));
        let mut labels: Labels = of_services.flatten().map(clone_pair).collect();
        let Some(owner) = &pod.controller else {
            return LabelSelector::from_set(&labels);
        };
        let mut of_set = None;
        match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let selector = all.replication_controllers.get(&owner.name);
                labels.extend(selector.into_iter().flatten().map(clone_pair));
            }
            ("apps/v1", "ReplicaSet") => of_set = all.replica_sets.get(&owner.name),
            ("apps/v1", "StatefulSet") => of_set = all.stateful_sets.get(&owner.name),
            _ => {}
        }
        let selector = LabelSelector::from_set(&labels);
        match of_set {
            Some(other) => selector.and(other),
            None => selector,
        }
    }

    fn of(&mut self, meta: &ObjectMeta) -> (&mut OfNamespace, String) {
        self.version += 1;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let name = meta.name.clone().unwrap_or_default();
        (self.namespaces.entry(namespace).or_default(), name)
    }
}

/// A selector that is absent or malformed adds nothing, which is what an empty one does.
fn selector(api: Option<&ApiLabelSelector>) -> LabelSelector {
    let selector = api.and_then(|api| LabelSelector::from_api(Some(api)).ok());
    selector.unwrap_or(LabelSelector::everything())
}

fn clone_pair((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}
