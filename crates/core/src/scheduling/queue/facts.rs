//! What the queue and its hints read of the objects that events are about.
//!
//! Each struct holds what some hint reads and nothing more. They are shared between the log of
//! events and the queues, and are therefore made once per version of an object and not changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::identity::{NodeName, PodRef, PodUid};
use crate::object::node::{Amounts, NodeView};
use crate::object::pod::{Overhead, PodView};
use crate::object::selector::{LabelSelector, RequiredNodeAffinity};
use crate::object::taint::Toleration;
use crate::resources::Resources;

/// A pod, pending or assigned.
#[derive(Clone, Debug, Default)]
pub struct PodFacts {
    /// Namespace and name, under which the queue keeps it.
    pub pod_ref: PodRef,
    /// Unique id.
    pub uid: PodUid,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Resolved priority; none counts as 0.
    pub priority: i32,
    /// The node it is bound to.
    pub node_name: Option<NodeName>,
    /// The node that a preemption set aside for it.
    pub nominated_node_name: Option<NodeName>,
    /// Names of the gates that keep it from being scheduled.
    pub scheduling_gates: Vec<String>,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// What it asks for. Of an assigned pod the values in its status count, where they are higher.
    pub requests: Amounts,
    /// The nodes it may go to; `None` is any.
    pub node_affinity: Option<RequiredNodeAffinity>,
    /// Ports of the host that its containers want.
    pub host_ports: Vec<HostPort>,
    /// Required terms of pod affinity.
    pub affinity: Vec<AffinityTerm>,
    /// Required terms of pod anti-affinity.
    pub anti_affinity: Vec<AffinityTerm>,
    /// Constraints with `DoNotSchedule`, its own or the default ones.
    pub spread: Vec<SpreadConstraint>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Names of its resource claims; `None` while one is still to be generated.
    pub resource_claims: Vec<Option<String>>,
    /// Features that a node has to declare to run it.
    pub required_features: BTreeSet<String>,
}

impl PodFacts {
    /// What a plain view of a pod tells; affinity, ports, volumes and the like are left empty.
    pub fn from_view(view: &PodView) -> PodFacts {
        let list = view.requests(Overhead::Included);
        PodFacts {
            pod_ref: view.pod_ref.clone(),
            uid: view.uid.clone(),
            labels: view.labels.clone(),
            priority: view.priority.unwrap_or(0),
            node_name: view.node_name.clone(),
            tolerations: view.tolerations.clone(),
            requests: Amounts {
                typed: Resources::from_list(&list),
                list,
            },
            ..PodFacts::default()
        }
    }

    /// Whether it takes up room on a node, or has room set aside on one.
    pub fn is_on_a_node(&self) -> bool {
        self.node_name.is_some() || self.nominated_node_name.is_some()
    }
}

/// A port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The address it is bound to; empty is all of them.
    pub ip: String,
    /// `TCP`, `UDP` or `SCTP`; empty is `TCP`.
    pub protocol: String,
    /// The number; none if not positive.
    pub port: i32,
}

impl HostPort {
    const ANY_ADDRESS: &str = "0.0.0.0";

    /// Whether one node cannot give both.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let (own, others) = (self.address(), other.address());
        self.port > 0
            && self.port == other.port
            && self.protocol_or_default() == other.protocol_or_default()
            && (own == others || own == Self::ANY_ADDRESS || others == Self::ANY_ADDRESS)
    }

    fn address(&self) -> &str {
        if self.ip.is_empty() {
            Self::ANY_ADDRESS
        } else {
            &self.ip
        }
    }

    fn protocol_or_default(&self) -> &str {
        if self.protocol.is_empty() {
            "TCP"
        } else {
            &self.protocol
        }
    }
}

/// One required term of pod affinity or anti-affinity.
#[derive(Clone, Debug)]
pub struct AffinityTerm {
    /// The label of nodes that makes a domain.
    pub topology_key: String,
    /// Namespaces given by name, or the pod's own.
    pub namespaces: BTreeSet<String>,
    /// Namespaces given by their labels.
    pub namespace_selector: LabelSelector,
    /// The pods it speaks of.
    pub selector: LabelSelector,
}

