//! The server as a process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// How long it may take to serve.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Process {
    child: Child,
    output: Lines<BufReader<ChildStderr>>,
    kubeconfig: PathBuf,
}

impl Process {
    pub(crate) fn spawn(folder: &Path) -> Process {
        Self::spawn_with(folder, None)
    }

    /// With that `--store`.
    pub(crate) fn spawn_with(folder: &Path, store: Option<&str>) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("server")
            .arg("--data-dir")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0"])
            .args(store.map(|store| format!("--store={store}")))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stderr.take().unwrap()).lines();
        Process {
            child,
            output,
            kubeconfig: folder.join("admin.kubeconfig"),
        }
    }

    /// The administrator's client, once the server serves.
    pub(crate) async fn client(&mut self) -> kube::Client {
        self.wait_until_it_serves().await;
        kube::Client::try_from(self.config().await).unwrap()
    }

    pub(crate) async fn wait_until_it_serves(&mut self) {
        let serving = tokio::time::timeout(READY_WITHIN, self.serving()).await;
        let printed = serving.expect("the server serves in time");
        assert!(printed.is_ok(), "the server did not start: {printed:?}");
    }

    /// The administrator's, of a server that serves.
    pub(crate) async fn config(&self) -> kube::Config {
        let parsed = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(parsed, &options)
            .await
            .unwrap();
        // A write whose answer is lost must not be tried again unnoticed.
        config.default_retry = false;
        config
    }

    /// Where a server that serves listens.
    pub(crate) async fn address(&self) -> SocketAddr {
        let url = self.config().await.cluster_url;
        let authority = url.authority().expect("the kubeconfig names a server");
        authority.as_str().parse().expect("it is an address")
    }

    /// Waits for the line that says so; what was said instead if it ends.
    async fn serving(&mut self) -> Result<(), Vec<String>> {
        let mut said = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            if line.starts_with("export KUBECONFIG=") {
                return Ok(());
            }
            said.push(line);
        }
        Err(said)
    }

    /// `kill -9`. The server must not have ended by itself.
    pub(crate) async fn kill(mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the server ended by itself: {ended:?}");
        self.child.kill().await.unwrap();
    }
}
