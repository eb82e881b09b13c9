//! The pods on the node and what they use at this moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::config::Profile;
use plimsoll_core::eviction::usage::{ContainerUsage, MemoryUsage, PodUsage};
use plimsoll_core::eviction::{ActivePod, Candidate, Remains};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::cgroup::{Cgroups, Layout};

use super::gauge::{CgroupMemory, OomKills, Reading};
use super::target::{Target, Targets};
use crate::pods::KillNotice;
use crate::pods::reports::Report;

/// What may stay behind in the cgroup of a pod without processes and is not worth waiting for:
/// the kernel's own records of it.
const RESIDUE: u64 = 4 << 20;

/// The pods on the node.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pods: BTreeMap<PodUid, Entry>,
    targets: Targets,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Entry {
    candidate: Candidate,
    cgroup: CgroupPath,
    resource_version: Option<String>,
    status: Arc<PodStatus>,
    /// By name; none for one whose container has not said its id.
    containers: Vec<(Option<String>, CgroupMemory)>,
    memory: CgroupMemory,
    usage: PodUsage,
}

impl Roster {
    /// Takes the pods there are. Pods of which nothing is left are forgotten.
    pub(super) fn update(
        &mut self,
        reports: Vec<Report>,
        cgroups: &Cgroups,
        profile: Profile,
        reading: &mut Reading,
        notice: impl Fn(&PodUid) -> Option<Arc<KillNotice>>,
    ) {
        let mut pods = BTreeMap::new();
        let mut targets = Targets::new();
        for report in reports.into_iter().filter(|report| !report.is_finished) {
            let uid = PodUid::new(report.pod.metadata.uid.as_deref().unwrap_or_default());
            let known = self.pods.remove(&uid).zip(self.targets.remove(&uid));
            let is_same = |known: &Entry| {
                known.resource_version == report.pod.metadata.resource_version
                    && Arc::ptr_eq(&known.status, &report.status)
            };
            let found = match known {
                Some((known, target)) if is_same(&known) => Some((known, target)),
                known => Entry::new(&report, cgroups, profile).map(|(mut entry, oom_kills)| {
                    let mut target =
                        Target::new(cgroups.kill_handle(&entry.cgroup), oom_kills, || {
                            notice(&uid)
                        });
                    if let Some((known, before)) = known {
                        entry.usage = known.usage;
                        target.succeed(&before);
                    }
                    (entry, target)
                }),
            };
            if let Some((entry, mut target)) = found {
                target.get_ready(reading);
                targets.insert(uid.clone(), target);
                pods.insert(uid, entry);
            }
        }
        self.pods = pods;
        self.targets = targets;
    }

    /// Takes what a full measurement says.
    pub(super) fn take_usages(&mut self, usages: &BTreeMap<PodUid, PodUsage>) {
        for (uid, entry) in &mut self.pods {
            if let Some(usage) = usages.get(uid) {
                entry.usage = usage.clone();
            }
        }
    }

    /// Reads the memory of every pod; returns whether the kernel's OOM killer killed in one of them
    /// since the last look.
    pub(super) fn measure(&mut self, reading: &mut Reading, cgroups: &Cgroups) -> bool {
        let mut was_oom_killed = false;
        for entry in self.pods.values_mut() {
            entry.measure(reading, cgroups);
        }
        for target in self.targets.values_mut() {
            target.get_ready(reading);
            was_oom_killed |= target.was_oom_killed(reading);
        }
        was_oom_killed
    }

    /// Reads the memory of one pod; returns what is left of it.
    pub(super) fn remains(
        &mut self,
        uid: &PodUid,
        reading: &mut Reading,
        cgroups: &Cgroups,
    ) -> Remains {
        let Some(entry) = self.pods.get_mut(uid) else {
            return Remains::Nothing;
        };
        entry.measure(reading, cgroups);
        match entry.usage.working_set() > Bytes::ZERO {
            true => Remains::Memory,
            false => Remains::NoMemory,
        }
    }

