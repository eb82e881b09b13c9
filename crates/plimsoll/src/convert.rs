//! `plimsoll config convert`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

/// Arguments of `plimsoll config convert`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The OKD node-config.yaml, `-` for standard input.
    #[arg(value_name = "FILE")]
    file: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let _ = &arguments.file;
    Ok(ExitCode::SUCCESS)
}
