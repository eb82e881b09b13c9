//! The graph of owners and dependents, as far as the watches have reported it.
//!
//! An owner that is referred to but was not seen yet stands in the graph as *virtual*: it is looked
//! up in the API. Matches v1.36 pkg/controller/garbagecollector/graph_builder.go.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::absent::AbsentOwners;
use super::identity::Identity;
use super::{FOREGROUND, ORPHAN, has_finalizer};

/// An object in the graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) identity: Identity,
    pub(super) owners: Vec<OwnerReference>,
    /// Uids of the objects that refer to it.
    pub(super) dependents: BTreeSet<String>,
    pub(super) is_being_deleted: bool,
    /// It waits for its dependents to be deleted.
    pub(super) is_deleting_dependents: bool,
    /// It waits for its dependents to be orphaned.
    is_orphaning: bool,
    /// No watch has reported it.
    pub(super) is_virtual: bool,
}

/// The work that follows from a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Todo {
    /// See whether the object is to be deleted.
    Delete(Identity),
    /// The same, but not at once: the last attempt did not succeed.
    DeleteLater(Identity),
    /// Take the references to it off its dependents.
    Orphan(Identity),
    /// Record an event: the object refers to an owner in another namespace.
    ReportNamespace { object: Identity, owner: Identity },
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    pub(super) absent: AbsentOwners,
}

impl Graph {
    pub(super) fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The objects that refer to this one.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Node> {
        let uids = self.nodes.get(uid).into_iter().flat_map(|n| &n.dependents);
        uids.filter_map(|uid| self.nodes.get(uid).cloned())
            .collect()
    }

    /// Those dependents that hold the deletion of their owner up.
    pub(super) fn blocking_dependents(&self, uid: &str) -> Vec<Node> {
        let blocks =
            |owner: &OwnerReference| owner.uid == uid && owner.block_owner_deletion == Some(true);
        let mut dependents = self.dependents(uid);
        dependents.retain(|dependent| dependent.owners.iter().any(blocks));
        dependents
    }

    /// Takes in an object that a watch reports as existing.
    pub(super) fn apply(&mut self, identity: Identity, metadata: &ObjectMeta) -> Vec<Todo> {
        let mut todos = Vec::new();
        let uid = identity.uid.clone();
        let owners = metadata.owner_references.clone().unwrap_or_default();
        match self.nodes.get(&uid) {
            None => self.insert(identity, owners, &mut todos),
            Some(node) => {
                if node.is_virtual {
                    self.add_virtual(identity, &mut todos);
                }
                self.change_owners(&uid, owners, &mut todos);
            }
        }
        self.follow_deletion(&uid, metadata, &mut todos);
        todos
    }

    fn insert(&mut self, identity: Identity, owners: Vec<OwnerReference>, todos: &mut Vec<Todo>) {
        let uid = identity.uid.clone();
        let node = Node {
            identity,
            owners: owners.clone(),
            dependents: BTreeSet::new(),
            is_being_deleted: false,
            is_deleting_dependents: false,
            is_orphaning: false,
            is_virtual: false,
        };
        self.nodes.insert(uid.clone(), node);
        self.add_to_owners(&uid, &owners, todos);
    }

    /// An owner that others have referred to is seen for the first time. Dependents that refer to
    /// it by other names are checked again.
    fn add_virtual(&mut self, identity: Identity, todos: &mut Vec<Todo>) {
        let dependents = self.dependents(&identity.uid);
        let Some(node) = self.nodes.get_mut(&identity.uid) else {
            return;
        };
        node.is_virtual = false;
        if node.identity == identity {
            return;
        }
        node.identity = identity.clone();
        for dependent in dependents {
            let agreement = agreement(&dependent, &identity);
            if !agreement.differs {
                continue;
            }
            if is_in_another_namespace(&dependent, &identity) {
                todos.extend(report(&dependent, &identity.uid));
            }
            todos.push(Todo::Delete(dependent.identity));
        }
    }

