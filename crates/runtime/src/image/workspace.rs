//! A directory for unfinished work, gone with the work.
//!
//! An operation holds the lock of its workspace. A workspace without a holder was left by a crash,
//! and is removed. A workspace also names the content that its work counts on, which
//! garbage collection therefore spares.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::file::{self, Error};
use super::lock::Lock;
use super::tree;

const LOCK: &str = "lock";
const SPARED: &str = "spared.json";

/// One piece of unfinished work. Dropping it removes what was not moved elsewhere.
#[derive(Debug)]
pub struct Workspace {
    directory: PathBuf,
    _lock: Lock,
}

impl Workspace {
    /// A new one among others. The store must be locked meanwhile, or it may be swept before it is
    /// held.
    pub fn new(among: &Path) -> Result<Workspace, Error> {
        let name = format!("{:016x}", fastrand::u64(..));
        let directory = among.join(name);
        file::make_directory(&directory)?;
        let lock = Lock::acquire(&directory.join(LOCK))?;
        Ok(Workspace {
            directory,
            _lock: lock,
        })
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Names content that must not be collected while this work is unfinished.
    pub fn spare(&self, content: &BTreeSet<Digest>) -> Result<(), Error> {
        file::write_json(&self.path(SPARED), content)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Err(error) = tree::remove(&self.directory) {
            // The next garbage collection removes it.
            tracing::debug!(directory = %self.directory.display(), %error, "failed to remove workspace");
        }
    }
}

/// What all work counts on that is going on.
pub fn spared_content(among: &Path) -> Result<BTreeSet<Digest>, Error> {
    let mut spared = BTreeSet::new();
    for name in file::names(among)? {
        let path = among.join(name).join(SPARED);
        spared.extend(file::read_json::<BTreeSet<Digest>>(&path)?.unwrap_or_default());
    }
    Ok(spared)
}

/// The workspaces without a holder. The store must be locked.
pub fn abandoned(among: &Path) -> Result<Vec<PathBuf>, Error> {
    let directories = file::names(among)?.into_iter().map(|name| among.join(name));
    Ok(directories
        .filter(|directory| !Lock::is_held(&directory.join(LOCK)))
        .collect())
}
