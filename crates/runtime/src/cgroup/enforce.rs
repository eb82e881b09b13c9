//! The cgroups of a node by its configuration: made at start, kept while it runs.
//!
//! The order at start is upstream's: [`NodeCgroups::set_up`], then [`NodeCgroups::enforce_pods`],
//! again each minute until it works, then [`NodeCgroups::enforce_reserved`], which a node does not
//! start without. Matches v1.36 pkg/kubelet/cm/node_container_manager_linux.go.

use std::error::Error as StdError;
use std::time::Duration;

use plimsoll_core::allocatable::Allocatable;
use plimsoll_core::cgroup::node::{Enforced, reserved_config, resource_config};
use plimsoll_core::cgroup::pod::PodSettings;
use plimsoll_core::cgroup::{
    CgroupName, CgroupPath, ReservedCgroup, ResourceConfig, TierSettings, compute_qos_tiers,
};
use plimsoll_core::config::{Enforcement as Setting, NodeConfig};
use plimsoll_core::object::pod::{PodView, QosClass};
use plimsoll_core::problem::quoted;
use plimsoll_core::resources::{Bytes, ResourceName};

use super::error::Error;
use super::refusal::{Refusal, go_list};
use super::settings::{pod_settings, reserved_cgroups, tier_settings};
use super::tree::Cgroups;

/// The cgroups of a node by its configuration.
#[derive(Clone, Debug)]
pub struct NodeCgroups {
    cgroups: Cgroups,
    pods: PodSettings,
    tiers: TierSettings,
    /// What all pods may have together.
    all_pods: ResourceConfig,
    reserved: Vec<Reserved>,
    is_per_qos: bool,
}

#[derive(Clone, Debug)]
struct Reserved {
    setting: Setting,
    /// The name as configured.
    configured: String,
    cgroup: ReservedCgroup,
}

/// An event on the node object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// Normal or Warning.
    pub kind: EventKind,
    /// In one word.
    pub reason: &'static str,
    /// In full.
    pub message: String,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

/// How writing the limit of all pods went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It is written.
    Done(NodeEvent),
    /// It is not, perhaps because pods use more; try again after [`Enforcement::RETRY_AFTER`].
    Retry(NodeEvent),
}

impl Enforcement {
    /// How long to wait before trying again.
    pub const RETRY_AFTER: Duration = Duration::from_secs(60);
}

const ENFORCED: &str = "NodeAllocatableEnforced";
const NOT_ENFORCED: &str = "FailedNodeAllocatableEnforcement";

impl NodeCgroups {
    /// The cgroups that the configuration requires. `cpus` are those of the machine (`0-3`), where
    /// no CPU manager shares them out.
    pub fn new(
        cgroups: Cgroups,
        config: &NodeConfig,
        allocatable: &Allocatable,
        cpus: Option<String>,
    ) -> NodeCgroups {
        let absolute = allocatable.absolute();
        let memory = absolute.get(&ResourceName::MEMORY);
        let memory = memory.map_or(Bytes::ZERO, Bytes::from_quantity);
        let with_name = |(setting, cgroup): (Setting, ReservedCgroup)| {
            let configured = match setting {
                Setting::SystemReserved | Setting::SystemReservedCompressible => {
                    &config.system_reserved_cgroup
                }
                _ => &config.kube_reserved_cgroup,
            };
            Reserved {
                setting,
                configured: configured.value.clone(),
                cgroup,
            }
        };
        let reserved = reserved_cgroups(config, cgroups.driver());
        NodeCgroups {
            pods: pod_settings(config, cgroups.version()),
            tiers: tier_settings(config, cgroups.host(), memory),
            all_pods: ResourceConfig {
                cpuset: cpus,
                ..resource_config(&allocatable.cgroup_limits(), Enforced::All)
            },
            reserved: reserved.into_iter().map(with_name).collect(),
            is_per_qos: *config.cgroups_per_qos,
            cgroups,
        }
    }

    /// The cgroups without the configuration.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// The cgroup that all pods are in: `cgroupRoot` itself where pods have no cgroups.
    pub fn all_pods_path(&self) -> CgroupPath {
        match self.is_per_qos {
            true => self.cgroups.path(&self.cgroups.kubepods()),
            false => self.cgroups.path(self.cgroups.root()),
        }
    }

    /// The tiers inside it.
    pub fn tier_paths(&self) -> Vec<CgroupPath> {
        let kubepods = self.cgroups.kubepods();
        let tier = |class| self.cgroups.path(&CgroupName::qos_tier(&kubepods, class));
        match self.is_per_qos {
            true => vec![tier(QosClass::Burstable), tier(QosClass::BestEffort)],
            false => Vec::new(),
        }
    }

    /// What of the configuration shapes pod cgroups.
    pub fn pod_settings(&self) -> &PodSettings {
        &self.pods
    }