impl AffinityTerm {
    /// Whether it speaks of the pod, as far as can be told without the labels of namespaces.
    pub fn matches(&self, pod: &PodFacts) -> bool {
        let no_labels = BTreeMap::new();
        (self.namespaces.contains(&pod.pod_ref.namespace)
            || self.namespace_selector.matches(&no_labels))
            && self.selector.matches(&pod.labels)
    }
}

/// One constraint on how pods spread.
#[derive(Clone, Debug)]
pub struct SpreadConstraint {
    /// The label of nodes that makes a domain.
    pub topology_key: String,
    /// The pods that are counted, `matchLabelKeys` merged in.
    pub selector: LabelSelector,
    /// Whether nodes with taints that the pod does not tolerate are left out.
    pub honors_taints: bool,
}

/// Where a volume of a pod comes from; kinds that no hint asks about are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A claim.
    Claim {
        /// Its name.
        name: String,
    },
    /// A claim made for this pod.
    Ephemeral {
        /// Its name.
        claim_name: String,
    },
    /// A volume that a driver makes for the pod.
    Csi {
        /// The driver.
        driver: String,
    },
    /// A Google disk.
    GcePersistentDisk {
        /// Its name.
        name: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// An Amazon disk.
    AwsElasticBlockStore {
        /// Its id.
        volume_id: String,
    },
    /// An iSCSI target.
    Iscsi {
        /// Its name.
        iqn: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// A Ceph block device.
    Rbd {
        /// The monitors of its cluster.
        monitors: BTreeSet<String>,
        /// The pool.
        pool: String,
        /// The image.
        image: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// Another kind that a driver has taken over.
    Migrated {
        /// The driver.
        driver: String,
    },
}

impl Volume {
    /// The claim that the pod waits for.
    pub fn claim_name(&self) -> Option<&str> {
        match self {
            Volume::Claim { name } => Some(name),
            Volume::Ephemeral { claim_name } => Some(claim_name),
            _ => None,
        }
    }

    /// The driver that serves a kind which was once built in.
    pub fn migrated_driver(&self) -> Option<&str> {
        match self {
            Volume::GcePersistentDisk { .. } => Some("pd.csi.storage.gke.io"),
            Volume::AwsElasticBlockStore { .. } => Some("ebs.csi.aws.com"),
            Volume::Migrated { driver } => Some(driver),
            _ => None,
        }
    }
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// What all decisions read.
    pub view: NodeView,
    /// The features it declares, in order.
    pub declared_features: Vec<String>,
}

/// A persistent volume.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolumeFacts {
    /// Labels, among them those of its zones.
    pub labels: BTreeMap<String, String>,
}

/// A claim for a volume.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolumeClaimFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A storage class.
#[derive(Clone, Debug, Default)]
pub struct StorageClassFacts {
    /// Whether binding waits for the first pod.
    pub waits_for_first_consumer: bool,
    /// Where volumes may be, term by term: labels and their values.
    pub allowed_topologies: Vec<Vec<(String, Vec<String>)>>,
}

/// What a node's storage drivers can do.
#[derive(Clone, Debug, Default)]
pub struct CsiNodeFacts {
    /// How many volumes each driver can attach; none stated is 0.
    pub limits: BTreeMap<String, i32>,
    /// The annotation that lists kinds of volumes which drivers have taken over.
    pub migrated_plugins: Option<String>,
}

/// A storage driver.
#[derive(Clone, Debug, Default)]
pub struct CsiDriverFacts {
    /// Its name.
    pub name: String,
    /// Whether free space is asked for before a volume is made.
    pub tracks_capacity: bool,
}

/// How much a driver can still give somewhere.
#[derive(Clone, Debug, Default)]
pub struct CsiStorageCapacityFacts {
    /// The largest volume in bytes, or else the free space; `None` if neither is stated.
    pub volume_limit: Option<i64>,
}

/// A volume attached to a node.
#[derive(Clone, Debug, Default)]
pub struct VolumeAttachmentFacts {
    /// The driver.
    pub attacher: String,
}

/// A claim for devices.
#[derive(Clone, Debug, Default)]
pub struct ResourceClaimFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether devices are allocated to it.
    pub is_allocated: bool,
    /// The whole status, to see whether anything in it changed.
    pub status: serde_json::Value,
}

/// A class of devices.
#[derive(Clone, Debug, Default)]
pub struct DeviceClassFacts {
    /// Its name.
    pub name: String,
    /// The extended resource under which pods may ask for its devices.
    pub extended_resource_name: Option<String>,
}
