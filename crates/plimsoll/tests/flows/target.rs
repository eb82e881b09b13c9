//! The cluster of the flows: processes of the test, or an existing cluster.

use std::path::{Path, PathBuf};

use plimsoll_testkit::process::Process;
use tempfile::TempDir;

/// Names a kubeconfig file; flows then run on that cluster and nothing is launched.
const KUBECONFIG_VARIABLE: &str = "PLIMSOLL_TARGET_KUBECONFIG";

/// The program.
pub(crate) const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

/// A cluster to run flows on.
pub(crate) struct Target {
    kubeconfig: PathBuf,
    launched: Option<Launched>,
}

/// The processes of a cluster of our own, in the order in which they end.
pub(crate) struct Launched {
    pub(crate) controllers: Process,
    pub(crate) scheduler: Process,
    _server: Process,
    folder: TempDir,
}

impl Target {
    /// The cluster of the environment, else one launched with these flags for its controllers.
    pub(crate) fn new(controller_flags: &[&str]) -> Self {
        match std::env::var_os(KUBECONFIG_VARIABLE) {
            Some(path) => Target {
                kubeconfig: path.into(),
                launched: None,
            },
            None => Target::launch(controller_flags),
        }
    }

    fn launch(controller_flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let start = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
            let log = folder.path().join(format!("{}.log", arguments[0]));
            Process::start(PLIMSOLL, &log, &arguments)
        };
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (data, audit) = (path("data"), path("audit.log"));
        let mut server = start(&[
            "server",
            "--data-dir",
            &data,
            "--audit-log-path",
            &audit,
            "--listen",
            "127.0.0.1:0",
        ]);
        server.says("export KUBECONFIG=");
        let kubeconfig = folder.path().join("data/admin.kubeconfig");
        let file = kubeconfig.to_string_lossy().into_owned();
        let alone = ["--kubeconfig", &file, "--leader-elect", "false"];
        let controllers = [&["controllers"], &alone[..], controller_flags].concat();
        let launched = Launched {
            controllers: start(&controllers),
            scheduler: start(&[&["scheduler"], &alone[..]].concat()),
            _server: server,
            folder,
        };
        Target {
            kubeconfig,
            launched: Some(launched),
        }
    }

    /// How to reach it.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its processes, if they are ours.
    pub(crate) fn launched(&mut self) -> Option<&mut Launched> {
        self.launched.as_mut()
    }

    /// Whether no other test uses the cluster, so that its output about "all nodes" is known.
    pub(crate) fn is_ours(&self) -> bool {
        self.launched.is_some()
    }
}

impl Launched {
    /// Every request that the server has answered, as audit events.
    pub(crate) fn audit_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("audit.log")).expect("the audit log")
    }
}
