//! A scheduler's configuration file: `KubeSchedulerConfiguration` of kubescheduler.config.k8s.io/v1.
//!
//! A file becomes a [`Configuration`] and a list of everything that is wrong with it, each with its
//! path and line. Texts are those of upstream's decoding, validation and start-up where it has any.
//! Settings that this crate does not model are carried along.
//!
//! Reading order: this file, `fields` (which fields there are), `profiles`, `plugin_set` (merging
//! with the default plugins), `expand` (which plugin acts where), `connection`.

mod connection;
mod expand;
mod fields;
mod plugin_set;
mod profiles;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::check_type;
use crate::config::document::{self, Node};
use crate::config::shape::{Shape, wrong_type};
use crate::problem::{Kind, Problem};

use super::profile::Profile;
use super::queue::{Backoff, Settings};
use super::registry::{API_VERSION, GROUP};

pub use connection::{ClientConnection, LeaderElection};
pub use expand::{Active, Plugins};
use fields::Object;

/// The kind of the file.
pub const KIND: &str = "KubeSchedulerConfiguration";

/// The content of a file.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Whose pods are scheduled how. At least one.
    pub profiles: Vec<Profile>,
    /// The plugins of every extension point, by scheduler name.
    pub plugins: BTreeMap<String, Plugins>,
    /// How many nodes are evaluated concurrently. No answer depends on it.
    pub parallelism: i32,
    /// When to stop looking for nodes, for profiles without a value; `None` evaluates all of them.
    pub percentage_of_nodes_to_score: Option<u8>,
    /// The wait after a pod's first failure.
    pub pod_initial_backoff_seconds: i64,
    /// The longest wait.
    pub pod_max_backoff_seconds: i64,
    /// Which of several schedulers acts.
    pub leader_election: LeaderElection,
    /// How to talk to the API server.
    pub client_connection: ClientConnection,
    /// Whether profiles of the running program are served.
    pub enable_profiling: bool,
    /// Whether the profiles show which threads wait for locks.
    pub enable_contention_profiling: bool,
    /// Whether caches are filled only once this scheduler leads.
    pub delay_cache_until_active: bool,
}

/// A configuration and what is wrong with it. With problems it is the best that could be made of
/// the file, for advice only; a scheduler must not start with it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The configuration.
    pub configuration: Configuration,
    /// Everything wrong with it.
    pub problems: Vec<Problem>,
}

impl Default for Configuration {
    /// The configuration of an empty file.
    fn default() -> Configuration {
        decode(Object(None), &mut Vec::new())
    }
}

impl Configuration {
    /// The profile that schedules pods of that scheduler name.
    pub fn profile(&self, scheduler_name: &str) -> Option<&Profile> {
        let mut profiles = self.profiles.iter();
        profiles.find(|profile| profile.scheduler_name == scheduler_name)
    }

    /// How the queue is set up.
    pub fn queue_settings(&self) -> Settings {
        let seconds = |count: i64| Duration::from_secs(u64::try_from(count).unwrap_or(0));
        Settings {
            backoff: Backoff {
                initial: seconds(self.pod_initial_backoff_seconds),
                max: seconds(self.pod_max_backoff_seconds),
            },
            ..Settings::default()
        }
    }
}

/// Whether a document is of this kind, in any version.
pub fn is_scheduler_configuration(document: &Node) -> bool {
    document.get("kind").and_then(Node::as_text) == Some(KIND)
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Reading {
    let (document, mut problems) = document::parse(bytes).into_only_document();
    let Some(document) = document else {
        let configuration = Configuration::default();
        return Reading {
            configuration,
            problems,
        };
    };
    let mut reading = read_document(&document);
    problems.append(&mut reading.problems);
    Reading {
        problems,
        ..reading
    }
}

/// Reads one document of a file that holds several.
pub fn read_document(document: &Node) -> Reading {
    let mut problems = Vec::new();
    if document.as_mapping().is_none() {
        problems.push(wrong_type(document, "", "the document must be a mapping"));
    } else {
        check_type(document, API_VERSION, KIND, &mut problems);
        explain_old_version(&mut problems);
        Shape::Record(fields::CONFIGURATION).check(document, "", &mut problems);
    }
    let configuration = decode(Object(Some(document)), &mut problems);
    for problem in &mut problems {
        let place = || document.position_of(&problem.path);
        problem.position.get_or_insert_with(place);
    }
    Reading {
        configuration,
        problems,
    }
}

fn explain_old_version(problems: &mut [Problem]) {
    let is_old = |problem: &&mut Problem| {
        let group = format!("\"{GROUP}/");
        problem.kind == Kind::NotSupported && problem.value.starts_with(&group)
    };
    for problem in problems.iter_mut().filter(is_old) {
        problem.detail += "; other versions are not read, the rest is checked as v1";
    }
}

fn decode(document: Object<'_>, problems: &mut Vec<Problem>) -> Configuration {
    let client_connection = ClientConnection::read(document.object("clientConnection"));
    client_connection.check(problems);
    let leader_election = LeaderElection::read(document.object("leaderElection"));
    leader_election.check(problems);
    let parallelism = document.int32("parallelism").unwrap_or(16);
    if parallelism <= 0 {
        let rule = "should be an integer value greater than zero";
        problems.push(Problem::invalid_bare("parallelism", parallelism, rule));
    }
    let percentage = profiles::percentage(document, "", problems);
    let drafts = profiles::read(document, percentage, problems);
    let initial = document.int64("podInitialBackoffSeconds").unwrap_or(1);
    let max = document.int64("podMaxBackoffSeconds").unwrap_or(10);
    check_backoff(initial, max, problems);
    check_unsupported(document, problems);
    let enable_profiling = document.boolean("enableProfiling").unwrap_or(true);
    let contention = document.boolean("enableContentionProfiling");
    let named = drafts
        .iter()
        .map(|draft| (draft.profile.scheduler_name.clone(), draft.plugins.clone()));
    Configuration {
        plugins: named.collect(),
        profiles: drafts.into_iter().map(|draft| draft.profile).collect(),
        parallelism,
        percentage_of_nodes_to_score: percentage,
        pod_initial_backoff_seconds: initial,
        pod_max_backoff_seconds: max,
        leader_election,
        client_connection,
        enable_profiling,
        enable_contention_profiling: contention.unwrap_or(enable_profiling),
        delay_cache_until_active: document.boolean("delayCacheUntilActive").unwrap_or(false),
    }
}

fn check_backoff(initial: i64, max: i64, problems: &mut Vec<Problem>) {
    if initial <= 0 {
        let rule = "must be greater than 0";
        let problem = Problem::invalid_bare("podInitialBackoffSeconds", initial, rule);
        problems.push(problem);
    }
    if max < initial {
        let rule = "must be greater than or equal to PodInitialBackoffSeconds";
        problems.push(Problem::invalid_bare("podMaxBackoffSeconds", max, rule));
    }
}

/// Extenders would have to be called over the network, in the middle of every decision.
fn check_unsupported(document: Object<'_>, problems: &mut Vec<Problem>) {
    for index in 0..document.items("extenders").len() {
        let path = document::item_path("extenders", index);
        problems.push(Problem::forbidden(path, "extenders are not supported"));
    }
    for field in fields::REMOVED_FIELDS {
        if document.get(field).is_some() {
            let detail = "v1 has it no more, the flags --bind-address and --secure-port say where \
                          to serve";
            problems.push(Problem::unknown(field, detail));
        }
    }
}

#[cfg(test)]
mod tests;
