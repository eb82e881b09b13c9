//! The cluster under test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A cluster, and what kubectl has to know of it.
pub(crate) struct Target {
    kubeconfig: PathBuf,
    /// Where kubectl remembers what the cluster has.
    pub(crate) home: TempDir,
    server: Option<Server>,
}

/// A server of our own.
struct Server {
    process: Child,
    data: TempDir,
}

impl Target {
    /// The cluster of all tests that run at the same time; the last one to end stops it.
    pub(crate) fn shared() -> Arc<Target> {
        static SHARED: Mutex<Weak<Target>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|broken| broken.into_inner());
        if let Some(target) = shared.upgrade() {
            return target;
        }
        let target = Arc::new(Target::open());
        *shared = Arc::downgrade(&target);
        target
    }

    fn open() -> Target {
        let home = tempfile::tempdir().expect("a folder for kubectl");
        if let Some(kubeconfig) = std::env::var_os("PLIMSOLL_TARGET_KUBECONFIG") {
            return Target {
                kubeconfig: kubeconfig.into(),
                home,
                server: None,
            };
        }
        let server = Server::start();
        Target {
            kubeconfig: server.data.path().join("admin.kubeconfig"),
            home,
            server: Some(server),
        }
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Keys and certificates of the cluster; only a server of our own shows them.
    pub(crate) fn certificates(&self) -> Option<PathBuf> {
        let server = self.server.as_ref()?;
        Some(server.data.path().join("pki"))
    }
}

impl Server {
    fn start() -> Server {
        let data = tempfile::tempdir().expect("a folder for the server");
        let log = data.path().join("log");
        let process = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("plimsoll starts");
        let server = Server { process, data };
        let deadline = Instant::now() + READY_WITHIN;
        // The address is printed once the server is ready.
        while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains("KUBECONFIG")) {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server did not start: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
