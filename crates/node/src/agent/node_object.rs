//! The node as the API has it.
//!
//! Pure: from what the agent knows to the object and its status. Matches v1.36
//! pkg/kubelet/kubelet_node_status.go and nodestatus/setters.go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo, Taint as ApiTaint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::render_resource_list;
use plimsoll_core::object::taint::Taint;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceList;
use serde_json::{Value, json};

use super::conditions::compute_conditions;
use super::system_info::architecture;

/// `nodeStatusMaxImages`: how many images a status lists.
const MAX_IMAGES: usize = 50;
/// How many names of one image it lists.
const MAX_NAMES_PER_IMAGE: usize = 5;

/// What does not change while the agent runs.
#[derive(Clone, Debug)]
pub(super) struct NodeIdentity {
    pub(super) name: String,
    pub(super) hostname: String,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) port: u16,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) system: NodeSystemInfo,
}

/// What does.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeFacts {
    pub(super) capacity: ResourceList,
    pub(super) allocatable: ResourceList,
    pub(super) images: Vec<ContainerImage>,
    /// Pressure conditions that hold.
    pub(super) pressure: BTreeSet<NodeCondition>,
    /// What keeps the node from being ready.
    pub(super) not_ready: Vec<String>,
}

impl NodeIdentity {
    /// The object a node registers with.
    pub(super) fn initial(&self, facts: &NodeFacts, now: Timestamp) -> Node {
        let status = self.status(&NodeStatus::default(), facts, now).status;
        let taints: Vec<ApiTaint> = self.taints.iter().map(render_taint).collect();
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.all_labels()),
                annotations: Some(BTreeMap::from([(
                    "volumes.kubernetes.io/controller-managed-attach-detach".to_owned(),
                    "true".to_owned(),
                )])),
                ..ObjectMeta::default()
            },
            spec: (!taints.is_empty()).then(|| NodeSpec {
                taints: Some(taints),
                ..NodeSpec::default()
            }),
            status: Some(status),
        }
    }

    /// The node's own labels and the configured ones.
    pub(super) fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.default_labels();
        labels.extend(self.labels.clone());
        labels
    }

    fn default_labels(&self) -> BTreeMap<String, String> {
        let os = std::env::consts::OS;
        [
            ("kubernetes.io/hostname", self.hostname.as_str()),
            ("kubernetes.io/os", os),
            ("kubernetes.io/arch", architecture()),
            ("beta.kubernetes.io/os", os),
            ("beta.kubernetes.io/arch", architecture()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Labels of a node that was there before and that differ from what they should be.
    pub(super) fn stale_labels(&self, existing: &Node) -> BTreeMap<String, String> {
        let there = existing.metadata.labels.clone().unwrap_or_default();
        let mut wanted = self.all_labels();
        wanted.retain(|name, value| there.get(name) != Some(value));
        wanted
    }

    /// The status as it should be now.
    pub(super) fn status(
        &self,
        previous: &NodeStatus,
        facts: &NodeFacts,
        now: Timestamp,
    ) -> StatusUpdate {
        let conditions = compute_conditions(
            previous.conditions.as_deref().unwrap_or_default(),
            &facts.pressure,
            &facts.not_ready,
            now,
        );
        let status = NodeStatus {
            addresses: Some(self.addresses()),
            allocatable: render_resource_list(&facts.allocatable),
            capacity: render_resource_list(&facts.capacity),
            conditions: Some(conditions.list),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint {
                    port: i32::from(self.port),
                }),
            }),
            images: Some(listed(&facts.images)),
            node_info: Some(self.system.clone()),
            ..NodeStatus::default()
        };
        StatusUpdate {
            status,
            events: conditions.events,
        }
    }

    fn addresses(&self) -> Vec<NodeAddress> {
        let internal = self.addresses.iter().map(|address| NodeAddress {
            type_: "InternalIP".to_owned(),
            address: address.to_string(),
        });
        let hostname = NodeAddress {
            type_: "Hostname".to_owned(),
            address: self.hostname.clone(),
        };
        internal.chain([hostname]).collect()
    }
}

/// A status, and the reasons of events that report its changes.
#[derive(Clone, Debug)]
pub(super) struct StatusUpdate {
    pub(super) status: NodeStatus,
    pub(super) events: Vec<&'static str>,
}

/// The largest images, with a few of their names.
fn listed(images: &[ContainerImage]) -> Vec<ContainerImage> {
    let mut images = images.to_vec();
    images.sort_by(|a, b| {
        let largest_first = b.size_bytes.cmp(&a.size_bytes);
        largest_first.then_with(|| a.names.cmp(&b.names))
    });
    images.truncate(MAX_IMAGES);
    for image in &mut images {
        image
            .names
            .iter_mut()
            .for_each(|names| names.truncate(MAX_NAMES_PER_IMAGE));
    }
    images
}

/// Whether a status says anything new, heartbeats aside.
pub(super) fn is_news(previous: &NodeStatus, next: &NodeStatus) -> bool {
    fn comparable(status: &NodeStatus) -> Value {
        let mut owned = NodeStatus {
            addresses: status.addresses.clone(),
            allocatable: status.allocatable.clone(),
            capacity: status.capacity.clone(),
            conditions: status.conditions.clone(),
            daemon_endpoints: status.daemon_endpoints.clone(),
            images: status.images.clone().filter(|images| !images.is_empty()),
            node_info: status.node_info.clone(),
            ..NodeStatus::default()
        };
        for condition in owned.conditions.iter_mut().flatten() {
            condition.last_heartbeat_time = None;
        }
        // Others' conditions are theirs to report.
        if let Some(conditions) = &mut owned.conditions {
            conditions.retain(|condition| {
                let which = NodeCondition::from_name(&condition.type_);
                which.is_some_and(|which| which != NodeCondition::NetworkUnavailable)
            });
            conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        }
        json!(owned)
    }
    comparable(previous) != comparable(next)
}

