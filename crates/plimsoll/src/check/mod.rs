//! `plimsoll check`: what configurations and manifests come to, and what is wrong with them.
//!
//! Reading order: `input` (files to documents), `capacity` (for which machine), `node`, `scheduler`
//! and `manifest` (documents to reports), `machine` (whether this one can run pods), `report` (the result as data; documented in docs/check.md),
//! `render` (the same for people).

mod capacity;
mod input;
mod machine;
mod manifest;
mod node;
mod render;
mod report;
mod scheduler;

pub(crate) use capacity::overridden_machine;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::config::Notation;
use plimsoll_core::config::Profile;
use plimsoll_core::scheduling::configuration::is_scheduler_configuration;

use crate::exit::Exit;
use crate::failure::Advise;
use crate::print::{self, Colour, Palette};
use capacity::Subject;
use report::Report;

/// Arguments of `plimsoll check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files to check, `-` for standard input: node-config.yaml, `KubeletConfiguration`,
    /// `KubeSchedulerConfiguration`, manifests.
    #[arg(required_unless_present = "node", value_name = "FILE")]
    files: Vec<String>,

    /// Check whether this machine can run pods, with the configuration in FILE if one is given.
    #[arg(long)]
    node: bool,

    /// With --node: who would run containers, `embedded` or the socket of containerd or CRI-O.
    #[arg(
        long,
        value_name = "RUNTIME",
        default_value = "embedded",
        requires = "node"
    )]
    runtime: String,

    /// With --node: where the node would keep everything.
    #[arg(long, value_name = "DIR", default_value = crate::node::DEFAULT_DATA_DIR, requires = "node")]
    data_dir: std::path::PathBuf,

    /// Capacity of the node, for example `cpu=4,memory=32Gi,ephemeral-storage=100Gi`; this
    /// machine's if not given. Also inodes, pid, swap and `hugepages-SIZE`.
    #[arg(long, value_name = "NAME=QUANTITY,…")]
    capacity: Option<String>,

    /// Memory that daemons outside pods use, for example `memory=1Gi`; their reservation if not
    /// given.
    #[arg(long, value_name = "NAME=QUANTITY")]
    daemons: Option<String>,

    /// Release whose defaults and rules hold; by the kind of file if not given.
    #[arg(long, value_name = "PROFILE", value_parser = parse_profile)]
    compat: Option<Profile>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

fn parse_profile(word: &str) -> Result<Profile, String> {
    Profile::from_word(word).ok_or_else(|| {
        let known: Vec<&str> = Profile::ALL
            .iter()
            .map(|profile| profile.as_str())
            .collect();
        format!("known profiles are {}", known.join(", "))
    })
}

/// Exits with 1 if there are findings of level error.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.node {
        return machine::run(arguments);
    }
    let report = make_report(arguments)?;
    let text = match arguments.output {
        Format::Table => render::render(&report, Palette(Colour::for_stdout())),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Yaml => serde_saphyr::to_string(&report)?,
    };
    print::write(&text)?;
    Ok(match report.summary.errors {
        0 => Exit::Success.into(),
        _ => Exit::Failed.into(),
    })
}

fn make_report(arguments: &Arguments) -> Result<Report> {
    let subject = Subject::new(arguments.capacity.as_deref(), arguments.daemons.as_deref());
    let subject = subject.exit(Exit::Usage)?;
    let files = arguments
        .files
        .iter()
        .map(|file| input::read(file))
        .collect::<Result<Vec<_>>>()?;
    let mut report = Report::default();
    let mut manifests = manifest::Set::default();
    for file in &files {
        file.report_syntax(&mut report);
        for document in &file.documents {
            match Notation::of(&document.tree) {
                Some(notation) => {
                    let profile = arguments.compat.unwrap_or(notation.default_profile());
                    node::check(file, document, notation, profile, &subject, &mut report)?;
                }
                None if is_scheduler_configuration(&document.tree) => {
                    scheduler::check(file, document, &mut report);
                }
                None => manifests.add(file, document, arguments.compat, &mut report),
            }
        }
    }
    manifests.check(&subject, &mut report);
    // Workloads are checked last, but shown where they stand.
    let place = |file: &String| arguments.files.iter().position(|given| given == file);
    report
        .documents
        .sort_by_key(|document| (place(&document.file), document.document));
    report.finish();
    Ok(report)
}
