//! `plimsoll config convert`: an OKD node-config.yaml as a `KubeletConfiguration`.
//!
//! The document goes to standard output, what to know about it to standard error, so that the
//! output can be used as a file.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use plimsoll_core::config::{Conversion, Notation, convert_okd_node_config};

use crate::input::read_bytes;

/// Arguments of `plimsoll config convert`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The OKD node-config.yaml, `-` for standard input.
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

/// Exits with 1, and prints no document, if the original has errors.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let bytes = read_bytes(&arguments.file)?;
    let profile = Notation::OkdNodeConfig.default_profile();
    let conversion = convert_okd_node_config(&bytes, profile);
    if !conversion.original.problems.is_empty() {
        report_problems(&arguments.file, &conversion);
        return Ok(ExitCode::from(1));
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
    Ok(ExitCode::SUCCESS)
}

#[expect(
    clippy::print_stderr,
    reason = "notes go beside the document, not into it"
)]
fn report_notes(conversion: &Conversion) {
    for note in &conversion.notes {
        eprintln!("note: {note}");
    }
}

#[expect(clippy::print_stderr, reason = "this is where errors reach people")]
fn report_problems(file: &str, conversion: &Conversion) {
    for problem in &conversion.original.problems {
        match problem.position {
            Some(position) => eprintln!("error: {file}:{}: {problem}", position.line),
            None => eprintln!("error: {file}: {problem}"),
        }
    }
    eprintln!("hint: plimsoll check {file} tells more");
}