    /// As the engine takes them, and what it takes to kill them.
    pub(super) fn active(&mut self) -> (Vec<ActivePod<'_>>, &mut Targets) {
        let pods = self.pods.values().map(|entry| ActivePod {
            candidate: &entry.candidate,
            usage: Some(&entry.usage),
        });
        (pods.collect(), &mut self.targets)
    }

    pub(super) fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}

impl Entry {
    /// With the counter of the kernel's kills in it. `None` for a pod that has no place in the
    /// cgroups.
    fn new(report: &Report, cgroups: &Cgroups, profile: Profile) -> Option<(Entry, OomKills)> {
        let view = PodView::from_api(&report.pod).ok()?;
        let cgroup = cgroups.path(&cgroups.pod_name(&view).ok()?);
        let layout = cgroups.layout();
        let inside = children(layout, &cgroup);
        let names = container_names(&report.status);
        let containers = inside.iter().map(|child| {
            let folder = child.as_str().rsplit('/').next().unwrap_or_default();
            let found = names.iter().find(|(id, _)| folder.contains(id));
            let name = found.map(|(_, name)| (*name).to_owned());
            (name, CgroupMemory::new(layout, child))
        });
        let mut counted = vec![cgroup.clone()];
        let containers = containers.collect();
        counted.extend(inside);
        // A pod that has ended already is not evicted again, whichever signal ranks it first.
        let mut candidate = Candidate::new(&view, profile);
        candidate.is_exempt |= !report.may_run;
        let entry = Entry {
            candidate,
            memory: CgroupMemory::new(layout, &cgroup),
            cgroup,
            resource_version: report.pod.metadata.resource_version.clone(),
            status: Arc::clone(&report.status),
            containers,
            usage: PodUsage::default(),
        };
        Some((entry, OomKills::new(layout, &counted)))
    }

    /// Reads its memory.
    fn measure(&mut self, reading: &mut Reading, cgroups: &Cgroups) {
        let amounts = self.memory.read(reading).unwrap_or_default();
        let mut working_set = amounts.working_set();
        if working_set > 0 && working_set <= RESIDUE && is_empty(cgroups, &self.cgroup) {
            working_set = 0;
        }
        // A pod without a cgroup uses nothing; that is known, not unknown.
        self.usage.memory = Some(MemoryUsage {
            working_set: Some(bytes(working_set)),
        });
        for (name, memory) in &mut self.containers {
            let (Some(name), Some(amounts)) = (name, memory.read(reading)) else {
                continue;
            };
            let used = Some(bytes(amounts.working_set()));
            let known = self.usage.containers.iter_mut();
            match known.into_iter().find(|known| known.name == *name) {
                Some(known) => known.memory = used,
                None => self.usage.containers.push(ContainerUsage {
                    name: name.clone(),
                    memory: used,
                    ..ContainerUsage::default()
                }),
            }
        }
    }
}

fn bytes(number: u64) -> Bytes {
    Bytes(i64::try_from(number).unwrap_or(i64::MAX))
}

fn is_empty(cgroups: &Cgroups, cgroup: &CgroupPath) -> bool {
    cgroups.pids(cgroup).is_ok_and(|pids| pids.is_empty())
}

pub(super) fn children(layout: &Layout, cgroup: &CgroupPath) -> Vec<CgroupPath> {
    let Some(directory) = layout.directory("memory", cgroup) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let paths = folders.filter_map(|entry| {
        let name = entry.file_name();
        CgroupPath::parse(&format!("{}/{}", cgroup.as_str(), name.to_str()?)).ok()
    });
    paths.collect()
}

/// Ids of containers, without the runtime's name in front, and their names.
fn container_names(status: &PodStatus) -> Vec<(&str, &str)> {
    let lists = [
        &status.container_statuses,
        &status.init_container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let statuses = lists.into_iter().flatten().flatten();
    let named = statuses.filter_map(|status: &ContainerStatus| {
        let (_, id) = status.container_id.as_deref()?.split_once("://")?;
        (!id.is_empty()).then_some((id, status.name.as_str()))
    });
    named.collect()
}