    /// Makes the cgroup of all pods and the tiers. A limit that cannot be written yet does not
    /// matter here; [`NodeCgroups::enforce_pods`] says so.
    pub fn set_up(&self, active: &[PodView]) -> Result<(), Error> {
        if !self.is_per_qos {
            return Ok(());
        }
        let kubepods = self.cgroups.kubepods();
        let is_new = !self.cgroups.exists(&kubepods);
        let path = self.cgroups.path(&kubepods);
        self.cgroups.create(&path)?;
        if is_new && let Err(error) = self.cgroups.write(&path, &self.all_pods_config(active)) {
            tracing::warn!(cgroup = %path, error = %chain(&error), "failed to write cgroup limits");
        }
        for class in [QosClass::Burstable, QosClass::BestEffort] {
            let tier = CgroupName::qos_tier(&kubepods, class);
            self.cgroups.create(&self.cgroups.path(&tier))?;
        }
        let without_reservation = TierSettings {
            reserved_memory_percent: None,
            ..self.tiers.clone()
        };
        self.cgroups.update_tiers(active, &without_reservation)?;
        if let Err(error) = self.update_tiers(active) {
            tracing::warn!(error = %chain(&error), "failed to reserve memory of higher QoS classes");
        }
        Ok(())
    }

    /// Writes the tiers. To be called when pods come or go and each
    /// [`QOS_UPDATE_PERIOD`](super::QOS_UPDATE_PERIOD).
    pub fn update_tiers(&self, active: &[PodView]) -> Result<(), Error> {
        if !self.is_per_qos {
            return Ok(());
        }
        self.cgroups.update_tiers(active, &self.tiers)
    }

    /// Makes the cgroup of a pod; `None` where pods have none.
    pub fn ensure_pod(&self, pod: &PodView) -> Result<Option<CgroupName>, Error> {
        if !self.is_per_qos {
            return Ok(None);
        }
        self.cgroups.ensure_pod(pod, &self.pods).map(Some)
    }

    /// Writes the limit of all pods.
    pub fn enforce_pods(&self, active: &[PodView]) -> Enforcement {
        let kubepods = self.cgroups.kubepods();
        let path = self.cgroups.path(&kubepods);
        let written = match self.is_per_qos {
            true => self.cgroups.write(&path, &self.all_pods_config(active)),
            false => Ok(Vec::new()),
        };
        match written {
            Ok(_) => Enforcement::Done(NodeEvent::normal(
                "Updated Node Allocatable limit across pods".to_owned(),
            )),
            Err(error) => Enforcement::Retry(NodeEvent::warning(format!(
                "Failed to update Node Allocatable Limits {}: {}",
                go_list(&kubepods),
                chain(&error)
            ))),
        }
    }

    /// Writes reservations into the operator's cgroups, up to the first that fails: its event is
    /// the error, and its message the reason not to start.
    pub fn enforce_reserved(&self) -> Result<Vec<NodeEvent>, NodeEvent> {
        let enforce = |reserved: &Reserved| {
            let configured = &reserved.configured;
            let (title, name) = match reserved.setting {
                Setting::SystemReserved => ("System Reserved", "system reserved"),
                Setting::SystemReservedCompressible => {
                    ("System Reserved Compressible", "system reserved")
                }
                Setting::KubeReservedCompressible => {
                    ("Kube Reserved Compressible", "kube reserved")
                }
                _ => ("Kube Reserved", "kube reserved"),
            };
            match self.enforce_existing(&reserved.cgroup) {
                Ok(()) => Ok(NodeEvent::normal(format!(
                    "Updated limits on {name} cgroup {configured}"
                ))),
                Err(reason) => Err(NodeEvent::warning(format!(
                    "Failed to enforce {title} Cgroup Limits on {}: {reason}",
                    quoted(configured)
                ))),
            }
        };
        self.reserved.iter().map(enforce).collect()
    }

    fn enforce_existing(&self, reserved: &ReservedCgroup) -> Result<(), String> {
        let name = &reserved.name;
        let config = reserved_config(
            &reserved.reservation,
            reserved.enforced,
            self.tiers.memory_qos,
        );
        let Some(config) = config else {
            let cgroup = name.clone();
            return Err(chain(&Refusal::NothingReserved { cgroup }));
        };
        self.cgroups.validate(name).map_err(|error| chain(&error))?;
        let written = self.cgroups.write(&self.cgroups.path(name), &config);
        written.map(|_| ()).map_err(|error| chain(&error))
    }

    fn all_pods_config(&self, active: &[PodView]) -> ResourceConfig {
        let tiers = compute_qos_tiers(active, &self.tiers);
        self.all_pods.clone().overlaid_with(tiers.guaranteed)
    }
}

impl NodeEvent {
    fn normal(message: String) -> NodeEvent {
        NodeEvent {
            kind: EventKind::Normal,
            reason: ENFORCED,
            message,
        }
    }

    fn warning(message: String) -> NodeEvent {
        NodeEvent {
            kind: EventKind::Warning,
            reason: NOT_ENFORCED,
            message,
        }
    }
}

/// An error with its causes, for messages that have no place for a chain.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