    fn change_owners(&mut self, uid: &str, owners: Vec<OwnerReference>, todos: &mut Vec<Todo>) {
        let Some(node) = self.nodes.get_mut(uid) else {
            return;
        };
        if node.owners == owners {
            return;
        }
        let before = std::mem::replace(&mut node.owners, owners.clone());
        let blocks = |owner: &OwnerReference| owner.block_owner_deletion == Some(true);
        for old in before.iter().filter(|old| blocks(old)) {
            let new = owners.iter().find(|new| new.uid == old.uid);
            if !new.is_some_and(blocks)
                && let Some(owner) = self.nodes.get(&old.uid)
            {
                todos.push(Todo::Delete(owner.identity.clone()));
            }
        }
        let is_in = |list: &[OwnerReference], uid: &str| list.iter().any(|o| o.uid == uid);
        let added = owners.iter().filter(|new| !is_in(&before, &new.uid));
        let added: Vec<OwnerReference> = added.cloned().collect();
        self.add_to_owners(uid, &added, todos);
        for old in before.iter().filter(|old| !is_in(&owners, &old.uid)) {
            if let Some(owner) = self.nodes.get_mut(&old.uid) {
                owner.dependents.remove(uid);
            }
        }
    }

    /// Adds the object to the dependents of its owners. If it may refer to one of them wrongly, it
    /// is checked itself.
    fn add_to_owners(&mut self, uid: &str, owners: &[OwnerReference], todos: &mut Vec<Todo>) {
        let Some(node) = self.nodes.get(uid).cloned() else {
            return;
        };
        let mut is_doubtful = false;
        for reference in owners {
            let Some(owner) = self.nodes.get_mut(&reference.uid) else {
                let identity = Identity::of_owner(reference, &node.identity.namespace);
                todos.push(Todo::Delete(identity.clone()));
                self.nodes.insert(
                    reference.uid.clone(),
                    virtual_owner(identity, uid.to_owned()),
                );
                continue;
            };
            owner.dependents.insert(uid.to_owned());
            if is_doubtful {
                continue;
            }
            if is_in_another_namespace(&node, &owner.identity) {
                if !owner.is_virtual {
                    todos.extend(report(&node, &reference.uid));
                }
                is_doubtful = true;
            } else if !owner.identity.is_named_by(reference) {
                is_doubtful = true;
            } else {
                // An owner of the cluster that was not seen may be one of a namespace that the
                // first dependent, which is of the cluster, referred to by mistake.
                let differs = owner.identity.namespace != node.identity.namespace;
                is_doubtful = owner.is_virtual && differs;
            }
        }
        if is_doubtful {
            todos.push(Todo::Delete(node.identity));
        }
    }

    fn follow_deletion(&mut self, uid: &str, metadata: &ObjectMeta, todos: &mut Vec<Todo>) {
        let Some(node) = self.nodes.get_mut(uid) else {
            return;
        };
        let is_deleted = metadata.deletion_timestamp.is_some();
        node.is_being_deleted |= is_deleted;
        let was_orphaning = node.is_orphaning;
        node.is_orphaning = is_deleted && has_finalizer(metadata, ORPHAN);
        let was_deleting = node.is_deleting_dependents;
        let is_deleting = is_deleted && has_finalizer(metadata, FOREGROUND);
        if node.is_orphaning && !was_orphaning {
            todos.push(Todo::Orphan(node.identity.clone()));
            return;
        }
        node.is_deleting_dependents |= is_deleting;
        if is_deleting && !was_deleting {
            let identity = node.identity.clone();
            let dependents = self.dependents(uid).into_iter();
            todos.extend(dependents.map(|dependent| Todo::Delete(dependent.identity)));
            todos.push(Todo::Delete(identity));
        }
    }

    /// Takes in an object that a watch reports as deleted.
    pub(super) fn delete(&mut self, identity: &Identity) -> Vec<Todo> {
        let mut todos = Vec::new();
        if self.nodes.contains_key(&identity.uid) {
            self.remove(identity, &mut todos);
        }
        todos
    }

