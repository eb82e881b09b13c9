//! `plimsoll up` as a child process.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};

use super::sandbox::Sandbox;
use crate::kubeconfig::ADMIN;

/// How long the API server may take to start, also on a busy machine.
const SERVES_WITHIN: Duration = Duration::from_secs(60);
/// How long the process may take to stop after SIGTERM.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// How long a process that has closed its connections may take to exit.
const ENDS_WITHIN: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Number of log lines shown after a failure.
const LOG_LINES: usize = 12;

/// A running cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    child: Child,
    log: PathBuf,
    kubeconfig: PathBuf,
}

impl Cluster {
    pub(super) fn start(sandbox: &Sandbox) -> Result<Cluster> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let path = sandbox.log();
        let log =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let same_log = log.try_clone().context("cannot open the log twice")?;
        let mut command = Command::new(&program);
        command
            .args(sandbox.up())
            .env_remove("KUBECONFIG")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(same_log)
            // Ctrl-C must reach only this process, which then stops the cluster in order.
            .process_group(0);
        let child = command.spawn();
        Ok(Cluster {
            child: child.with_context(|| format!("cannot start {}", program.display()))?,
            log: path,
            kubeconfig: sandbox.data_dir().join(ADMIN),
        })
    }

    /// The path of the admin's kubeconfig.
    pub(super) fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// A client, once the API server is ready.
    pub(super) async fn client(&mut self) -> Result<Client> {
        let deadline = Instant::now() + SERVES_WITHIN;
        loop {
            self.check_running()?;
            let problem = match self.try_client().await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let seconds = SERVES_WITHIN.as_secs();
                return Err(
                    problem.context(format!("the API server is not ready after {seconds} s"))
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn try_client(&self) -> Result<Client> {
        let file = Kubeconfig::read_from(&self.kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
        let client = Client::try_from(config)?;
        client.apiserver_version().await?;
        Ok(client)
    }

    /// Fails if the process has exited.
    pub(super) fn check_running(&mut self) -> Result<()> {
        match self
            .child
            .try_wait()
            .context("cannot get the status of plimsoll up")?
        {
            Some(status) => bail!("plimsoll up has exited: {status}"),
            None => Ok(()),
        }
    }

    /// The same for a process that may be about to exit: it closes its connections first.
    pub(super) async fn check_running_soon(&mut self) -> Result<()> {
        let deadline = Instant::now() + ENDS_WITHIN;
        while Instant::now() < deadline {
            self.check_running()?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.check_running()
    }

    /// The end of its log, if there is any.
    pub(super) fn log_tail(&self) -> Option<String> {
        let text = std::fs::read(&self.log).ok()?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(LOG_LINES);
        let lines = lines[first..].iter();
        let tail: Vec<String> = lines.map(|line| format!("  {line}\n")).collect();
        (!tail.is_empty()).then(|| tail.concat())
    }

    /// Stops the process with SIGTERM, and with SIGKILL if it takes too long.
    pub(super) async fn stop(mut self) -> Result<ExitStatus> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // Fails if the process has exited already.
            let _ = kill_process(id, Signal::TERM);
        }
        let deadline = Instant::now() + STOPS_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = self
                .child
                .try_wait()
                .context("cannot wait for plimsoll up")?
            {
                return Ok(status);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.child.kill().context("cannot kill plimsoll up")?;
        self.child.wait().context("cannot wait for plimsoll up")
    }
}
