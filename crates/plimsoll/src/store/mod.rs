//! `plimsoll store`: snapshots of a cluster's objects, and maintenance of stopped servers' stores.

mod compact;
mod copy;
mod place;
mod restore;
mod snapshot;
mod status;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Subcommand, ValueEnum};

use crate::data_dir::{self, DEFAULT_DATA_DIR, Lock, Part, STORE_FILE};
use crate::failure::Advise;

/// Sub-commands of `plimsoll store`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Remove history from the store of a stopped server and shrink its file.
    Compact(compact::Arguments),
    /// Copy all objects between the embedded store and etcd.
    Copy(copy::Arguments),
    /// Restore a snapshot into a data directory.
    Restore(restore::Arguments),
    /// Save a consistent snapshot of all objects to a file.
    Snapshot(snapshot::Arguments),
    /// Verify a snapshot and show its revision and size.
    Status(status::Arguments),
    /// Verify structure, checksums and objects of a stopped server's store.
    Verify(verify::Arguments),
}

/// Output formats beside a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
}

/// Runs a sub-command.
pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Compact(arguments) => compact::run(arguments),
        Command::Copy(arguments) => copy::run(arguments),
        Command::Restore(arguments) => restore::run(arguments),
        Command::Snapshot(arguments) => snapshot::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
    }
}

/// The store of a stopped server, and a lock that keeps servers from using it.
fn stopped(directory: &Path) -> Result<(PathBuf, Lock)> {
    let path = directory.join(STORE_FILE);
    if !path.exists() {
        return Err(anyhow!("{} does not exist", path.display()).hint(format!(
            "name the data directory of a server with --data-dir; the default is {DEFAULT_DATA_DIR}"
        )));
    }
    let lock = data_dir::lock(directory, Part::Server)?;
    Ok((path, lock))
}
