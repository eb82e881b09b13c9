//! Removes what a node has on the machine. Failures are reported, and the removal continues.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::object::identity::PodUid;
use plimsoll_runtime::cri::{self, Cri};
use plimsoll_runtime::embedded::{self, Embedded};
use plimsoll_runtime::image::{ImageService, Registries, Store};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::footprint::{Footprint, Runtime};
use super::holder::{self, Ended};
use super::pods::{Ownership, stop_all};
use super::survey::{detect, images_dir, log_folders, log_links, mounts, own_cgroup, runtime_dir};
use super::{Options, data};
use crate::agent::{chain, walks_cgroup};
use crate::devices::{self, standard_path};
use crate::volumes::removal::remove_tree;

/// How long an agent may take to end. It stops its servers, and waits for writes that are under way.
const AGENT_ENDS_WITHIN: Duration = Duration::from_secs(30);

/// What fails during the removal.
#[derive(Debug, Default)]
pub(super) struct Removal {
    pub(super) problems: Vec<String>,
}

impl Removal {
    fn fail(&mut self, doing: impl std::fmt::Display, error: &dyn std::error::Error) {
        self.problems.push(format!("{doing}: {}", chain(error)));
    }

    /// Ends the processes that use the data directory.
    pub(super) fn end_processes(&mut self, data_dir: &Path, report: &dyn Fn(&str)) {
        let holders = match holder::holders(data_dir) {
            Ok(holders) => holders,
            Err(error) => return self.fail("cannot look for processes", &error),
        };
        for process in holders {
            match holder::end(&process, data_dir, AGENT_ENDS_WITHIN) {
                Ok(Some(Ended::Killed)) => report(&format!(
                    "{process} did not end within {} seconds of SIGTERM and was killed",
                    AGENT_ENDS_WITHIN.as_secs()
                )),
                Ok(_) => {}
                Err(error) => self.fail(format!("cannot end {process}"), &error),
            }
        }
    }

    /// Stops and removes the pods of the agent's own runtime.
    pub(super) async fn stop_embedded(&mut self, options: &Options, footprint: Option<&Footprint>) {
        let root = runtime_dir(&options.data_dir);
        let images = images_dir(&options.data_dir);
        let has_roots =
            fs::read_dir(images.join("roots")).is_ok_and(|mut all| all.next().is_some());
        let is_empty = embedded::remains(&root).is_ok_and(|remains| {
            remains.sandboxes.is_empty() && remains.containers.is_empty() && !has_roots
        });
        if is_empty {
            return;
        }
        let store = match Store::open(&images) {
            Ok(store) => store,
            Err(error) => return self.fail("cannot open the image store", &error),
        };
        let mut network = embedded::NetworkOptions::default();
        if let Some(Runtime::Embedded {
            bridge,
            pod_cidr,
            cni_conf_dir,
            cni_bin_dir,
        }) = footprint.map(|footprint| &footprint.runtime)
        {
            network.bridge.clone_from(bridge);
            network.pod_cidr = Some(pod_cidr.clone());
            network.cni_conf_dir.clone_from(cni_conf_dir);
            network.cni_bin_dirs = vec![cni_bin_dir.clone()];
        }
        let driver = footprint.map(Footprint::cgroup_driver);
        let runtime = Embedded::new(embedded::Options {
            root,
            helper: options.helper.clone(),
            images: Arc::new(ImageService::new(store, Registries::default())),
            cgroup_driver: driver.unwrap_or(plimsoll_core::cgroup::Driver::Cgroupfs),
            network,
        });
        match runtime.await {
            Ok(runtime) => {
                let problems = stop_all(&runtime, Ownership::All, options.longest_grace).await;
                self.problems.extend(problems);
            }
            Err(error) => self.fail("cannot take over the runtime's directory", &error),
        }
    }

    /// Stops and removes the pods of another runtime.
    pub(super) async fn stop_cri(&mut self, endpoint: &str, options: &Options) {
        match Cri::new(&cri::Options::at(endpoint)) {
            Ok(runtime) => {
                let problems = stop_all(&runtime, Ownership::Pods, options.longest_grace).await;
                self.problems.extend(problems);
            }
            Err(error) => self.fail("cannot stop pods", &error),
        }
    }

    /// Removes the cgroups of pods, with what is left in them, and the agent's own.
    pub(super) fn remove_cgroups(
        &mut self,
        data_dir: &Path,
        footprint: &Footprint,
        pods: &BTreeSet<PodUid>,
    ) {
        let cgroups = match detect(footprint) {
            Ok(Some(cgroups)) => cgroups,
            Ok(None) => return,
            Err(error) => return self.fail("cannot look for cgroups", &error),
        };
        let found = match cgroups.found_pods() {
            Ok(found) => found,
            Err(error) => return self.fail("cannot look for cgroups", &error),
        };
        // A frozen process of cgroup v1 does not die.
        if let Err(error) = cgroups.finish_kills() {
            self.fail("cannot thaw pods", &error);
        }
        for (uid, name) in found {
            let path = cgroups.path(&name);
            let removed = match pods.contains(&uid) {
                true => cgroups.remove(&path),
                false => cgroups.remove_empty(&path),
            };
            if let Err(error) = removed {
                self.fail(format!("cannot remove the cgroup of pod {uid}"), &error);
            }
        }
        let kubepods = cgroups.path(&cgroups.kubepods());
        if let Err(error) = cgroups.remove_empty(&kubepods) {
            self.fail(format!("cannot remove cgroup {kubepods}"), &error);
        }
        // The process that walks ends with its agent, a moment later.
        let walks = CgroupPath::parse(&walks_cgroup(&cgroups.path(cgroups.root())));
        if let Ok(Err(error)) = walks.map(|walks| cgroups.remove(&walks)) {
            self.fail("cannot remove the cgroup of the disk walker", &error);
        }
        if let Some(own) = own_cgroup(data_dir, footprint, &cgroups)
            && let Err(error) = cgroups.remove_empty(&own)
        {
            self.fail(format!("cannot remove cgroup {own}"), &error);
        }
    }

