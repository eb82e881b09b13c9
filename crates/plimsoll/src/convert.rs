//! `plimsoll config convert`: an OKD node-config.yaml as a `KubeletConfiguration`.
//!
//! The document goes to standard output and notes go to standard error, so that the output can be
//! redirected to a file.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use plimsoll_core::config::{Conversion, Notation, convert_okd_node_config};
use plimsoll_core::lint::{Level, MachineFacts, lint_node};
use plimsoll_core::problem::Problem;

use crate::exit::Exit;
use crate::input::read_bytes;
use crate::logging;
use crate::mistakes::checkable;

/// Arguments of `plimsoll config convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Write a KubeletConfiguration; notes about changed settings go to standard error
  plimsoll config convert node-config.yaml > kubelet-config.yaml")]
pub(crate) struct Arguments {
    /// OKD node-config.yaml, `-` for standard input.
    #[arg(value_name = "FILE")]
    file: String,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

/// Prints no document if the original has errors.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let bytes = read_bytes(&arguments.file)?;
    let profile = Notation::OkdNodeConfig.default_profile();
    let conversion = convert_okd_node_config(&bytes, profile);
    if !conversion.original.problems.is_empty() {
        return Err(checkable(&arguments.file, &conversion.original.problems));
    }
    let errors = errors_of(&conversion);
    if !errors.is_empty() {
        return Err(checkable(&arguments.file, &errors));
    }
    let text = match arguments.output {
        Format::Yaml => conversion.document.to_yaml(),
        Format::Json => {
            let json = conversion.document.to_json("", &mut Vec::new());
            serde_json::to_string_pretty(&json)? + "\n"
        }
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    written.context("cannot write the configuration")?;
    report_notes(&conversion);
    Ok(Exit::Success.into())
}

/// Settings that the kubelet accepts but that cannot work on any machine.
fn errors_of(conversion: &Conversion) -> Vec<Problem> {
    let findings = lint_node(&conversion.original.config, &MachineFacts::default());
    let errors = findings.into_iter().filter(|one| one.level == Level::Error);
    let problems = errors.map(|one| {
        let path = Notation::OkdNodeConfig.own_path(&one.path);
        Problem::refused(path, one.message).at(one.position)
    });
    problems.collect()
}

fn report_notes(conversion: &Conversion) {
    for note in &conversion.notes {
        logging::print_line(&format!("note: {note}"));
    }
}
