//! Events about nodes, and about what else decides.

use std::sync::Arc;

use kube::Resource;
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::scheduling::cluster::{DisruptionBudget, Owners};
use plimsoll_core::scheduling::queue::{Affected, Change, NodeFacts, Object, Time};

use super::input::{Input, Name, WatchEvent};
use super::state::Loop;
use super::store::Store;

impl Loop {
    pub(super) fn on_node(&mut self, seen: WatchEvent<Arc<NodeFacts>, NodeName>, now: Time) {
        match seen {
            WatchEvent::ListBegins => self.nodes.begin_list(),
            WatchEvent::Is(node) => self.set_node(node, now),
            WatchEvent::Deleted(name) => self.remove_node(&name, now),
            WatchEvent::ListEnds => {
                for name in self.nodes.end_list() {
                    self.remove_node(&name, now);
                }
            }
        }
    }

    fn set_node(&mut self, new: Arc<NodeFacts>, now: Time) {
        let view = Arc::clone(&new.view);
        let old = self.nodes.insert(new.name.clone(), Arc::clone(&new));
        self.engine.change(|cluster| [cluster.set_node(view)]);
        let change = match old {
            Some(old) => Change::Updated { old, new },
            None => Change::Added(new),
        };
        self.queue
            .on_change(&Object::Node(change), Affected::All, now);
    }

    fn remove_node(&mut self, name: &NodeName, now: Time) {
        if let Some(old) = self.nodes.remove(name) {
            let change = Object::Node(Change::Deleted(old));
            self.queue.on_change(&change, Affected::All, now);
            self.engine.change(|cluster| cluster.remove_node(name));
        }
    }

    /// Objects that decide but wake no pod: namespaces, budgets, services and controllers.
    pub(super) fn on_other(&mut self, input: Input) {
        match input {
            Input::Namespace(seen) => {
                for step in follow(&mut self.namespaces, seen, |(name, _)| name.clone()) {
                    self.engine.change(|cluster| match step {
                        Step::Set((name, labels)) => [cluster.set_namespace(&name, labels)],
                        Step::Remove(name) => [cluster.remove_namespace(&name)],
                    });
                }
            }
            Input::Budget(seen) => {
                let key =
                    |budget: &DisruptionBudget| (budget.namespace.clone(), budget.name.clone());
                for step in follow(&mut self.budgets, seen, key) {
                    self.engine.change(|cluster| match step {
                        Step::Set(budget) => [cluster.set_budget(budget)],
                        Step::Remove((namespace, name)) => {
                            [cluster.remove_budget(&namespace, &name)]
                        }
                    });
                }
            }
            Input::Service(seen) => {
                for step in follow(&mut self.services, seen, |object| name_of(object.as_ref())) {
                    self.change_owners(|owners| match step {
                        Step::Set(service) => owners.set_service(&service),
                        Step::Remove((namespace, name)) => owners.remove_service(&namespace, &name),
                    });
                }
            }
            other => self.on_controller(other),
        }
    }

    fn on_controller(&mut self, input: Input) {
        match input {
            Input::ReplicationController(seen) => {
                for step in follow(&mut self.replication_controllers, seen, |object| {
                    name_of(object.as_ref())
                }) {
                    self.change_owners(|owners| match step {
                        Step::Set(controller) => owners.set_replication_controller(&controller),
                        Step::Remove((namespace, name)) => {
                            owners.remove_replication_controller(&namespace, &name);
                        }
                    });
                }
            }
            Input::ReplicaSet(seen) => {
                for step in follow(&mut self.replica_sets, seen, |object| {
                    name_of(object.as_ref())
                }) {
                    self.change_owners(|owners| match step {
                        Step::Set(set) => owners.set_replica_set(&set),
                        Step::Remove((namespace, name)) => {
                            owners.remove_replica_set(&namespace, &name);
                        }
                    });
                }
            }
            Input::StatefulSet(seen) => {
                for step in follow(&mut self.stateful_sets, seen, |object| {
                    name_of(object.as_ref())
                }) {
                    self.change_owners(|owners| match step {
                        Step::Set(set) => owners.set_stateful_set(&set),
                        Step::Remove((namespace, name)) => {
                            owners.remove_stateful_set(&namespace, &name);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    fn change_owners(&mut self, change: impl FnOnce(&mut Owners)) {
        self.engine.change(|cluster| {
            change(&mut cluster.owners);
            None
        });
    }
}

/// How an object changes the cluster.
enum Step<T, K> {
    Set(T),
    Remove(K),
}

/// Keeps track of which objects there are.
fn follow<T, K: Ord + Clone>(
    store: &mut Store<K, ()>,
    seen: WatchEvent<T, K>,
    key: impl FnOnce(&T) -> K,
) -> Vec<Step<T, K>> {
    match seen {
        WatchEvent::ListBegins => {
            store.begin_list();
            Vec::new()
        }
        WatchEvent::Is(object) => {
            store.insert(key(&object), ());
            vec![Step::Set(object)]
        }
        WatchEvent::Deleted(key) => {
            store.remove(&key);
            vec![Step::Remove(key)]
        }
        WatchEvent::ListEnds => {
            let stale = store.end_list();
            for key in &stale {
                store.remove(key);
            }
            stale.into_iter().map(Step::Remove).collect()
        }
    }
}

fn name_of<T: Resource>(object: &T) -> Name {
    let meta = object.meta();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&meta.namespace), text(&meta.name))
}
