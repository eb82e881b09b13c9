//! Taking a node off the machine: `plimsoll down`.
//!
//! Nothing is remembered in a process: what there is, is found where an agent makes it, so that it
//! does not matter how the agent ended. Everything is looked for twice, before and after; what was
//! done is the difference, and what is left is a failure.
//!
//! Reading order: [`holder`] (which process uses a data directory), [`footprint`] (what an agent
//! notes of what it uses), [`findings`] (what there is, in words), `survey` (looking), `pods` and
//! `removal` (taking away), `data` (the data directory).

mod data;
pub mod findings;
pub mod footprint;
pub mod holder;
mod pods;
mod removal;
mod survey;
#[cfg(test)]
pub(crate) mod testing;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use findings::{Findings, Kind};
use footprint::{Footprint, Runtime};
use holder::{Claim, ClaimError};
use plimsoll_runtime::sysctl::Sysctls;
use removal::Removal;
pub use survey::Survey;

/// How much is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What runs, and what it has made of the kernel; the data directory stays.
    Running,
    /// The data directory and changed kernel settings too.
    Everything,
}

/// What is to be removed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the node keeps everything.
    pub data_dir: PathBuf,
    /// What the node uses beside what it has noted.
    pub assumed: Vec<Footprint>,
    /// How much is removed.
    pub scope: Scope,
    /// How long pods may take to stop at most; their grace period if `None`.
    pub longest_grace: Option<Duration>,
    /// The command that becomes a helper of the embedded runtime.
    pub helper: Vec<OsString>,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is to be removed does not look like a node's data.
    #[error(
        "{} is not a data directory of Plimsoll: it has neither agent.json, store.redb nor node.kubeconfig, and no runtime or images; nothing was changed",
        data_dir.display()
    )]
    NotData {
        /// The directory.
        data_dir: PathBuf,
    },
    /// The note of what the node uses cannot be read.
    #[error(
        "cannot read {}, which says what the node uses; remove it and give --bridge and --cgroup-root instead",
        path.display()
    )]
    Footprint {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process uses the data directory and could not be ended.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

/// How taking a node away went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What is gone.
    pub removed: Findings,
    /// What is still there.
    pub left: Findings,
    /// What went wrong.
    pub problems: Vec<String>,
    /// What was kept in the data directory, since Plimsoll has not made it.
    pub kept: Vec<String>,
}

/// Looks for what [`tear_down`] would take away.
pub async fn survey(options: &Options) -> Result<Survey, Error> {
    let footprints = footprints(options)?;
    Ok(survey::take(options, &footprints).await)
}

/// Removes a node from the machine. `report` is called with progress messages.
pub async fn tear_down(options: &Options, report: &dyn Fn(&str)) -> Result<Outcome, Error> {
    let footprints = footprints(options)?;
    let before = survey::take(options, &footprints).await;
    let mut removal = Removal::default();
    removal.end_processes(&options.data_dir, report);
    // From here on no agent can start.
    let claim = match options.data_dir.is_dir() {
        true => Some(Claim::take(&options.data_dir)?),
        false => None,
    };
    let pods = before.findings.of(Kind::Pod).count();
    if pods > 0 {
        report(&format!(
            "stopping {pods} pods, which takes as long as their grace periods at most"
        ));
    }
    let embedded = |one: &&Footprint| one.bridge().is_some();
    let latest = footprints.iter().rev().find(embedded);
    removal.stop_embedded(options, latest).await;
    for footprint in &footprints {
        if let Runtime::Cri { endpoint } = &footprint.runtime {
            removal.stop_cri(endpoint, options).await;
        }
    }
    for footprint in &footprints {
        removal.remove_cgroups(&options.data_dir, footprint, &before.pods);
    }
    removal.unmount(&options.data_dir, &footprints);
    removal.remove_cards(&options.data_dir).await;
    for footprint in &footprints {
        if let Some(bridge) = footprint.bridge() {
            removal.remove_network(bridge).await;
        }
        removal.remove_logs(&options.data_dir, footprint, &before.pods);
    }
    removal.remove_runtime_files(&options.data_dir);
    let kept = match options.scope {
        Scope::Running => Vec::new(),
        Scope::Everything => purge(options, &footprints, &mut removal),
    };
    let lock = holder::lock_file(&options.data_dir);
    if claim.is_some()
        && lock.exists()
        && let Err(error) = std::fs::remove_file(&lock)
    {
        removal.problems.push(data::describe(&lock, &error));
    }
    drop(claim);
    let after = survey::take(options, &footprints).await;
    let mut problems = removal.problems;
    for problem in after.problems {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    Ok(Outcome {
        removed: before.findings.without(&after.findings),
        left: after.findings,
        problems,
        kept,
    })
}

fn purge(options: &Options, footprints: &[Footprint], removal: &mut Removal) -> Vec<String> {
    let sysctls = Sysctls::new(std::path::Path::new("/"), &options.data_dir);
    if let Err(error) = sysctls.release() {
        let problem = format!("cannot put back sysctls: {error}");
        removal.problems.push(problem);
    }
    for footprint in footprints {
        removal.remove_device_plugins_link(&footprint.root);
        removal.remove_root(&options.data_dir, &footprint.root);
    }
    data::remove(&options.data_dir, &mut removal.problems)
}

/// What the node uses, as far as is known. Without a data directory only what is assumed.
fn footprints(options: &Options) -> Result<Vec<Footprint>, Error> {
    let data_dir = &options.data_dir;
    let is_empty = match std::fs::read_dir(data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => true,
    };
    if !is_empty && !data::is_data_dir(data_dir) {
        let data_dir = data_dir.clone();
        return Err(Error::NotData { data_dir });
    }
    let noted = footprint::read(data_dir).map_err(|source| Error::Footprint {
        path: footprint::note_file(data_dir),
        source,
    })?;
    let mut all = options.assumed.clone();
    all.retain(|one| !noted.contains(one));
    all.extend(noted);
    Ok(all)
}
