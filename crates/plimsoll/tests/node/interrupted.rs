//! The next agent completes what a killed agent has begun.

use std::path::{Path, PathBuf};

use plimsoll_testkit::cgroup::{self, exists, processes};
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{container_id, is_disrupted, pod, sized, status};

on_both_runtimes!(
    pods_frozen_for_a_kill_are_killed_or_thawed,
    leftovers_of_removed_pods_are_removed,
);

/// The cgroup of a burstable pod, frozen as an agent does on cgroup v1 before it kills. Thawed on
/// drop, so that a failing test leaves no unkillable process.
struct Frozen {
    cgroup: String,
    file: PathBuf,
}

impl Frozen {
    fn new(cluster: &Cluster, pod: &Value) -> Self {
        let (root, uid) = (cluster.cgroup_root(), pod["metadata"]["uid"].as_str());
        let cgroup = format!("{root}/kubepods/burstable/pod{}", uid.unwrap());
        let file = Path::new("/sys/fs/cgroup/freezer").join(cgroup.trim_start_matches('/'));
        let file = file.join("freezer.state");
        std::fs::write(&file, "FROZEN").unwrap();
        let frozen = Frozen { cgroup, file };
        until("the pod is frozen", || match frozen.state().as_str() {
            "FROZEN" => Ok(()),
            other => Err(other.to_owned()),
        });
        frozen
    }

    fn state(&self) -> String {
        let state = std::fs::read_to_string(&self.file).unwrap_or_default();
        state.trim_end().to_owned()
    }

    /// The processes of the pod's container.
    fn processes(&self, pod: &Value) -> Vec<u32> {
        processes(&format!("{}/{}", self.cgroup, container_id(pod, "main")))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // It should be gone.
        let _ = std::fs::write(&self.file, "THAWED");
    }
}

fn burstable(name: &str) -> Value {
    let resources = json!({ "requests": { "cpu": "10m" } });
    pod(name, &[sized("main", &resources)])
}

fn pods_frozen_for_a_kill_are_killed_or_thawed(cluster: &mut Cluster) {
    if cgroup::is_unified() {
        // On cgroup v2 pods are killed with one write, and never frozen.
        return;
    }
    let [killed, spared, deleted] =
        ["killed", "spared", "deleted"].map(|name| cluster.run(&burstable(name)));
    let [of_killed, of_spared, of_deleted] =
        [&killed, &spared, &deleted].map(|pod| Frozen::new(cluster, pod));
    // One process was sent SIGKILL but could not die; the others were not signalled yet.
    let condemned = of_killed.processes(&killed);
    for id in &condemned {
        cgroup::kill(*id);
    }
    assert!(!condemned.is_empty() && of_killed.processes(&killed) == condemned);
    cluster.kubectl("delete pod deleted --wait=false");
    cluster.kill();
    cluster.start_again();

    let ended = cluster.until_phase("killed", "Failed");
    assert_eq!(ended["status"]["reason"], "Evicted", "{ended:#}");
    assert!(is_disrupted(&ended), "{ended:#}");
    let main = status(&ended, "main");
    assert_eq!(main["state"]["terminated"]["exitCode"], 137, "{ended:#}");
    assert_eq!(main["restartCount"], 0, "{ended:#}");
    cluster.is_gone("pod deleted");
    for gone in [&of_killed, &of_deleted] {
        until("nothing is left of it", || match exists(&gone.cgroup) {
            false => Ok(()),
            true => Err(format!("{} in {}", gone.state(), gone.cgroup)),
        });
    }
    // A pod without killed processes continues.
    let went_on = cluster.until_running(&json!("spared"));
    assert_eq!(of_spared.state(), "THAWED");
    assert_eq!(status(&went_on, "main"), status(&spared, "main"));
    assert_eq!(cluster.kubectl("exec spared -- echo hello"), "hello\n");
}

/// An agent that is killed while it makes or ends a pod leaves parts of it, and the pod may be gone from
/// the API when the next one comes.
fn leftovers_of_removed_pods_are_removed(cluster: &mut Cluster) {
    let kept = cluster.run(&burstable("kept"));
    cluster.kill();
    let uids = "0f0f0f0f-0000-4000-8000-00000000000";
    let left: Vec<String> = ["", "/burstable", "/besteffort"]
        .iter()
        .enumerate()
        .map(|(number, class)| cluster.make_cgroup(&format!("kubepods{class}/pod{uids}{number}")))
        .collect();
    let folders = cluster.data_dir().join("kubelet/pods");
    let folder = folders.join(format!("{uids}0/volumes/kubernetes.io~empty-dir/scratch"));
    std::fs::create_dir_all(&folder).unwrap();
    cluster.start_again();
    until("nothing is left", || {
        let cgroups = left.iter().filter(|path| exists(path));
        let names: Vec<String> = cgroups.cloned().collect();
        let is_folder = folders.join(format!("{uids}0")).exists();
        match names.is_empty() && !is_folder {
            true => Ok(()),
            false => Err(format!("{names:?}, folder: {is_folder}")),
        }
    });
    let still = cluster.until_running(&json!("kept"));
    assert_eq!(container_id(&still, "main"), container_id(&kept, "main"));
}
