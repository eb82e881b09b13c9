//! Which domain of a topology key each node is in, as columns of numbers.

use std::collections::BTreeMap;

use crate::scheduling::cluster::{Cluster, NodeSlot, NodeState};

/// A number that stands for a topology key.
pub(super) type KeyId = usize;

/// The topology keys that any class of pods uses.
#[derive(Debug, Default)]
pub(super) struct Topology {
    keys: Vec<Key>,
    by_name: BTreeMap<String, KeyId>,
}

/// One topology key: the value of its label on each node.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    values: Vec<String>,
    by_value: BTreeMap<String, u32>,
    of_slot: Vec<u32>,
    slots: Vec<Vec<u32>>,
}

/// The domain of nodes without the label.
pub(super) const ABSENT: u32 = u32::MAX;

impl Topology {
    /// The key of that name; the first to ask has it read from all nodes.
    pub(super) fn register(&mut self, name: &str, cluster: &Cluster) -> KeyId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let mut key = Key {
            name: name.to_owned(),
            values: Vec::new(),
            by_value: BTreeMap::new(),
            of_slot: Vec::new(),
            slots: Vec::new(),
        };
        for (slot, node) in cluster.nodes() {
            key.set(slot, Some(node));
        }
        let id = self.keys.len();
        self.keys.push(key);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// The key of that name, if any class uses it.
    pub(super) fn find(&self, name: &str) -> Option<KeyId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn key(&self, id: KeyId) -> &Key {
        &self.keys[id]
    }

    /// A node appeared, changed its labels, or is gone (`None`).
    pub(super) fn set(&mut self, slot: NodeSlot, node: Option<&NodeState>) {
        for key in &mut self.keys {
            key.set(slot, node);
        }
    }
}

impl Key {
    /// The domain of a node.
    pub(super) fn domain(&self, slot: u32) -> u32 {
        self.of_slot.get(index(slot)).copied().unwrap_or(ABSENT)
    }

    /// How many values were ever seen.
    pub(super) fn domain_count(&self) -> usize {
        self.values.len()
    }

    /// The value of a domain.
    pub(super) fn value(&self, domain: u32) -> &str {
        &self.values[index(domain)]
    }

    /// The domain of a value; `ABSENT` if no node has it.
    pub(super) fn domain_of_value(&self, value: &str) -> u32 {
        self.by_value.get(value).copied().unwrap_or(ABSENT)
    }

    /// The nodes of a domain.
    pub(super) fn slots(&self, domain: u32) -> &[u32] {
        &self.slots[index(domain)]
    }

    fn set(&mut self, slot: NodeSlot, node: Option<&NodeState>) {
        if self.of_slot.len() <= slot.index() {
            self.of_slot.resize(slot.index() + 1, ABSENT);
        }
        let old = self.of_slot[slot.index()];
        let new = match node.and_then(|node| node.label(&self.name)) {
            None => ABSENT,
            Some(value) => self.intern(value),
        };
        if old == new {
            return;
        }
        if old != ABSENT {
            self.slots[index(old)].retain(|own| *own != slot.0);
        }
        if new != ABSENT {
            self.slots[index(new)].push(slot.0);
        }
        self.of_slot[slot.index()] = new;
    }

    fn intern(&mut self, value: &str) -> u32 {
        if let Some(domain) = self.by_value.get(value) {
            return *domain;
        }
        let domain = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        self.values.push(value.to_owned());
        self.slots.push(Vec::new());
        self.by_value.insert(value.to_owned(), domain);
        domain
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit in an index")
}
