//! Preflight errors are reported before anything starts.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use plimsoll_testkit::cgroup::{Tree, exists};
use tempfile::TempDir;

use crate::cluster::PLIMSOLL;

/// A machine on which `plimsoll up` is tried.
struct Trial {
    cgroups: Tree,
    folder: TempDir,
}

/// Its output.
#[derive(Debug)]
struct Refusal {
    code: Option<i32>,
    stderr: String,
}

impl Trial {
    fn new() -> Trial {
        Trial {
            cgroups: Tree::new(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn up(&self, further: &[&str], prepare: impl FnOnce(&mut Command)) -> Refusal {
        let mut command = Command::new("timeout");
        command.arg("60").arg(PLIMSOLL);
        command.args(["up", "--listen", "127.0.0.1:0", "--healthz-listen", "off"]);
        command.args(["--keep-kernel-settings", "--node-name", "n1"]);
        command.args(["--cgroup-root", self.cgroups.path()]);
        if !further.contains(&"--data-dir") {
            command.args(["--data-dir", &self.data()]);
        }
        if !further.contains(&"--kubelet-listen") {
            command.args(["--kubelet-listen", "127.0.0.1:0"]);
        }
        command.args(further).current_dir("/");
        prepare(&mut command);
        let output = command.output().expect("plimsoll starts");
        Refusal {
            code: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn is_without_cgroups(&self) {
        let kubepods = format!("{}/kubepods", self.cgroups.path());
        assert!(!exists(&kubepods), "cgroups were made");
    }

    /// Nothing was started.
    fn is_untouched(&self) {
        self.is_without_cgroups();
        assert!(
            !Path::new(&self.data()).join("pki").exists(),
            "a cluster was made"
        );
    }
}

impl Refusal {
    /// Exit code 1 for a machine that fails the checks.
    fn is(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is missing: {}",
                self.stderr
            );
        }
    }
}

#[test]
#[ignore = "tier: root"]
fn only_root_runs_pods() {
    let trial = Trial::new();
    let refusal = trial.up(&[], |command| {
        command.uid(65534).gid(65534);
    });
    refusal.is(1, &["error: user: not root", "hint: run it as root (sudo)"]);
    trial.is_untouched();
}

#[test]
#[ignore = "tier: root"]
fn port_in_use_is_reported() {
    let trial = Trial::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refusal = trial.up(&["--kubelet-listen", &address], |_| ());
    refusal.is(1, &[&address, "hint: "]);
    trial.is_untouched();
}

#[test]
#[ignore = "tier: root"]
fn missing_runtime_is_reported() {
    let trial = Trial::new();
    let socket = trial.folder.path().join("no.sock").display().to_string();
    let refusal = trial.up(&["--runtime", &format!("unix://{socket}")], |_| ());
    refusal.is(1, &[&socket, "hint: "]);
    trial.is_untouched();
}

#[test]
#[ignore = "tier: root"]
fn file_as_data_directory_is_reported() {
    let trial = Trial::new();
    std::fs::write(trial.data(), "not a directory").unwrap();
    let refusal = trial.up(&[], |_| ());
    refusal.is(1, &[&trial.data()]);
    trial.is_untouched();
}

#[test]
#[ignore = "tier: root"]
fn missing_cgroup_root_is_reported() {
    let trial = Trial::new();
    let refusal = trial.up(&["--cgroup-root", "/plimsoll-not-there"], |_| ());
    // The last flag counts, or clap rejects two.
    assert_ne!(refusal.code, Some(0), "{refusal:?}");
    assert!(refusal.stderr.contains("cgroup"), "{refusal:?}");
}

#[test]
#[ignore = "tier: root"]
fn reservations_above_capacity_are_rejected() {
    let trial = Trial::new();
    let file = trial.folder.path().join("kubelet.yaml");
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                kubeReserved: { memory: 100Ti }\n";
    std::fs::write(&file, text).unwrap();
    let refusal = trial.up(&["--config", &file.display().to_string()], |_| ());
    refusal.is(1, &["Resource \"memory\" has a reservation of"]);
    trial.is_without_cgroups();
}

#[test]
#[ignore = "tier: root"]
fn check_node_reports_an_unfit_machine() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |further: &[&str]| {
        let mut command = Command::new(PLIMSOLL);
        command
            .args(["check", "--node", "--data-dir"])
            .arg(folder.path().join("data"));
        command.args(further).output().expect("plimsoll starts")
    };
    let fine = check(&[]);
    let printed = String::from_utf8_lossy(&fine.stdout).into_owned();
    for part in ["user", "cgroups", "swap"] {
        assert!(printed.contains(part), "{part} is missing: {printed}");
    }
    let missing = check(&["--runtime", "unix:///plimsoll/no.sock"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let printed = String::from_utf8_lossy(&missing.stdout).into_owned();
    assert!(printed.contains("/plimsoll/no.sock"), "{printed}");
}
