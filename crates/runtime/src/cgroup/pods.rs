//! The cgroups of pods.

use std::collections::BTreeMap;

use plimsoll_core::cgroup::conversion::MIN_SHARES;
use plimsoll_core::cgroup::pod::{PodSettings, pod_config};
use plimsoll_core::cgroup::{CgroupName, CgroupPath, PlannedCgroup, ResourceConfig};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::pod::{PodView, QosClass};

use super::error::Error;
use super::kill::subdirectories;
use super::tree::Cgroups;

const CLASSES: [QosClass; 3] = [
    QosClass::BestEffort,
    QosClass::Burstable,
    QosClass::Guaranteed,
];

impl Cgroups {
    /// The cgroup of a pod.
    pub fn pod_name(&self, pod: &PodView) -> Result<CgroupName, Error> {
        Ok(CgroupName::pod(
            &self.kubepods(),
            pod.qos_class(),
            &pod.uid,
        )?)
    }

    /// Makes the cgroup of a pod and writes its limits. A cgroup that is there is left alone, as
    /// upstream does: its limits change by resize only.
    pub fn ensure_pod(&self, pod: &PodView, settings: &PodSettings) -> Result<CgroupName, Error> {
        let name = self.pod_name(pod)?;
        if !self.exists(&name) {
            self.apply(&PlannedCgroup {
                path: self.path(&name),
                name: name.clone(),
                config: pod_config(pod, settings),
                is_foreign: false,
            })?;
        }
        Ok(name)
    }

    /// Keeps what is left of a pod from taking cpu from others, until its volumes are gone and the
    /// cgroup with them.
    pub fn reduce_cpu(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        let config = ResourceConfig {
            cpu_shares: Some(MIN_SHARES),
            ..ResourceConfig::default()
        };
        self.write(cgroup, &config).map(|_| ())
    }

    /// The pods that have a cgroup in any tree, whatever created it. After a restart those that
    /// should not run are found so.
    pub fn found_pods(&self) -> Result<BTreeMap<PodUid, CgroupName>, Error> {
        let kubepods = self.kubepods();
        let mut found = BTreeMap::new();
        for class in CLASSES {
            let tier = CgroupName::qos_tier(&kubepods, class);
            let tier_path = self.path(&tier);
            for directory in self.layout.directories(&tier_path) {
                for child in subdirectories(&directory)? {
                    let name = child.file_name().and_then(|name| name.to_str());
                    let name = name.and_then(|name| self.named(&tier_path, name));
                    if let Some(name) = name
                        && let Some(uid) = name.pod_uid()
                    {
                        found.insert(uid, name);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Thaws a pod that was frozen or has frozen itself, whatever its QoS class.
    pub fn thaw_pod(&self, uid: &PodUid) -> Result<(), Error> {
        for class in CLASSES {
            let name = CgroupName::pod(&self.kubepods(), class, uid)?;
            self.thaw(&self.path(&name));
        }
        Ok(())
    }

    /// Removes the cgroup of a pod, whatever its QoS class, and kills the processes in it.
    pub fn remove_pod(&self, uid: &PodUid) -> Result<(), Error> {
        for class in CLASSES {
            let name = CgroupName::pod(&self.kubepods(), class, uid)?;
            self.remove(&self.path(&name))?;
        }
        Ok(())
    }

    /// The unknown pods with a cgroup that has no process. If it has one, the runtime knows the
    /// pod, or the cgroup is not this agent's.
    pub fn empty_pods(&self, is_known: impl Fn(&PodUid) -> bool) -> Result<Vec<PodUid>, Error> {
        let mut empty = Vec::new();
        let found = self.found_pods()?.into_iter();
        for (uid, name) in found.filter(|(uid, _)| !is_known(uid)) {
            if self.pids(&self.path(&name))?.is_empty() {
                empty.push(uid);
            }
        }
        Ok(empty)
    }

    /// The name of a directory in a cgroup, if the driver would give it that directory.
    fn named(&self, parent: &CgroupPath, directory: &str) -> Option<CgroupName> {
        let path = format!("{parent}/{directory}");
        let name = CgroupName::parse(&path, self.driver);
        (self.path(&name).as_str() == path).then_some(name)
    }
}
