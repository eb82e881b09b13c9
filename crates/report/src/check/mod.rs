//! Mistakes in configurations and manifests, and what they result in.
//!
//! Reading order: `file` (bytes to documents), `capacity` (for which machine), [`server`] (what an API
//! server answers), `node`, `scheduler` and `manifest` (documents to reports), `correction` (what
//! would be right), [`report`] (the result as data; documented in docs/check.md), `render` and
//! `sarif` (the result as text).

mod capacity;
mod correction;
mod file;
mod manifest;
mod node;
mod render;
pub mod report;
mod sarif;
mod scheduler;
pub mod server;

use plimsoll_core::config::{NodeConfig, Notation, Profile};
use plimsoll_core::resources::Bytes;
use plimsoll_core::scheduling::configuration::is_scheduler_configuration;

use server::Server;

pub use capacity::{Capacity, Subject, parse_daemons};
pub use file::File;
pub use render::{Detail, render};
pub use report::Report;
pub use sarif::sarif;

/// What files are checked against.
#[derive(Clone, Copy)]
pub struct Options<'a, E> {
    /// The release whose defaults and rules apply, instead of the one by the kind of file.
    pub compat: Option<Profile>,
    /// The machine of a node with that configuration.
    pub machine: &'a dyn Fn(&NodeConfig) -> Result<Subject, E>,
    /// The API server that manifests are meant for.
    pub server: &'a dyn Server,
    /// Memory of the machine, if known.
    pub memory: Option<Bytes>,
    /// The memory that daemons use; unknown daemons use what is reserved for them.
    pub daemons: Option<Bytes>,
}

impl<E> std::fmt::Debug for Options<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("compat", &self.compat)
            .field("memory", &self.memory)
            .field("daemons", &self.daemons)
            .finish_non_exhaustive()
    }
}

impl<E> Options<'_, E> {
    fn subject(&self, config: &NodeConfig) -> Result<Subject, E> {
        let mut subject = (self.machine)(config)?;
        subject.facts.daemons = self.daemons;
        Ok(subject)
    }
}

/// Checks files together: a LimitRange in one applies to the pods of its namespace in another.
pub fn check<E>(files: &[File], options: &Options<'_, E>) -> Result<Report, E> {
    let mut report = Report::default();
    let mut manifests = manifest::Set::new(options.server);
    for file in files {
        file.report_syntax(&mut report);
        for document in &file.documents {
            match Notation::of(&document.tree) {
                Some(notation) => {
                    let profile = options.compat.unwrap_or(notation.default_profile());
                    node::check(file, document, notation, profile, options, &mut report)?;
                }
                None if is_scheduler_configuration(&document.tree) => {
                    scheduler::check(file, document, &mut report);
                }
                None => manifests.add(file, document, options.compat, &mut report),
            }
        }
    }
    manifests.check(options.memory, &mut report);
    report.finish(files);
    Ok(report)
}