    /// Unmounts what agents have mounted.
    pub(super) fn unmount(&mut self, data_dir: &Path, footprints: &[Footprint]) {
        let points = match mounts(data_dir, footprints) {
            Ok(points) => points,
            Err(error) => return self.fail("cannot look for mounts", &error),
        };
        for point in points {
            loop {
                // Processes that still use one keep it, unseen by others.
                match unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
                    Ok(()) => {}
                    Err(Errno::INVAL | Errno::NOENT) => break,
                    Err(error) => {
                        self.fail(format!("cannot unmount {}", point.display()), &error);
                        break;
                    }
                }
            }
        }
    }

    /// Removes the bridge of pods, their network cards, and the rules about their addresses.
    pub(super) async fn remove_network(&mut self, bridge: &str) {
        if let Ok(true) = embedded::is_translating(bridge)
            && let Err(error) = embedded::stop_translating(bridge)
        {
            let table = embedded::table_name(bridge);
            self.fail(format!("cannot remove nftables table ip {table}"), &error);
        }
        if !embedded::has_bridge(bridge) {
            return;
        }
        let cards = embedded::cards_on(bridge).unwrap_or_default();
        if !cards.is_empty() {
            let cards = cards.join(", ");
            let problem = format!(
                "cannot remove bridge {bridge}: network cards that are not of this node's pods are joined to it: {cards}"
            );
            return self.problems.push(problem);
        }
        if let Err(error) = embedded::remove_bridge(bridge).await {
            self.fail(format!("cannot remove bridge {bridge}"), &error);
        }
    }

    /// Removes network cards of pods that the runtime could not remove.
    pub(super) async fn remove_cards(&mut self, data_dir: &Path) {
        let remains = embedded::remains(&runtime_dir(data_dir)).unwrap_or_default();
        for sandbox in remains.sandboxes {
            if let Err(error) = embedded::remove_card(&sandbox.id).await {
                self.fail("cannot remove a network card", &error);
            }
        }
    }

    /// Removes the logs of the node's pods, links to them, and the directories of both if that was
    /// all.
    pub(super) fn remove_logs(
        &mut self,
        data_dir: &Path,
        footprint: &Footprint,
        pods: &BTreeSet<PodUid>,
    ) {
        let folders = log_folders(data_dir, footprint, pods);
        for path in log_links(footprint, &folders) {
            self.remove_tree(&path);
        }
        for path in folders {
            self.remove_tree(&path);
        }
        for path in [&footprint.container_logs, &footprint.pod_logs] {
            // Fails while there is something else in it.
            let _ = fs::remove_dir(path);
        }
    }

    /// Removes what the agent's own runtime keeps of sandboxes and containers, and its lock.
    pub(super) fn remove_runtime_files(&mut self, data_dir: &Path) {
        let runtime = runtime_dir(data_dir);
        // Without them nothing would be known of what runs.
        if embedded::remains(&runtime).is_ok_and(|remains| !remains.processes.is_empty()) {
            return;
        }
        for name in ["addresses", "lock"] {
            self.remove_tree(&runtime.join(name));
        }
        let roots = images_dir(data_dir).join("roots");
        for directory in [runtime.join("sandboxes"), runtime.join("containers"), roots] {
            for entry in entries(&directory) {
                self.remove_tree(&entry);
            }
        }
    }

    /// Removes the link to the directory where device plugins register.
    pub(super) fn remove_device_plugins_link(&mut self, root: &Path) {
        let usual = Path::new(standard_path::STANDARD);
        if let Err(error) = standard_path::unlink(usual, &root.join(devices::DIRECTORY)) {
            self.problems.push(data::describe(usual, &error));
        }
    }

    /// Removes what pods kept in volumes where that is not in the data directory.
    pub(super) fn remove_root(&mut self, data_dir: &Path, root: &Path) {
        if !root.starts_with(data_dir) {
            self.remove_tree(&root.join("pods"));
            self.remove_tree(&root.join("decisions"));
            self.remove_tree(&root.join(devices::DIRECTORY));
            self.remove_tree(&root.join(devices::pod_resources::DIRECTORY));
            // Fails while there is something else in it.
            let _ = fs::remove_dir(root);
        }
    }

    fn remove_tree(&mut self, path: &Path) {
        if let Err(error) = remove_tree(path) {
            self.problems.push(data::describe(path, &error));
        }
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
