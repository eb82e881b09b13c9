//! `plimsoll store restore`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use plimsoll_apiserver::store::{Error, RedbStore, Revision};

use super::status;
use crate::data_dir::{self, Part, STORE_FILE};
use crate::exit::Exit;
use crate::failure::Advise;
use crate::print;

/// Arguments of `plimsoll store restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Start a new server with the objects of a snapshot and the keys of the old server
  plimsoll store restore backup.snapshot --data-dir /var/lib/plimsoll
  cp -a backup-pki /var/lib/plimsoll/pki
  plimsoll server")]
pub(crate) struct Arguments {
    /// Snapshot file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Data directory to restore to; created if missing.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    /// Replace an existing store in the data directory.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Verify the whole snapshot before writing anything.
    status::check(&arguments.file)?;
    let directory = data_dir::make(&arguments.data_dir)?;
    let _lock = data_dir::lock(&directory, Part::Server)?;
    let target = directory.join(STORE_FILE);
    if target.exists() && !arguments.force {
        return Err(anyhow!("{} already exists", target.display())
            .hint("name another directory, or replace the existing store with --force"));
    }
    let unfinished = directory.join("store.redb.restoring");
    let restored = fill(&arguments.file, &unfinished);
    let restored = restored.and_then(|restored| {
        put_into_place(&unfinished, &target, &directory)?;
        Ok(restored)
    });
    if restored.is_err() {
        // An existing store is unchanged.
        let _ = fs::remove_file(&unfinished);
    }
    let (keys, revision) = restored?;
    let mut text = format!(
        "restored {keys} keys to {}\n\
         The store continues at revision {revision}, so that clients of the old one relist.\n",
        target.display()
    );
    if !directory.join("pki/ca.key").exists() {
        text += &format!(
            "Copy the keys of the old server to {} before you start the new one.\n",
            directory.join("pki").display()
        );
    }
    print::write(&text)?;
    Ok(Exit::Success.into())
}

/// Writes the snapshot's keys to a new file.
fn fill(snapshot: &Path, path: &Path) -> Result<(u64, Revision)> {
    if path.exists() {
        // Left by a restore that was killed.
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let mut reader = status::open(snapshot)?;
    let revision = reader.revision();
    let name = snapshot.display().to_string();
    let mut entries = std::iter::from_fn(|| {
        let next = reader.next_entry().transpose()?;
        Some(next.map_err(|error| Error::reading(name.clone(), error)))
    });
    RedbStore::create_with(path, revision, &mut entries).context("cannot write the store")
}

fn put_into_place(path: &Path, target: &Path, directory: &Path) -> Result<()> {
    let place = || {
        File::open(path)?.sync_all()?;
        fs::rename(path, target)?;
        File::open(directory)?.sync_all()
    };
    place().with_context(|| format!("cannot write {}", target.display()))
}
