//! `plimsoll down`: the counterpart of `plimsoll up` and `plimsoll node`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use plimsoll_core::duration;
use plimsoll_node::teardown::footprint::{self, Footprint, Runtime};
use plimsoll_node::teardown::{self, Options, Outcome, Scope};

use crate::data_dir::DEFAULT_DATA_DIR;
use crate::help::ADVANCED;
use crate::node::{absolute, helper_command};

/// The defaults of agents.
const DEFAULT_BRIDGE: &str = "plimsoll0";
const DEFAULT_POD_CIDR: &str = "10.88.0.0/16";
const DEFAULT_CGROUP_ROOT: &str = "/";

/// Arguments of `plimsoll down`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would be stopped and removed
  plimsoll down --dry-run
  # Stop the pods; plimsoll up runs them again
  plimsoll down
  # Stop the pods and remove images, objects and keys too
  plimsoll down --purge")]
pub(crate) struct Arguments {
    /// Data directory of the node.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,

    /// Also remove the data directory (images, objects, keys) and restore changed sysctls.
    #[arg(long)]
    purge: bool,

    /// Print what would be done without doing it.
    #[arg(long)]
    dry_run: bool,

    /// Maximum grace period of pods, such as `10s` or `0s` [default: the grace period of each pod].
    #[arg(long, value_name = "DURATION")]
    grace_period: Option<duration::Duration>,

    /// Bridge of the pod network, if the data directory does not record it.
    #[arg(long, value_name = "NAME", help_heading = ADVANCED)]
    bridge: Option<String>,

    /// Parent cgroup of the node's pods, if the data directory does not record it.
    #[arg(long, value_name = "CGROUP", help_heading = ADVANCED)]
    cgroup_root: Option<String>,

    /// Socket of containerd or CRI-O, if the data directory does not record it.
    #[arg(long, value_name = "RUNTIME", help_heading = ADVANCED)]
    runtime: Option<String>,
}

/// Exits with 1 if something could not be removed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    carry_out(arguments, &arguments.options()?)
}

fn carry_out(arguments: &Arguments, options: &Options) -> Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "plimsoll down changes mounts, cgroups and networks and needs root; run it with sudo"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    if arguments.dry_run {
        let survey = runtime.block_on(teardown::survey(options))?;
        print(&or_nothing(survey.findings.intentions(), options))?;
        return Ok(conclude(&survey.problems));
    }
    let outcome = runtime.block_on(teardown::tear_down(options, &print_progress))?;
    print(&done(&outcome, options))?;
    Ok(conclude(&problems(&outcome)))
}

impl Arguments {
    fn options(&self) -> Result<Options> {
        let data_dir = absolute(&self.data_dir)?;
        let longest_grace = self.grace_period.map(|period| {
            let nanos = u64::try_from(period.as_nanos());
            nanos
                .map(std::time::Duration::from_nanos)
                .with_context(|| format!("--grace-period {period} must not be negative"))
        });
        Ok(Options {
            assumed: self.assumed(&data_dir).into_iter().collect(),
            data_dir,
            scope: match self.purge {
                true => Scope::Everything,
                false => Scope::Running,
            },
            longest_grace: longest_grace.transpose()?,
            helper: helper_command()?,
        })
    }

    /// The footprint of a node that has not recorded one. Without flags it is known only for the
    /// default data directory.
    fn assumed(&self, data_dir: &Path) -> Option<Footprint> {
        let is_default = data_dir == Path::new(DEFAULT_DATA_DIR);
        let is_recorded = footprint::read(data_dir).is_ok_and(|recorded| !recorded.is_empty());
        let is_given =
            self.bridge.is_some() || self.cgroup_root.is_some() || self.runtime.is_some();
        if !is_given && (is_recorded || !is_default) {
            return None;
        }
        let runtime = match self.runtime.as_deref() {
            None | Some("embedded") => Runtime::Embedded {
                bridge: given_or(self.bridge.as_ref(), DEFAULT_BRIDGE),
                pod_cidr: DEFAULT_POD_CIDR.to_owned(),
                cni_conf_dir: "/etc/cni/net.d".into(),
                cni_bin_dir: "/opt/cni/bin".into(),
            },
            Some(endpoint) => Runtime::Cri {
                endpoint: endpoint.to_owned(),
            },
        };
        let logs = match is_default {
            true => PathBuf::from("/var/log"),
            false => data_dir.join("log"),
        };
        let cgroup_root = given_or(self.cgroup_root.as_ref(), DEFAULT_CGROUP_ROOT);
        Some(Footprint {
            runtime,
            uses_systemd_cgroups: false,
            agent_cgroup: format!("{}/kubelet", cgroup_root.trim_end_matches('/')),
            cgroup_root,
            root: data_dir.join("kubelet"),
            pod_logs: logs.join("pods"),
            container_logs: logs.join("containers"),
        })
    }
}

fn given_or(given: Option<&String>, default: &str) -> String {
    given.cloned().unwrap_or_else(|| default.to_owned())
}

fn done(outcome: &Outcome, options: &Options) -> Vec<String> {
    let mut lines = outcome.removed.deeds();
    if !outcome.kept.is_empty() {
        let (dir, kept) = (options.data_dir.display(), outcome.kept.join(", "));
        lines.push(format!(
            "kept {dir}: it contains files that are not Plimsoll's: {kept}"
        ));
    }
    match outcome.left.is_empty() {
        true => or_nothing(lines, options),
        false => lines,
    }
}

fn or_nothing(lines: Vec<String>, options: &Options) -> Vec<String> {
    let dir = options.data_dir.display();
    let left = match options.scope {
        Scope::Running => format!("nothing of the node of {dir} runs or is left on this machine"),
        Scope::Everything => format!("nothing of the node of {dir} is left on this machine"),
    };
    match lines.is_empty() {
        true => vec![left],
        false => lines,
    }
}

fn problems(outcome: &Outcome) -> Vec<String> {
    let left = outcome.left.failures();
    outcome.problems.iter().cloned().chain(left).collect()
}

fn print(lines: &[String]) -> Result<()> {
    let mut out = std::io::stdout();
    for line in lines {
        writeln!(out, "{line}").context("cannot write to standard output")?;
    }
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "progress of slow steps is for the user"
)]
fn print_progress(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stderr, reason = "this prints the errors of the command")]
fn conclude(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("error: {problem}");
    }
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    }
}
