//! Looking for what a node has left on the machine. Changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupPath, Driver};
use plimsoll_core::error_chain::error_chain;
use plimsoll_core::object::identity::PodUid;
use plimsoll_runtime::cgroup::{Cgroups, Refusal};
use plimsoll_runtime::cri::{self, Cri};
use plimsoll_runtime::embedded;
use plimsoll_runtime::mount_table::MountTable;
use plimsoll_runtime::sysctl::Sysctls;
use plimsoll_runtime::wire::PodSandboxState;

use super::findings::{Findings, Kind};
use super::footprint::{Footprint, Runtime};
use super::pods::{Ownership, pod_name, sandboxes};
use super::{Options, Scope, data, holder};

/// What was found, and what could not be looked at.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// What was found.
    pub findings: Findings,
    /// What could not be looked at, and why.
    pub problems: Vec<String>,
    /// The pods of the node, by uid.
    pub(super) pods: BTreeSet<PodUid>,
}

/// Looks for everything that the node has on the machine.
pub(super) async fn take(options: &Options, footprints: &[Footprint]) -> Survey {
    let mut survey = Survey::default();
    match holder::holders(&options.data_dir) {
        Ok(holders) => {
            let names = holders.iter().map(ToString::to_string);
            survey.findings.extend(Kind::Process, names);
        }
        Err(error) => survey.fail("cannot look for processes", &error),
    }
    survey.embedded(&options.data_dir);
    for footprint in footprints {
        survey.footprint(options, footprint).await;
    }
    survey.mounts(options, footprints);
    if options.scope == Scope::Everything {
        survey.data(options);
    }
    survey
}

impl Survey {
    fn fail(&mut self, doing: &str, error: &dyn std::error::Error) {
        let error = error_chain(error);
        self.problems.push(format!("{doing}: {error}"));
    }

    /// Pods of the agent's own runtime.
    fn embedded(&mut self, data_dir: &Path) {
        let remains = match embedded::remains(&runtime_dir(data_dir)) {
            Ok(remains) => remains,
            Err(error) => return self.fail("cannot read the runtime's directory", &error),
        };
        for sandbox in &remains.sandboxes {
            let name = match sandbox.name.as_str() {
                "" => format!("of sandbox {}", sandbox.id),
                name => format!("{}/{name}", sandbox.namespace),
            };
            let kind = match sandbox.is_running {
                true => Kind::Pod,
                false => Kind::EndedPod,
            };
            self.findings.add(kind, name);
            if !sandbox.uid.is_empty() {
                self.pods.insert(PodUid::new(&sandbox.uid));
            }
            let card = embedded::has_card(&sandbox.id);
            self.findings.extend(Kind::NetworkCard, card);
        }
    }

    async fn footprint(&mut self, options: &Options, footprint: &Footprint) {
        let folders = fs::read_dir(footprint.root.join("pods"));
        let folders = folders.into_iter().flatten().flatten();
        let uids = folders.filter_map(|entry| entry.file_name().into_string().ok());
        self.pods.extend(uids.map(PodUid::new));
        match &footprint.runtime {
            Runtime::Embedded { bridge, .. } => self.network(bridge),
            Runtime::Cri { endpoint } => self.cri(endpoint).await,
        }
        self.cgroups(options, footprint);
        self.logs(&options.data_dir, footprint);
    }

    fn network(&mut self, bridge: &str) {
        if embedded::has_bridge(bridge) {
            self.findings.add(Kind::Bridge, bridge);
        }
        match embedded::is_translating(bridge) {
            Ok(true) => self.findings.add(Kind::Table, embedded::table_name(bridge)),
            Ok(false) => {}
            Err(error) => self.fail("cannot read nftables", &error),
        }
    }

    async fn cri(&mut self, endpoint: &str) {
        let found = match Cri::new(&cri::Options::at(endpoint)) {
            Ok(runtime) => sandboxes(&runtime, Ownership::Pods).await,
            Err(error) => Err(error),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.fail("cannot list pods", &error),
        };
        for sandbox in found {
            let kind = match sandbox.state == PodSandboxState::SandboxReady as i32 {
                true => Kind::Pod,
                false => Kind::EndedPod,
            };
            self.findings.add(kind, pod_name(&sandbox));
            let metadata = sandbox.metadata.unwrap_or_default();
            self.pods.insert(PodUid::new(metadata.uid));
        }
    }

