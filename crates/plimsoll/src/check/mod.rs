//! `plimsoll check`: mistakes in configurations and manifests, and what they result in.
//!
//! Reads files and the machine; `plimsoll_report` checks. `machine` checks whether this machine can
//! run pods, `local` measures it.

mod local;
mod machine;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::config::{NodeConfig, Profile};
use plimsoll_report::check::{self, Capacity, File, Options, Report, parse_daemons};
use plimsoll_report::text::Palette;

use crate::exit::Exit;
use crate::failure::usage;
use crate::input::read_bytes;
use crate::print;

/// Arguments of `plimsoll check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Check a node configuration for a machine of 32 GiB
  plimsoll check --capacity cpu=4,memory=32Gi kubelet-config.yaml
  # Check manifests together with the LimitRange and the Namespace that apply to them
  plimsoll check namespace.yaml limit-range.yaml deployment.yaml
  # Check whether this machine can run pods
  plimsoll check --node")]
pub(crate) struct Arguments {
    /// Files to check, `-` for standard input.
    ///
    /// Node configurations (`KubeletConfiguration`, OKD node-config.yaml), scheduler configurations
    /// (`KubeSchedulerConfiguration`) and manifests.
    #[arg(required_unless_present = "node", value_name = "FILE")]
    files: Vec<String>,

    /// Check whether this machine can run pods, with the node configuration FILE if given.
    #[arg(long)]
    node: bool,

    /// With --node: container runtime, `embedded` or the socket of containerd or CRI-O.
    #[arg(
        long,
        value_name = "RUNTIME",
        default_value = "embedded",
        requires = "node"
    )]
    runtime: String,

    /// With --node: data directory of the node.
    #[arg(long, value_name = "DIR", default_value = crate::data_dir::DEFAULT_DATA_DIR, requires = "node")]
    data_dir: std::path::PathBuf,

    /// Capacity of the node, such as `cpu=4,memory=32Gi` [default: this machine's].
    ///
    /// Names are cpu, memory, ephemeral-storage, inodes, pid, swap and hugepages-SIZE.
    #[arg(long, value_name = "NAME=QUANTITY,…")]
    capacity: Option<String>,

    /// Memory that system daemons use, such as `memory=1Gi` [default: the reservations].
    #[arg(long, value_name = "NAME=QUANTITY")]
    daemons: Option<String>,

    /// Release whose defaults and rules apply [default: by the kind of file].
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
        format!("expected one of {}", known.join(", "))
    })
}

/// Exits with 1 if there are findings of level error.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.node {
        return machine::run(arguments);
    }
    let report = make_report(arguments)?;
    let text = match arguments.output {
        Format::Table => check::render(&report, Palette(print::stdout_colour())),
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
    let capacity = arguments.capacity.as_deref().map(Capacity::parse);
    let capacity = capacity.transpose().map_err(usage)?;
    let daemons = arguments.daemons.as_deref().map(parse_daemons);
    let daemons = daemons.transpose().map_err(usage)?;
    let files = arguments
        .files
        .iter()
        .map(|name| Ok(File::parse(name, &read_bytes(name)?)))
        .collect::<Result<Vec<_>>>()?;
    let machine = |config: &NodeConfig| match &capacity {
        Some(capacity) => Ok(capacity.subject()),
        None => local::subject(config),
    };
    let memory = match &capacity {
        Some(capacity) => capacity.memory(),
        None => local::memory(),
    };
    let options = Options {
        compat: arguments.compat,
        machine: &machine,
        memory,
        daemons,
    };
    check::check(&files, &options)
}