    /// Takes in that the server knows no object of that identity.
    pub(super) fn delete_absent(&mut self, identity: &Identity) -> Vec<Todo> {
        let mut todos = Vec::new();
        let Some(node) = self.nodes.get(&identity.uid) else {
            return todos;
        };
        let (is_virtual, known_as) = (node.is_virtual, node.identity.clone());
        let dependents = self.dependents(&identity.uid);
        let agrees = |node: &&Node| agreement(node, identity).agrees;
        let differs = |node: &&Node| agreement(node, identity).differs;
        let others: Vec<&Node> = dependents.iter().filter(differs).collect();
        let is_kept = match is_virtual {
            // Some refer to the owner by another name, which may exist.
            true => !others.is_empty(),
            // The object exists under another name.
            false => known_as != *identity,
        };
        if !is_kept {
            self.remove(identity, &mut todos);
            return todos;
        }
        let mut matching = dependents.iter().filter(agrees).peekable();
        if matching.peek().is_some() {
            self.absent.add(identity.clone());
            todos.extend(matching.map(|node| Todo::Delete(node.identity.clone())));
        }
        if is_virtual && known_as == *identity {
            let alternative = alternative(&others, identity);
            if let (Some(alternative), Some(node)) =
                (alternative, self.nodes.get_mut(&identity.uid))
            {
                node.identity = alternative.clone();
                todos.push(Todo::DeleteLater(alternative));
            }
        }
        todos
    }

    fn remove(&mut self, identity: &Identity, todos: &mut Vec<Todo>) {
        let dependents = self.dependents(&identity.uid);
        let Some(node) = self.nodes.remove(&identity.uid) else {
            return;
        };
        for owner in &node.owners {
            if let Some(owner) = self.nodes.get_mut(&owner.uid) {
                owner.dependents.remove(&identity.uid);
            }
        }
        if !dependents.is_empty() {
            self.absent.add(identity.clone());
        }
        let looked_at = dependents
            .into_iter()
            .map(|node| Todo::Delete(node.identity));
        todos.extend(looked_at);
        for owner in &node.owners {
            // The last dependent may be the one that its owner waited for.
            if let Some(owner) = self.nodes.get(&owner.uid)
                && owner.is_deleting_dependents
            {
                todos.push(Todo::Delete(owner.identity.clone()));
            }
        }
    }
}

fn virtual_owner(identity: Identity, dependent: String) -> Node {
    Node {
        identity,
        owners: Vec::new(),
        dependents: BTreeSet::from([dependent]),
        is_being_deleted: false,
        is_deleting_dependents: false,
        is_orphaning: false,
        is_virtual: true,
    }
}

fn is_in_another_namespace(dependent: &Node, owner: &Identity) -> bool {
    !owner.namespace.is_empty() && owner.namespace != dependent.identity.namespace
}

/// Whether a dependent refers to an owner by its names, and whether by others. With several
/// references it may do both.
struct ReferenceMatch {
    agrees: bool,
    differs: bool,
}

fn agreement(dependent: &Node, owner: &Identity) -> ReferenceMatch {
    if is_in_another_namespace(dependent, owner) {
        return ReferenceMatch {
            agrees: false,
            differs: true,
        };
    }
    let mut references = dependent.owners.iter().filter(|o| o.uid == owner.uid);
    let agrees = references.clone().any(|o| owner.is_named_by(o));
    let differs = references.any(|o| !owner.is_named_by(o));
    ReferenceMatch { agrees, differs }
}

/// Another identity that dependents know the owner by: the next after the one known to be absent,
/// or the first.
fn alternative(dependents: &[&Node], absent: &Identity) -> Option<Identity> {
    let mut alternatives = BTreeSet::new();
    for dependent in dependents {
        let is_elsewhere = is_in_another_namespace(dependent, absent);
        let references = dependent.owners.iter().filter(|o| o.uid == absent.uid);
        for reference in references.filter(|o| is_elsewhere || !absent.is_named_by(o)) {
            let namespace = &dependent.identity.namespace;
            alternatives.insert(Identity::of_owner(reference, namespace));
        }
    }
    alternatives.remove(absent);
    let following = alternatives.range(absent..).next();
    following.or_else(|| alternatives.first()).cloned()
}

fn report(object: &Node, owner_uid: &str) -> Option<Todo> {
    let reference = object.owners.iter().find(|o| o.uid == owner_uid)?;
    Some(Todo::ReportNamespace {
        object: object.identity.clone(),
        owner: Identity::of_owner(reference, &object.identity.namespace),
    })
}

#[cfg(test)]
mod tests;