    fn cgroups(&mut self, options: &Options, footprint: &Footprint) {
        let cgroups = match detect(footprint) {
            Ok(Some(cgroups)) => cgroups,
            Ok(None) => return,
            Err(error) => return self.fail("cannot look for cgroups", &error),
        };
        let kubepods = cgroups.path(&cgroups.kubepods());
        match cgroups.found_below(&kubepods) {
            Ok(found) => self.findings.extend(Kind::Cgroup, found),
            Err(error) => self.fail("cannot look for cgroups", &error),
        }
        if let Some(own) = own_cgroup(&options.data_dir, footprint, &cgroups) {
            self.findings.add(Kind::Cgroup, own.as_str());
        }
    }

    fn logs(&mut self, data_dir: &Path, footprint: &Footprint) {
        let folders = log_folders(data_dir, footprint, &self.pods);
        let names = folders.iter().map(|folder| folder.display().to_string());
        self.findings.extend(Kind::Logs, names);
        let links = log_links(footprint, &folders);
        let names = links.iter().map(|link| link.display().to_string());
        self.findings.extend(Kind::LogLink, names);
    }

    fn mounts(&mut self, options: &Options, footprints: &[Footprint]) {
        match mounts(&options.data_dir, footprints) {
            Ok(mounts) => {
                let names = mounts.iter().map(|point| point.display().to_string());
                self.findings.extend(Kind::Mount, names);
            }
            Err(error) => self.fail("cannot look for mounts", &error),
        }
    }

    fn data(&mut self, options: &Options) {
        let sysctls = Sysctls::new(Path::new("/"), &options.data_dir);
        match sysctls.releasable() {
            Ok(previous) => {
                let names = previous
                    .iter()
                    .map(|one| format!("{} = {}", one.path.replace('/', "."), one.value));
                self.findings.extend(Kind::Sysctl, names);
            }
            Err(error) => self.fail("cannot read which sysctls were changed", &error),
        }
        if !data::contents(&options.data_dir).is_empty() {
            let name = options.data_dir.display().to_string();
            self.findings.add(Kind::Data, name);
        }
    }
}

/// Where the agent's own runtime keeps what it has.
pub(super) fn runtime_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("runtime")
}

/// Where the images of the agent's own runtime are.
pub(super) fn images_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("images")
}

