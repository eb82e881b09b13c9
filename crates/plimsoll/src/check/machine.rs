//! `plimsoll check --node`: whether this machine can run pods.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use plimsoll_node::agent::Serving;
use plimsoll_node::preflight::{Finding, Level, judge, observe};
use plimsoll_report::text::Table;

use super::{Arguments, Format};
use crate::exit::Exit;
use crate::failure::usage;
use crate::node::{DefaultConfinement, NodeArguments, subject};

/// The flags of a node as a command line of their own.
#[derive(Parser)]
struct AsNode {
    #[command(flatten)]
    node: NodeArguments,
}

/// Exits with 1 if the machine cannot run pods as it is.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut line = vec!["node", "--runtime", arguments.runtime.as_str()];
    let names = arguments.names();
    match names.as_slice() {
        [] => {}
        [file] => line.extend(["--config", file]),
        files => {
            let count = files.len();
            return Err(usage(format!(
                "--node takes at most one configuration, got {count}"
            )));
        }
    }
    let node = AsNode::try_parse_from(line)?.node;
    let options = node.options(
        DefaultConfinement::Upstream,
        &arguments.data_dir,
        Serving::SelfSigned,
        None,
    )?;
    let findings = judge(&observe(&subject(&options)), &options.config);
    let text = match arguments.output {
        Format::Text | Format::Wide => render(&findings),
        Format::Sarif => return Err(usage("--node has no output format sarif")),
        Format::Json => serde_json::to_string_pretty(&as_data(&findings))? + "\n",
        Format::Yaml => serde_saphyr::to_string(&as_data(&findings))?,
    };
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .context("cannot write the report")?;
    let is_unfit = findings.iter().any(|finding| finding.level == Level::Error);
    Ok(match is_unfit {
        true => Exit::Failed.into(),
        false => Exit::Success.into(),
    })
}

fn render(findings: &[Finding]) -> String {
    let mut table = Table::new(["CHECK", "RESULT", "STATE", "REMEDY"]);
    for finding in findings {
        let level = finding.level.to_string();
        let Finding {
            subject,
            state,
            remedy,
            ..
        } = finding;
        table.row([*subject, level.as_str(), state, remedy]);
    }
    table.lines().join("\n") + "\n"
}

fn as_data(findings: &[Finding]) -> serde_json::Value {
    let row = |finding: &Finding| {
        serde_json::json!({
            "check": finding.subject,
            "result": finding.level.to_string(),
            "state": finding.state,
            "remedy": finding.remedy,
        })
    };
    findings.iter().map(row).collect()
}
