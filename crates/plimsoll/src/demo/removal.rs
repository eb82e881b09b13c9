//! Cleanup, as `plimsoll down --purge` does it.

use std::time::Duration;

use plimsoll_node::teardown::{self, Options, Scope};

use super::cluster::Cluster;
use super::sandbox::Sandbox;
use crate::node::helper_command;

/// What was removed, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// One line per kind of resource.
    pub(super) lines: Vec<String>,
    pub(super) problems: Vec<String>,
}

/// Removes everything that the cluster created. Continues after failures and reports them.
pub(super) async fn remove(sandbox: &Sandbox, cluster: Option<Cluster>) -> Removed {
    let mut removed = Removed::default();
    if let Some(cluster) = cluster {
        // The process first, so that it starts nothing during the cleanup.
        match cluster.stop().await {
            Ok(_) => removed.lines.push("ended plimsoll up".to_owned()),
            Err(error) => removed.problems.push(format!("{error:#}")),
        }
        removed.tear_down(sandbox).await;
    }
    if let Err(error) = sandbox.remove_cgroup() {
        removed.problems.push(format!("{error:#}"));
    }
    // Removing the directory under a file system that is still mounted would delete its files.
    if removed.problems.is_empty() {
        let directory = sandbox.directory();
        match std::fs::remove_dir_all(directory) {
            Ok(()) => removed
                .lines
                .push(format!("removed {}", directory.display())),
            Err(error) => {
                let problem = format!("cannot remove {}: {error}", directory.display());
                removed.problems.push(problem);
            }
        }
    }
    removed
}

impl Removed {
    async fn tear_down(&mut self, sandbox: &Sandbox) {
        let helper = match helper_command() {
            Ok(helper) => helper,
            Err(error) => return self.problems.push(format!("{error:#}")),
        };
        let options = Options {
            data_dir: sandbox.data_dir(),
            assumed: Vec::new(),
            scope: Scope::Everything,
            longest_grace: Some(Duration::ZERO),
            helper,
        };
        match teardown::tear_down(&options, &|_| {}).await {
            Ok(outcome) => {
                self.lines.extend(outcome.removed.deeds());
                self.problems.extend(outcome.problems);
                self.problems.extend(outcome.left.failures());
            }
            // The cluster had not created anything yet.
            Err(teardown::Error::NotData { .. }) => {}
            Err(error) => self.problems.push(error.to_string()),
        }
    }
}
