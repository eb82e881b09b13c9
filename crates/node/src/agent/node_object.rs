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
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::allocatable::{
    Allocatable, DevicePlugins, Machine, NodeResources, Settings, compute_allocatable,
};
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::taint::Taint;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::object::{parse_resource_list, render_resource_list};
use serde_json::{Map, Value, json};

use super::conditions::compute_conditions;
use super::system_info::architecture;

/// How many names of one image a status lists.
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
    /// Empty for none.
    pub(super) provider_id: String,
    /// How many images a status lists (`nodeStatusMaxImages`); `None` for all.
    pub(super) max_images: Option<usize>,
    pub(super) system: NodeSystemInfo,
}

/// What does.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeReadings {
    /// The resources of the machine.
    pub(super) machine: Machine,
    /// The reservations.
    pub(super) settings: Settings,
    /// The resources of device plugins.
    pub(super) devices: DevicePlugins,
    pub(super) images: Vec<ContainerImage>,
    /// Pressure conditions that hold.
    pub(super) pressure: BTreeSet<NodeCondition>,
    /// What keeps the node from being ready.
    pub(super) not_ready: Vec<String>,
}

impl NodeReadings {
    /// Capacity and allocatable. Resources that others have added to the capacity in the API stay, and
    /// are allocatable as a whole.
    fn resources(&self, previous: &NodeStatus) -> Allocatable {
        // Quantities that cannot be read are dropped: the API server accepts none.
        let mut unreadable = Vec::new();
        let mut read = |list| {
            let list = parse_resource_list("status", list, &mut unreadable);
            // Sizes of huge pages that the kernel no longer has do not stay.
            list.filtered(|name| name.huge_page_size().is_none())
        };
        let previous = NodeResources {
            capacity: read(previous.capacity.as_ref()),
            allocatable: read(previous.allocatable.as_ref()),
        };
        compute_allocatable(&self.machine, &self.settings, &self.devices, &previous)
    }
}

