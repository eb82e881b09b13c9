//! The objects that the pods of each node need.
//!
//! Matches v1.36 plugin/pkg/auth/authorizer/node/graph.go: secrets, config maps, claims and
//! accounts lead to pods, volumes and their secrets to claims, and pods to nodes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::references;
use crate::auth::text;

/// The types of objects that a pod can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum VertexType {
    ConfigMap,
    Secret,
    ServiceAccount,
    VolumeClaim,
    ResourceClaim,
    Pod,
}

/// An object that is needed: its type, namespace and name.
type Needed = (VertexType, String, String);

/// A namespace and a name.
type Name = (String, String);

/// Which pods need which objects, kept up to date from objects.
#[derive(Debug, Default)]
pub struct NodeGraph {
    pods: HashMap<Name, Pod>,
    /// For each object, the nodes whose pods need it, with the number of those pods.
    needs: HashMap<Needed, BTreeMap<String, usize>>,
    volumes: HashMap<String, Volume>,
    /// For each secret, the volumes that need it.
    volumes_of_secret: HashMap<Name, BTreeSet<String>>,
    /// The node of each volume attachment.
    attachments: HashMap<String, String>,
    /// The node of each resource slice.
    slices: HashMap<String, String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Pod {
    node: String,
    needs: BTreeSet<Needed>,
}

#[derive(Debug)]
struct Volume {
    claim: Name,
    secrets: Vec<Name>,
}

impl NodeGraph {
    /// Updates the graph from a pod; `None` when it was deleted. Pods without a node need nothing.
    pub fn observe_pod(&mut self, namespace: &str, name: &str, pod: Option<&Value>) {
        let bound = pod.filter(|pod| !text(pod, "/spec/nodeName").is_empty());
        let new = bound.map(|pod| Pod::new(namespace, name, pod));
        let key = (namespace.to_owned(), name.to_owned());
        if new.as_ref() == self.pods.get(&key) {
            return;
        }
        if let Some(old) = self.pods.remove(&key) {
            for needed in &old.needs {
                self.release(needed, &old.node);
            }
        }
        let Some(new) = new else {
            return;
        };
        for needed in &new.needs {
            let nodes = self.needs.entry(needed.clone()).or_default();
            *nodes.entry(new.node.clone()).or_default() += 1;
        }
        self.pods.insert(key, new);
    }

    fn release(&mut self, needed: &Needed, node: &str) {
        let Some(nodes) = self.needs.get_mut(needed) else {
            return;
        };
        if let Some(count) = nodes.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(node);
            }
        }
        if nodes.is_empty() {
            self.needs.remove(needed);
        }
    }

    /// Updates the graph from a persistent volume; `None` when it was deleted.
    pub fn observe_volume(&mut self, name: &str, volume: Option<&Value>) {
        if let Some(old) = self.volumes.remove(name) {
            for secret in old.secrets {
                if let Some(volumes) = self.volumes_of_secret.get_mut(&secret) {
                    volumes.remove(name);
                    if volumes.is_empty() {
                        self.volumes_of_secret.remove(&secret);
                    }
                }
            }
        }
        let is_claimed = |volume: &&Value| !volume["spec"]["claimRef"].is_null();
        let Some(volume) = volume.filter(is_claimed) else {
            return;
        };
        let claim = |part| text(volume, part).to_owned();
        let new = Volume {
            claim: (
                claim("/spec/claimRef/namespace"),
                claim("/spec/claimRef/name"),
            ),
            secrets: references::volume_secrets(volume),
        };
        for secret in &new.secrets {
            let volumes = self.volumes_of_secret.entry(secret.clone()).or_default();
            volumes.insert(name.to_owned());
        }
        self.volumes.insert(name.to_owned(), new);
    }

    /// Updates the graph from a volume attachment; `None` when it was deleted.
    pub fn observe_attachment(&mut self, name: &str, attachment: Option<&Value>) {
        let node = attachment.map(|object| text(object, "/spec/nodeName"));
        set(&mut self.attachments, name, node);
    }

    /// Updates the graph from a resource slice; `None` when it was deleted.
    pub fn observe_slice(&mut self, name: &str, slice: Option<&Value>) {
        let node = slice.map(|object| text(object, "/spec/nodeName"));
        set(&mut self.slices, name, node);
    }

    /// Whether some pod on the node needs the object.
    pub(super) fn needs(
        &self,
        node: &str,
        vertex: VertexType,
        namespace: &str,
        name: &str,
    ) -> bool {
        let needed = (vertex, namespace.to_owned(), name.to_owned());
        let is_direct = self
            .needs
            .get(&needed)
            .is_some_and(|nodes| nodes.contains_key(node));
        if is_direct || vertex != VertexType::Secret {
            return is_direct;
        }
        let (_, namespace, name) = needed;
        let volumes = self.volumes_of_secret.get(&(namespace, name));
        let mut volumes = volumes.into_iter().flatten();
        volumes.any(|volume| self.needs_volume(node, volume))
    }

    /// Whether some pod on the node needs the persistent volume, through its claim.
    pub(super) fn needs_volume(&self, node: &str, name: &str) -> bool {
        self.volumes.get(name).is_some_and(|volume| {
            let (namespace, claim) = &volume.claim;
            self.needs(node, VertexType::VolumeClaim, namespace, claim)
        })
    }

    /// Whether the volume attachment is the node's.
    pub(super) fn has_attachment(&self, node: &str, name: &str) -> bool {
        self.attachments.get(name).is_some_and(|of| of == node)
    }

    /// Whether the resource slice is the node's.
    pub(super) fn has_slice(&self, node: &str, name: &str) -> bool {
        self.slices.get(name).is_some_and(|of| of == node)
    }
}

fn set(nodes: &mut HashMap<String, String>, name: &str, node: Option<&str>) {
    match node.filter(|node| !node.is_empty()) {
        Some(node) => nodes.insert(name.to_owned(), node.to_owned()),
        None => nodes.remove(name),
    };
}

impl Pod {
    fn new(namespace: &str, name: &str, pod: &Value) -> Pod {
        let object = |vertex, name: &str| (vertex, namespace.to_owned(), name.to_owned());
        let mut needs = BTreeSet::from([object(VertexType::Pod, name)]);
        // A kubelet creates mirror pods itself; they must not give it access to anything.
        if !references::is_mirror(pod) {
            let account = text(pod, "/spec/serviceAccountName");
            if !account.is_empty() {
                needs.insert(object(VertexType::ServiceAccount, account));
            }
            let secrets = references::secrets(pod).into_iter();
            needs.extend(secrets.map(|name| object(VertexType::Secret, name)));
            let config_maps = references::config_maps(pod).into_iter();
            needs.extend(config_maps.map(|name| object(VertexType::ConfigMap, name)));
            let claims = references::volume_claims(pod).into_iter();
            needs.extend(claims.map(|name| object(VertexType::VolumeClaim, &name)));
            let claims = references::resource_claims(pod).into_iter();
            needs.extend(claims.map(|name| object(VertexType::ResourceClaim, name)));
        }
        Pod {
            node: text(pod, "/spec/nodeName").to_owned(),
            needs,
        }
    }
}
