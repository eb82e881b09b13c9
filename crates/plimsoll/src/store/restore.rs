//! `plimsoll store restore`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use plimsoll_apiserver::store::{Error, RedbStore, Revision};

use super::{FILE, status};
use crate::data_dir::{self, Part};
use crate::exit::Exit;
use crate::failure::Advise;
use crate::print;

/// Arguments of `plimsoll store restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # A new server with the objects of a snapshot, and with the keys of the old one
  plimsoll store restore backup.snapshot --data-dir /var/lib/plimsoll
  cp -a backup-pki /var/lib/plimsoll/pki
  plimsoll server")]
pub(crate) struct Arguments {
    /// The snapshot.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The data directory to make, or to give a store.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    /// Replace the store that is in the data directory.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    // All of it is looked at before anything is written.
    status::check(&arguments.file)?;
    let directory = data_dir::make(&arguments.data_dir)?;
    let _lock = data_dir::lock(&directory, Part::Server)?;
    let target = directory.join(FILE);
    if target.exists() && !arguments.force {
        return Err(anyhow!("{} exists", target.display())
            .hint("name another directory, or give --force to replace the store that is there"));
    }
    let unfinished = directory.join("store.redb.restoring");
    let restored = fill(&arguments.file, &unfinished);
    let restored = restored.and_then(|restored| {
        put_into_place(&unfinished, &target, &directory)?;
        Ok(restored)
    });
    if restored.is_err() {
        // What is there already is as it was.
        let _ = fs::remove_file(&unfinished);
    }
    let (keys, revision) = restored?;
    let mut text = format!(
        "restored {keys} keys to {}\n\
         The store goes on at revision {revision}: clients of the old one list everything again.\n",
        target.display()
    );
    if !directory.join("pki/ca.key").exists() {
        text += &format!(
            "Copy the keys of the old server to {} before you start this one.\n",
            directory.join("pki").display()
        );
    }
    print::write(&text)?;
    Ok(Exit::Success.into())
}

/// Writes the snapshot's keys to a new file.
fn fill(snapshot: &Path, path: &Path) -> Result<(u64, Revision)> {
    if path.exists() {
        // Of a restore that was killed.
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
