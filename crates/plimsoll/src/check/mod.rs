//! `plimsoll check`: mistakes in configurations and manifests, and what they result in.
//!
//! `files` reads files and directories, `local` measures this machine, `api_server` creates objects as
//! the server does; `plimsoll_report` checks. `machine` checks whether this machine can run pods.

mod api_server;
mod files;
mod local;
mod machine;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::config::{NodeConfig, Profile};
use plimsoll_report::check::{self, Capacity, Detail, Options, Report, parse_daemons};
use plimsoll_report::text::Palette;

use crate::exit::Exit;
use crate::failure::usage;
use crate::help::NODE;
use crate::print;

use api_server::ApiServer;
use files::Recursion;

/// Arguments of `plimsoll check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Check a node configuration for a machine of 32 GiB
  plimsoll check --capacity cpu=4,memory=32Gi kubelet-config.yaml
  # Check manifests together with the LimitRange and the Namespace that apply to them
  plimsoll check namespace.yaml limit-range.yaml deployment.yaml
  # Check all manifests below a directory, for a code host
  plimsoll check -R deploy/ -o sarif > plimsoll.sarif
  # Check whether this machine can run pods
  plimsoll check --node")]
pub(crate) struct Arguments {
    /// Files and directories to check, `-` for standard input.
    ///
    /// Node configurations (`KubeletConfiguration`, OKD node-config.yaml), scheduler configurations
    /// (`KubeSchedulerConfiguration`) and manifests. Of a directory, files that end in .json, .yaml
    /// or .yml are read.
    #[arg(required_unless_present_any = ["node", "filename"], value_name = "FILE")]
    files: Vec<String>,

    /// File or directory to check, as with kubectl; can be repeated.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,

    /// Read directories recursively.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Check whether this machine can run pods, with the node configuration FILE if given.
    #[arg(long, help_heading = NODE)]
    node: bool,

    /// With --node: container runtime, `embedded` or the socket of containerd or CRI-O.
    #[arg(
        long,
        value_name = "RUNTIME",
        default_value = "embedded",
        requires = "node",
        help_heading = NODE
    )]
    runtime: String,

    /// With --node: data directory of the node.
    #[arg(
        long,
        value_name = "DIR",
        default_value = crate::data_dir::DEFAULT_DATA_DIR,
        requires = "node",
        help_heading = NODE
    )]
    data_dir: std::path::PathBuf,

    /// Capacity of the node, such as `cpu=4,memory=32Gi` [default: this machine's].
    ///
    /// Names are cpu, memory, ephemeral-storage, inodes, pid, swap and hugepages-SIZE.
    #[arg(long, value_name = "NAME=QUANTITY,…", help_heading = NODE)]
    capacity: Option<String>,

    /// Memory that system daemons use, such as `memory=1Gi` [default: the reservations].
    #[arg(long, value_name = "NAME=QUANTITY", help_heading = NODE)]
    daemons: Option<String>,

    /// Release whose defaults and rules apply [default: by the kind of file].
    #[arg(long, value_name = "PROFILE", value_parser = parse_profile, help_heading = NODE)]
    compat: Option<Profile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Findings, and what named files result in.
    #[value(alias = "table")]
    Text,
    /// The same for files of directories, too.
    Wide,
    Json,
    Yaml,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
}

/// Where the rules are described.
const HOME: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/check.md");

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
        Format::Text => check::render(&report, Detail::Named, Palette(print::stdout_colour())),
        Format::Wide => check::render(&report, Detail::All, Palette(print::stdout_colour())),
        Format::Sarif => {
            let sarif = check::sarif(&report, env!("CARGO_PKG_VERSION"), HOME);
            serde_json::to_string_pretty(&sarif)? + "\n"
        }
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Yaml => serde_saphyr::to_string(&report)?,
    };
    print::write(&text)?;
    Ok(match report.summary.errors {
        0 => Exit::Success.into(),
        _ => Exit::Failed.into(),
    })
}

impl Arguments {
    /// Files and directories, those without a flag first.
    fn names(&self) -> Vec<String> {
        [self.files.as_slice(), self.filename.as_slice()].concat()
    }
}

fn make_report(arguments: &Arguments) -> Result<Report> {
    let capacity = arguments.capacity.as_deref().map(Capacity::parse);
    let capacity = capacity.transpose().map_err(usage)?;
    let daemons = arguments.daemons.as_deref().map(parse_daemons);
    let daemons = daemons.transpose().map_err(usage)?;
    let recursion = match arguments.recursive {
        true => Recursion::On,
        false => Recursion::Off,
    };
    let files = files::read(&arguments.names(), recursion)?;
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
        server: &ApiServer,
        memory,
        daemons,
    };
    check::check(&files, &options)
}
