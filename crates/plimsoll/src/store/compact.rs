//! `plimsoll store compact`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use plimsoll_apiserver::store::RedbStore;
use plimsoll_report::text::Table;

use super::{status, stopped};
use crate::data_dir::DEFAULT_DATA_DIR;
use crate::exit::Exit;
use crate::print;

/// Arguments of `plimsoll store compact`.
#[derive(Debug, Args)]
#[command(
    after_help = "A running server removes history by itself and reuses the space; its file \
    shrinks only with this command, or when the disk is full.

Examples:
  # Shrink the store of the default data directory
  plimsoll store compact"
)]
pub(crate) struct Arguments {
    /// Data directory of a stopped server.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (path, _lock) = stopped(&arguments.data_dir)?;
    let sizes = RedbStore::compact_file(&path).context("cannot compact the store")?;
    let mut table = Table::new(["SIZE BEFORE", "SIZE AFTER"]);
    table.row([status::size(sizes.0), status::size(sizes.1)]);
    print::write(&(table.lines().join("\n") + "\n"))?;
    Ok(Exit::Success.into())
}