/// The strategic merge patch that makes `previous` into `next`; what is as it was is left out.
/// Conditions are merged by type, so that those of others stay; addresses are replaced, since their
/// merge key is not unique.
pub(super) fn status_patch(previous: &NodeStatus, next: &NodeStatus) -> Value {
    let (before, mut status) = (json!(previous), json!(next));
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|field, value| before[field] != *value);
    }
    // To name a field that is not there would make it.
    let addresses = status.get_mut("addresses").and_then(Value::as_array_mut);
    if let Some(addresses) = addresses {
        addresses.push(json!({"$patch": "replace"}));
    }
    let lists = [
        ("capacity", &previous.capacity, &next.capacity),
        ("allocatable", &previous.allocatable, &next.allocatable),
    ];
    for (field, before, after) in lists {
        for gone in before.iter().flat_map(BTreeMap::keys) {
            if !after.as_ref().is_some_and(|after| after.contains_key(gone)) {
                status[field][gone] = Value::Null;
            }
        }
    }
    json!({ "status": status })
}

fn render_taint(taint: &Taint) -> ApiTaint {
    ApiTaint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::quantity::Quantity;
    use plimsoll_core::resources::ResourceName;

    use super::*;

    fn identity() -> NodeIdentity {
        NodeIdentity {
            name: "n1".to_owned(),
            hostname: "n1".to_owned(),
            addresses: vec!["10.0.0.7".parse().unwrap()],
            port: 10250,
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            taints: Vec::new(),
            system: NodeSystemInfo::default(),
        }
    }

    fn with_cpu(cpu: &str) -> NodeFacts {
        let mut list = ResourceList::new();
        list.insert(ResourceName::CPU, cpu.parse::<Quantity>().unwrap());
        NodeFacts {
            capacity: list.clone(),
            allocatable: list,
            ..NodeFacts::default()
        }
    }

    #[test]
    fn status_with_only_newer_heartbeats_is_unchanged() {
        let identity = identity();
        let facts = with_cpu("2");
        let first = identity.initial(&facts, Timestamp::from_secs(1));
        let first = first.status.unwrap();
        let second = identity.status(&first, &facts, Timestamp::from_secs(11));
        assert!(!is_news(&first, &second.status));
        let third = identity.status(&first, &with_cpu("1"), Timestamp::from_secs(11));
        assert!(is_news(&first, &third.status));
    }

    #[test]
    fn removed_resources_are_removed_from_the_node_status() {
        let identity = identity();
        let mut facts = with_cpu("2");
        let gone = ResourceName::new("hugepages-2Mi");
        facts.capacity.insert(gone, "4Mi".parse().unwrap());
        let before = identity
            .initial(&facts, Timestamp::from_secs(1))
            .status
            .unwrap();
        let after = identity.status(&before, &with_cpu("2"), Timestamp::from_secs(2));
        let patch = status_patch(&before, &after.status);
        let expected = json!({ "cpu": "2", "hugepages-2Mi": null });
        assert_eq!(patch["status"]["capacity"], expected);
    }

    #[test]
    fn unchanged_fields_are_not_patched() {
        let mut identity = identity();
        let before = identity.initial(&with_cpu("2"), Timestamp::from_secs(1));
        let before = before.status.unwrap();
        let facts = NodeFacts {
            pressure: BTreeSet::from([NodeCondition::MemoryPressure]),
            ..with_cpu("2")
        };
        let now = Timestamp::from_secs(2);
        let patched = |after: &StatusUpdate| {
            let patch = status_patch(&before, &after.status);
            let fields = patch["status"].as_object().unwrap().keys().cloned();
            (fields.collect::<Vec<_>>(), patch)
        };
        let (fields, _) = patched(&identity.status(&before, &facts, now));
        assert_eq!(fields, ["conditions"]);
        identity.addresses = vec!["10.0.0.8".parse().unwrap()];
        let (fields, patch) = patched(&identity.status(&before, &facts, now));
        assert_eq!(fields, ["addresses", "conditions"]);
        let addresses = patch["status"]["addresses"].as_array().unwrap();
        assert_eq!(addresses.last(), Some(&json!({ "$patch": "replace" })));
    }

    #[test]
    fn own_labels_are_corrected_and_others_kept_on_registration() {
        let identity = identity();
        let mut existing = identity.initial(&with_cpu("2"), Timestamp::from_secs(1));
        let labels = existing.metadata.labels.as_mut().unwrap();
        labels.insert("team".to_owned(), "blue".to_owned());
        labels.insert("kubernetes.io/hostname".to_owned(), "other".to_owned());
        let stale = identity.stale_labels(&existing);
        let expected = ("kubernetes.io/hostname".to_owned(), "n1".to_owned());
        assert_eq!(stale, BTreeMap::from([expected]));
    }

    #[test]
    fn the_largest_images_are_listed() {
        let image = |size| ContainerImage {
            names: Some((0..9).map(|n| format!("{size}-{n}")).collect()),
            size_bytes: Some(size),
        };
        let images: Vec<_> = (0..80).map(image).collect();
        let listed = listed(&images);
        assert_eq!(listed.len(), 50);
        assert_eq!(listed[0].size_bytes, Some(79));
        assert_eq!(listed[0].names.as_ref().unwrap().len(), 5);
    }
}