impl NodeIdentity {
    /// The object a node registers with.
    pub(super) fn initial(&self, facts: &NodeReadings, now: Timestamp) -> Node {
        let status = self.status(&NodeStatus::default(), facts, now).status;
        let taints: Vec<ApiTaint> = self.taints.iter().map(render_taint).collect();
        let provider_id = Some(self.provider_id.clone()).filter(|id| !id.is_empty());
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
            spec: (!taints.is_empty() || provider_id.is_some()).then(|| NodeSpec {
                taints: (!taints.is_empty()).then_some(taints),
                provider_id,
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
        facts: &NodeReadings,
        now: Timestamp,
    ) -> StatusUpdate {
        let conditions = compute_conditions(
            previous.conditions.as_deref().unwrap_or_default(),
            &facts.pressure,
            &facts.not_ready,
            now,
        );
        let resources = facts.resources(previous);
        let status = NodeStatus {
            addresses: Some(self.addresses()),
            allocatable: render_resource_list(&resources.allocatable()),
            capacity: render_resource_list(&resources.capacity()),
            conditions: Some(conditions.list),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint {
                    port: i32::from(self.port),
                }),
            }),
            images: Some(listed(&facts.images, self.max_images)),
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
fn listed(images: &[ContainerImage], most: Option<usize>) -> Vec<ContainerImage> {
    let mut images = images.to_vec();
    images.sort_by(|a, b| {
        let largest_first = b.size_bytes.cmp(&a.size_bytes);
        largest_first.then_with(|| a.names.cmp(&b.names))
    });
    images.truncate(most.unwrap_or(usize::MAX));
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
        let changed = changed_resources(before.as_ref(), after.as_ref());
        if let Some(fields) = status.as_object_mut() {
            match changed.is_empty() {
                true => fields.remove(field),
                false => fields.insert(field.to_owned(), Value::Object(changed)),
            };
        }
    }
    json!({ "status": status })
}

/// The resources that differ; null for those that are gone. The others are left out, since they may
/// be changed in the API at the same time.
fn changed_resources(
    before: Option<&BTreeMap<String, Quantity>>,
    after: Option<&BTreeMap<String, Quantity>>,
) -> Map<String, Value> {
    let value = |list: Option<&BTreeMap<String, Quantity>>, name: &String| {
        list.and_then(|list| list.get(name))
            .map(|quantity| json!(quantity))
    };
    let names: BTreeSet<&String> = [before, after]
        .into_iter()
        .flatten()
        .flat_map(BTreeMap::keys)
        .collect();
    let changed = names.into_iter().filter_map(|name| {
        let after = value(after, name);
        let is_changed = value(before, name) != after;
        is_changed.then(|| (name.clone(), after.unwrap_or_default()))
    });
    changed.collect()
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
    use plimsoll_core::allocatable::HugePages;
    use plimsoll_core::resources::{Bytes, ResourceName};

    use super::*;

    fn identity() -> NodeIdentity {
        NodeIdentity {
            name: "n1".to_owned(),
            hostname: "n1".to_owned(),
            addresses: vec!["10.0.0.7".parse().unwrap()],
            port: 10250,
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            provider_id: String::new(),
            max_images: Some(50),
            taints: Vec::new(),
            system: NodeSystemInfo::default(),
        }
    }

    fn with_cores(cores: i64) -> NodeReadings {
        NodeReadings {
            machine: Machine {
                cores,
                memory: Bytes(4 << 30),
                ..Machine::default()
            },
            ..NodeReadings::default()
        }
    }

    fn listed_as(status: &NodeStatus, resource: &str) -> [Option<String>; 2] {
        [&status.capacity, &status.allocatable].map(|list| {
            let quantity = list.as_ref().and_then(|list| list.get(resource));
            quantity.map(|quantity| quantity.0.clone())
        })
    }

    /// The status as it is after the patch was applied.
    fn merged(previous: &NodeStatus, next: &NodeStatus) -> NodeStatus {
        let mut merged = json!(previous);
        let patch = status_patch(previous, next);
        for field in ["capacity", "allocatable"] {
            for (name, value) in patch["status"][field].as_object().into_iter().flatten() {
                match value {
                    Value::Null => {
                        merged[field].as_object_mut().unwrap().remove(name);
                    }
                    value => merged[field][name] = value.clone(),
                }
            }
        }
        serde_json::from_value(merged).unwrap()
    }

    #[test]
    fn extended_resources_of_others_stay_and_are_allocatable() {
        let (identity, facts) = (identity(), with_cores(2));
        let first = identity.initial(&facts, Timestamp::from_secs(1));
        let mut status = first.status.unwrap();
        let capacity = status.capacity.as_mut().unwrap();
        capacity.insert("example.com/foo".to_owned(), Quantity("3".to_owned()));
        for seconds in [11, 21] {
            let next = identity.status(&status, &facts, Timestamp::from_secs(seconds));
            status = merged(&status, &next.status);
            let three = Some("3".to_owned());
            assert_eq!(
                listed_as(&status, "example.com/foo"),
                [three.clone(), three]
            );
        }
        // Whoever takes it out of the capacity takes it out of allocatable too.
        status.capacity.as_mut().unwrap().remove("example.com/foo");
        let next = identity.status(&status, &facts, Timestamp::from_secs(31));
        assert!(is_news(&status, &next.status));
        status = merged(&status, &next.status);
        assert_eq!(listed_as(&status, "example.com/foo"), [None, None]);
    }

    #[test]
    fn resources_of_device_plugins_are_listed_and_zero_when_the_plugin_is_gone() {
        let (identity, mut facts) = (identity(), with_cores(2));
        let gpu = ResourceName::new("example.com/gpu");
        facts
            .devices
            .capacity
            .insert(gpu.clone(), "4".parse().unwrap());
        facts
            .devices
            .allocatable
            .insert(gpu.clone(), "3".parse().unwrap());
        let first = identity.initial(&facts, Timestamp::from_secs(1));
        let first = first.status.unwrap();
        let texts = |texts: [&str; 2]| texts.map(|text| Some(text.to_owned()));
        assert_eq!(listed_as(&first, "example.com/gpu"), texts(["4", "3"]));
        facts.devices = DevicePlugins {
            removed: vec![gpu],
            ..DevicePlugins::default()
        };
        let next = identity.status(&first, &facts, Timestamp::from_secs(11));
        let next = merged(&first, &next.status);
        assert_eq!(listed_as(&next, "example.com/gpu"), texts(["0", "0"]));
    }

    #[test]
    fn status_with_only_newer_heartbeats_is_unchanged() {
        let identity = identity();
        let facts = with_cores(2);
        let first = identity.initial(&facts, Timestamp::from_secs(1));
        let first = first.status.unwrap();
        let second = identity.status(&first, &facts, Timestamp::from_secs(11));
        assert!(!is_news(&first, &second.status));
        let third = identity.status(&first, &with_cores(1), Timestamp::from_secs(11));
        assert!(is_news(&first, &third.status));
    }

    #[test]
    fn removed_resources_are_removed_from_the_node_status() {
        let identity = identity();
        let mut facts = with_cores(2);
        facts.machine.huge_pages = vec![HugePages {
            page_size: Bytes(2 << 20),
            count: 2,
        }];
        let before = identity
            .initial(&facts, Timestamp::from_secs(1))
            .status
            .unwrap();
        let after = identity.status(&before, &with_cores(2), Timestamp::from_secs(2));
        let patch = status_patch(&before, &after.status);
        let expected = json!({ "hugepages-2Mi": null });
        assert_eq!(patch["status"]["capacity"], expected);
    }

    #[test]
    fn unchanged_fields_are_not_patched() {
        let mut identity = identity();
        let before = identity.initial(&with_cores(2), Timestamp::from_secs(1));
        let before = before.status.unwrap();
        let facts = NodeReadings {
            pressure: BTreeSet::from([NodeCondition::MemoryPressure]),
            ..with_cores(2)
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
        let mut existing = identity.initial(&with_cores(2), Timestamp::from_secs(1));
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
        let listed = listed(&images, Some(50));
        assert_eq!(listed.len(), 50);
        assert_eq!(listed[0].size_bytes, Some(79));
        assert_eq!(listed[0].names.as_ref().unwrap().len(), 5);
    }
}
