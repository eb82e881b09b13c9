//! `plimsoll store status`, and the output format of snapshots.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_apiserver::store::{SnapshotReader, Summary};
use plimsoll_report::text::{Table, Unit};
use serde_json::json;

use super::Format;
use crate::exit::Exit;
use crate::print;

/// Digits of the hash in the table.
const SHOWN_DIGITS: usize = 16;

/// Arguments of `plimsoll store status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Verify a snapshot
  plimsoll store status backup.snapshot")]
pub(crate) struct Arguments {
    /// Snapshot file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Output format; `json` has the full hash and sizes in bytes.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let summary = check(&arguments.file)?;
    print::write(&shown(&summary, arguments.output))?;
    Ok(Exit::Success.into())
}

/// Reads the whole snapshot. Fails if it is damaged or truncated.
pub(super) fn check(path: &Path) -> Result<Summary> {
    let summary = open(path)?.finish();
    summary.with_context(|| format!("cannot use {}", path.display()))
}

pub(super) fn open(path: &Path) -> Result<SnapshotReader<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let reader = SnapshotReader::open(BufReader::new(file));
    reader.with_context(|| format!("cannot use {}", path.display()))
}

/// The columns of `etcdctl snapshot status`.
pub(super) fn shown(summary: &Summary, format: Option<Format>) -> String {
    if format == Some(Format::Json) {
        let summary = json!({
            "hash": summary.hash,
            "revision": summary.revision,
            "totalKey": summary.keys,
            "totalSize": summary.bytes,
            "unreadable": summary.unreadable,
        });
        return format!("{summary:#}\n");
    }
    let mut table = Table::new(["HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE"]);
    let hash = summary.hash.get(..SHOWN_DIGITS).unwrap_or(&summary.hash);
    table.row([
        hash.to_owned(),
        summary.revision.to_string(),
        summary.keys.to_string(),
        size(summary.bytes),
    ]);
    table.lines().join("\n") + "\n"
}

pub(super) fn size(bytes: u64) -> String {
    Unit::Bytes.about(i64::try_from(bytes).unwrap_or(i64::MAX))
}
