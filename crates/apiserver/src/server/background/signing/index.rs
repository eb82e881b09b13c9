//! Indexes of all signing requests and nodes, for the decision about one request.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::object::timestamp::Timestamp;
use serde_json::Value;

use crate::auth::signer::{self, NodeNameConflict};

/// The signing requests of kubelets, by node name.
#[derive(Debug, Default)]
pub(super) struct Claims {
    nodes: BTreeMap<String, BTreeMap<String, Claim>>,
    node_of: BTreeMap<String, String>,
}

/// How a request refers to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Approved; its requester is the node until then, in seconds since 1970.
    Granted(Option<i64>),
    /// Pending; it may be approved when the node changes.
    Waits,
}

impl Claims {
    pub(super) fn record(&mut self, request: &str, csr: &Value) {
        self.forget(request);
        let granted = signer::claim(csr).map(|(node, end)| (node, Claim::Granted(end)));
        let waits = || Some((signer::waits_for_node(csr)?.to_owned(), Claim::Waits));
        if let Some((node, claim)) = granted.or_else(waits) {
            let requests = self.nodes.entry(node.clone()).or_default();
            requests.insert(request.to_owned(), claim);
            self.node_of.insert(request.to_owned(), node);
        }
    }

    pub(super) fn forget(&mut self, request: &str) {
        let Some(node) = self.node_of.remove(request) else {
            return;
        };
        if let Entry::Occupied(mut requests) = self.nodes.entry(node) {
            requests.get_mut().remove(request);
            if requests.get().is_empty() {
                requests.remove();
            }
        }
    }

    fn of_node(&self, node: &str) -> impl Iterator<Item = (&String, Claim)> {
        let requests = self.nodes.get(node).into_iter().flatten();
        requests.map(|(request, claim)| (request, *claim))
    }

    pub(super) fn waiting_for(&self, node: &str) -> Vec<String> {
        let waiting = self.of_node(node).filter(|(_, c)| *c == Claim::Waits);
        waiting.map(|(request, _)| request.clone()).collect()
    }

    pub(super) fn granted_to(&self, node: &str) -> Vec<String> {
        let granted = self.of_node(node).filter(|(_, c)| *c != Claim::Waits);
        granted.map(|(request, _)| request.clone()).collect()
    }

    /// Another request than `own` with the same node name that was approved and is still valid.
    pub(super) fn taken(&self, node: &str, own: &str, now: Timestamp) -> Option<NodeNameConflict> {
        let now = now.as_nanos().div_euclid(1_000_000_000);
        let is_good = |claim| match claim {
            Claim::Granted(end) => end.is_none_or(|end| now < end),
            Claim::Waits => false,
        };
        let mut others = self.of_node(node).filter(|(request, _)| *request != own);
        let (request, _) = others.find(|(_, claim)| is_good(*claim))?;
        Some(NodeNameConflict::ByRequest {
            node: node.to_owned(),
            request: request.clone(),
        })
    }
}

/// The nodes that report an address or a name.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    nodes: BTreeMap<String, BTreeSet<String>>,
    holders: BTreeSet<(String, String)>,
}

impl Addresses {
    pub(super) fn record(&mut self, node: &str, object: &Value) {
        let addresses = object["status"]["addresses"].as_array();
        let addresses = addresses.into_iter().flatten();
        let addresses = addresses.filter_map(|entry| entry["address"].as_str());
        let mut addresses: BTreeSet<String> = addresses.map(signer::comparable).collect();
        addresses.insert(signer::comparable(node));
        if self.nodes.get(node) == Some(&addresses) {
            return;
        }
        self.forget(node);
        let held = addresses.iter().map(|a| (a.clone(), node.to_owned()));
        self.holders.extend(held);
        self.nodes.insert(node.to_owned(), addresses);
    }

    pub(super) fn forget(&mut self, node: &str) {
        for address in self.nodes.remove(node).into_iter().flatten() {
            self.holders.remove(&(address, node.to_owned()));
        }
    }

    /// Another node than `asking` that has the address.
    pub(super) fn holder(&self, address: &str, asking: &str) -> Option<String> {
        let from = (address.to_owned(), String::new());
        let mut holders = self
            .holders
            .range(from..)
            .take_while(|(held, _)| held == address);
        let (_, node) = holders.find(|(_, node)| node != asking)?;
        Some(node.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(addresses: &[&str]) -> Value {
        let addresses = addresses.iter().map(|address| json!({"address": address}));
        json!({"status": {"addresses": addresses.collect::<Vec<_>>()}})
    }

    #[test]
    fn address_is_held_while_the_node_reports_it() {
        let mut addresses = Addresses::default();
        addresses.record("n1", &node(&["10.0.0.1", "Host"]));
        addresses.record("n2", &node(&["10.0.0.1"]));
        assert_eq!(addresses.holder("10.0.0.1", "n1").as_deref(), Some("n2"));
        assert_eq!(addresses.holder("host", "n2").as_deref(), Some("n1"));
        assert_eq!(addresses.holder("host", "n1"), None);
        addresses.record("n2", &node(&["10.0.0.2"]));
        assert_eq!(addresses.holder("10.0.0.1", "n1"), None);
        addresses.forget("n1");
        assert_eq!(addresses.holder("10.0.0.1", "n3"), None);
        assert_eq!(addresses.holder("n2", "n3").as_deref(), Some("n2"));
    }
}