/// The cgroups of a node; `None` where the one below which all were is gone, or is a new one.
pub(super) fn detect(footprint: &Footprint) -> Result<Option<Cgroups>, Refusal> {
    let driver = footprint.cgroup_driver();
    match Cgroups::detect(Path::new("/"), driver, &footprint.cgroup_root) {
        Ok(cgroups) => Ok(Some(cgroups)),
        // No agent could use such a cgroup, nor make anything below it.
        Err(
            Refusal::MissingPaths { .. }
            | Refusal::ReadControllers { .. }
            | Refusal::NotDelegated { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The cgroup that the agent has made for itself. One in which other processes run, and one of
/// systemd's, is not its own.
pub(super) fn own_cgroup(
    data_dir: &Path,
    footprint: &Footprint,
    cgroups: &Cgroups,
) -> Option<CgroupPath> {
    let own = CgroupPath::parse(&footprint.agent_cgroup).ok()?;
    let is_systemds = |part: &str| {
        let suffixes = [".slice", ".service", ".scope"];
        suffixes.iter().any(|suffix| part.ends_with(suffix))
    };
    let is_unit = own.as_str().split('/').any(is_systemds);
    if own.as_str() == "/" || is_unit && footprint.cgroup_driver() != Driver::Systemd {
        return None;
    }
    let exists = cgroups
        .found_below(&own)
        .is_ok_and(|found| !found.is_empty());
    let pids = cgroups.pids(&own).ok()?;
    let agents = holder::all_holders(data_dir).unwrap_or_default();
    let mut ours: Vec<i32> = agents.iter().map(|agent| agent.pid).collect();
    let remains = embedded::remains(&runtime_dir(data_dir));
    ours.extend(remains.unwrap_or_default().processes);
    (exists && pids.iter().all(|pid| ours.contains(pid))).then_some(own)
}

/// The mounts that agents have made, in an order in which they can be unmounted. What is mounted
/// elsewhere in the data directory was not mounted by the agent.
pub(super) fn mounts(data_dir: &Path, footprints: &[Footprint]) -> std::io::Result<Vec<PathBuf>> {
    let table = MountTable::read()?;
    let runtime = runtime_dir(data_dir);
    let mut places = vec![
        runtime.join("sandboxes"),
        runtime.join("containers"),
        images_dir(data_dir).join("roots"),
    ];
    places.extend(footprints.iter().map(|one| one.root.join("pods")));
    let mut found: Vec<PathBuf> = Vec::new();
    for place in places {
        let place = fs::canonicalize(&place).unwrap_or(place);
        let below = table.below(&place).into_iter();
        let below = below
            .map(|mount| &mount.path)
            .filter(|path| **path != place);
        for path in below {
            if !found.contains(path) {
                found.push(path.clone());
            }
        }
    }
    Ok(found)
}

/// The directories of the logs of the node's pods. In a data directory there are no others.
pub(super) fn log_folders(
    data_dir: &Path,
    footprint: &Footprint,
    pods: &BTreeSet<PodUid>,
) -> Vec<PathBuf> {
    let is_own = footprint.pod_logs.starts_with(data_dir);
    let entries = fs::read_dir(&footprint.pod_logs);
    let entries = entries.into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        let name = entry.file_name();
        let uid = name.to_str().and_then(|name| name.rsplit_once('_'));
        let is_pods = uid.is_some_and(|(_, uid)| pods.contains(&PodUid::new(uid)));
        is_own || is_pods
    });
    folders.map(|entry| entry.path()).collect()
}

/// Links to logs in those directories, or to logs of the node that are gone.
pub(super) fn log_links(footprint: &Footprint, folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = fs::read_dir(&footprint.container_logs);
    let entries = entries.into_iter().flatten().flatten();
    let links = entries.map(|entry| entry.path()).filter(|link| {
        let Ok(target) = fs::read_link(link) else {
            return false;
        };
        let is_dead = || fs::metadata(link).is_err();
        target.starts_with(&footprint.pod_logs)
            && (folders.iter().any(|folder| target.starts_with(folder)) || is_dead())
    });
    links.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::teardown::testing::footprint;

    #[test]
    fn logs_of_other_nodes_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("lib/plimsoll");
        let shared = Footprint {
            pod_logs: dir.path().join("log/pods"),
            container_logs: dir.path().join("log/containers"),
            ..footprint(&data, "b")
        };
        let log = |folder: &str| shared.pod_logs.join(folder).join("0.log");
        fs::create_dir_all(&shared.container_logs).unwrap();
        for folder in ["default_web_ours", "default_web_theirs"] {
            fs::create_dir_all(shared.pod_logs.join(folder)).unwrap();
            fs::write(log(folder), "").unwrap();
            symlink(log(folder), shared.container_logs.join(folder)).unwrap();
        }
        symlink(log("default_gone_any"), shared.container_logs.join("dead")).unwrap();
        symlink("/etc/hostname", shared.container_logs.join("elsewhere")).unwrap();
        let pods = BTreeSet::from([PodUid::new("ours")]);
        let folders = log_folders(&data, &shared, &pods);
        assert_eq!(folders, [shared.pod_logs.join("default_web_ours")]);
        let mut links = log_links(&shared, &folders);
        links.sort();
        let expected = ["dead", "default_web_ours"];
        assert_eq!(links, expected.map(|name| shared.container_logs.join(name)));

        let own = footprint(&data, "b");
        fs::create_dir_all(own.pod_logs.join("default_any_pod")).unwrap();
        assert_eq!(log_folders(&data, &own, &BTreeSet::new()).len(), 1);
    }
}
