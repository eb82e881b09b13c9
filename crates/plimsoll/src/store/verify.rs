//! `plimsoll store verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_apiserver::encryption::Keys;
use plimsoll_apiserver::store::{RedbStore, Report};
use plimsoll_report::text::Table;
use serde_json::json;

use super::{Format, status, stopped};
use crate::backend;
use crate::data_dir::DEFAULT_DATA_DIR;
use crate::exit::Exit;
use crate::print;

/// Arguments of `plimsoll store verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with code 1 if it finds a problem. Does not change the file.

Examples:
  # Verify the store of the default data directory
  plimsoll store verify")]
pub(crate) struct Arguments {
    /// Data directory of a stopped server.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,

    /// EncryptionConfiguration with the keys of encrypted objects.
    ///
    /// Without it only the checksums of encrypted objects are verified.
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let keys = match &arguments.encryption_provider_config {
        Some(file) => Some(backend::read_keys(file)?),
        None => None,
    };
    let (path, _lock) = stopped(&arguments.data_dir)?;
    let check = |key: &[u8], value: &[u8]| Keys::check_stored(keys.as_ref(), key, value);
    let report = RedbStore::verify(&path, &check).context("cannot verify the store")?;
    let text = match arguments.output {
        Some(Format::Json) => as_json(&report),
        None => as_text(&report),
    };
    print::write(&text)?;
    Ok(match report.problems.is_empty() {
        true => Exit::Success.into(),
        false => Exit::Failed.into(),
    })
}

fn as_json(report: &Report) -> String {
    let problems = report.problems.iter().map(|problem| {
        json!({
            "key": problem.key,
            "problem": problem.problem,
            "isHistory": !problem.is_current,
        })
    });
    let report = json!({
        "revision": report.revision,
        "compactedRevision": report.compacted,
        "totalKey": report.keys,
        "changes": report.rows,
        "totalSize": report.file_bytes,
        "problems": problems.collect::<Vec<_>>(),
    });
    format!("{report:#}\n")
}

fn as_text(report: &Report) -> String {
    let mut table = Table::new([
        "REVISION",
        "COMPACTED",
        "TOTAL KEYS",
        "CHANGES",
        "TOTAL SIZE",
    ]);
    table.row([
        report.revision.to_string(),
        report.compacted.to_string(),
        report.keys.to_string(),
        report.rows.to_string(),
        status::size(report.file_bytes),
    ]);
    let mut lines = table.lines();
    lines.push(String::new());
    for problem in &report.problems {
        let history = if problem.is_current { "" } else { " (history)" };
        let key = problem.key.as_deref().unwrap_or("the file");
        lines.push(format!("{key}{history}: {}", problem.problem));
    }
    lines.push(match report.problems.len() {
        0 => "No problems found.".to_owned(),
        1 => "1 problem found.".to_owned(),
        count => format!("{count} problems found."),
    });
    lines.join("\n") + "\n"
}
