//! `plimsoll store`: snapshots of what a cluster stores, and care for the files of stopped servers.

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

use crate::data_dir::{self, Lock, Part};
use crate::failure::Advise;
use crate::node::DEFAULT_DATA_DIR;

/// The file of the embedded store in a data directory.
pub(crate) const FILE: &str = "store.redb";

/// Sub-commands of `plimsoll store`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Forget history and make the file of a stopped server as small as it can be.
    Compact(compact::Arguments),
    /// Copy all objects from one store to another: from a file to etcd, or back.
    Copy(copy::Arguments),
    /// Make the store of a new data directory from a snapshot.
    Restore(restore::Arguments),
    /// Save everything that a cluster stores, as of one moment, in a file.
    Snapshot(snapshot::Arguments),
    /// Check a snapshot, and show what it holds.
    Status(status::Arguments),
    /// Check the file of a stopped server: structure, checksums, and every object.
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

/// The store of a stopped server, kept from being used until the lock is dropped.
fn stopped(directory: &Path) -> Result<(PathBuf, Lock)> {
    let path = directory.join(FILE);
    if !path.exists() {
        return Err(anyhow!("{} does not exist", path.display()).hint(format!(
            "name the data directory of a server with --data-dir; the usual one is {DEFAULT_DATA_DIR}"
        )));
    }
    let lock = data_dir::lock(directory, Part::Server)?;
    Ok((path, lock))
}
