//! Room on the disk, and what is refused when there is none.
//!
//! Two things can run out: the disk, and the quota. From then on writes that need more room are
//! refused, and the others still work: deletes, updates that do not grow, and what is marked as
//! urgent. The room that a delete needs on a full disk is kept in a file beside the store, whose only
//! purpose is to be emptied then. It is filled again as soon as the disk has room, which ends the
//! alarm.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use super::super::Error;
use super::index::Index;

/// What has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Alarm {
    #[error(
        "the disk is full: creates and updates that grow are refused, deletes are not; free space \
         on the disk, or delete objects"
    )]
    Disk,
    #[error(
        "{used} of {quota} bytes are in use: creates and updates that grow are refused, deletes are \
         not; delete objects, or raise the quota"
    )]
    Quota { used: u64, quota: u64 },
}

/// What is left, and what follows from it.
#[derive(Debug)]
pub(super) struct Space {
    store: String,
    reserve: Option<Reserve>,
    quota: Option<u64>,
    alarm: Option<Alarm>,
    /// Whether rows were removed since the file was made smaller.
    has_holes: bool,
}

impl Space {
    pub(super) fn new(store: &str, reserve: Option<Reserve>, quota: Option<u64>) -> Self {
        Self {
            store: store.to_owned(),
            reserve,
            quota,
            alarm: None,
            has_holes: true,
        }
    }

    /// The error that refused writes get, if any are.
    pub(super) fn error(&self) -> Option<Error> {
        Some(Error::Full {
            store: self.store.clone(),
            source: Arc::new(self.alarm?),
        })
    }

    /// Whether any write may be refused: if not, nothing needs to be known of its size.
    pub(super) fn is_limited(&self) -> bool {
        self.alarm.is_some() || self.quota.is_some()
    }

    /// Why a write that changes the size of what is stored by `growth` is refused, if it is.
    /// `staged` is what others in the same commit add.
    pub(super) fn refusal(&mut self, index: &Index, staged: i64, growth: i64) -> Option<Error> {
        if growth <= 0 {
            return None;
        }
        if self.alarm.is_none()
            && let Some(quota) = self.quota
            && index.live_bytes().saturating_add_signed(staged + growth) > quota
        {
            self.alarm = Some(Alarm::Quota {
                used: index.live_bytes(),
                quota,
            });
        }
        self.error()
    }

    /// Bytes of history that there is room for.
    pub(super) fn room_for_history(&self, index: &Index) -> u64 {
        match (self.alarm, self.quota) {
            (Some(Alarm::Disk), _) => 0,
            (_, Some(quota)) => quota.saturating_sub(index.live_bytes()),
            (_, None) => u64::MAX,
        }
    }

    /// The disk is full. Whether room was made for one more try.
    pub(super) fn disk_is_full(&mut self) -> bool {
        let Some(reserve) = &mut self.reserve else {
            return false;
        };
        self.alarm = Some(Alarm::Disk);
        reserve.release()
    }

    /// Rows were removed.
    pub(super) fn note_removal(&mut self) {
        self.has_holes = true;
    }

    /// Ends the alarm if there is room again. Whether the file should be made smaller first.
    pub(super) fn look(&mut self, index: &Index) -> bool {
        match self.alarm {
            None => {
                match self.reserve.as_mut().map(Reserve::fill) {
                    Some(Err(error)) if is_lack_of_space(&error) => self.alarm = Some(Alarm::Disk),
                    Some(Err(error)) => {
                        tracing::warn!(store = self.store, %error, "no space is kept for deletes");
                        self.reserve = None;
                    }
                    None | Some(Ok(())) => {}
                }
                false
            }
            Some(Alarm::Disk) => {
                let filled = self.reserve.as_mut().map(Reserve::fill);
                if matches!(filled, None | Some(Ok(()))) {
                    self.alarm = None;
                    return false;
                }
                std::mem::take(&mut self.has_holes)
            }
            Some(Alarm::Quota { quota, .. }) => {
                let used = index.live_bytes();
                // Some room, so that the alarm does not come and go with every write.
                self.alarm = (used > quota / 20 * 19).then_some(Alarm::Quota { used, quota });
                false
            }
        }
    }
}

fn is_lack_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A file that keeps room on the disk.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    is_held: bool,
}

impl Reserve {
    /// The reserve beside a store, as an earlier process left it; none of no bytes.
    pub(super) fn beside(store: &Path, bytes: u64) -> Option<Self> {
        let mut path = store.as_os_str().to_owned();
        path.push(".reserve");
        let path = PathBuf::from(path);
        let is_held = path
            .metadata()
            .is_ok_and(|metadata| metadata.blocks() * 512 >= bytes && metadata.len() == bytes);
        (bytes > 0).then_some(Self {
            path,
            bytes,
            is_held,
        })
    }

    /// Gives the room back to the disk. Whether there was any.
    pub(super) fn release(&mut self) -> bool {
        let emptied = self.is_held && File::create(&self.path).is_ok();
        self.is_held = false;
        emptied
    }

    /// Takes the room, unless hardly any would be left.
    fn fill(&mut self) -> io::Result<()> {
        if self.is_held {
            return Ok(());
        }
        let file = (OpenOptions::new().write(true).create(true))
            .truncate(true)
            .mode(0o600)
            .open(&self.path)?;
        let disk = fstatvfs(&file)?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < self.bytes / 2 * 3 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let filled = match fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(&file, self.bytes),
            other => other.map_err(io::Error::from),
        };
        if filled.is_err() {
            // Part of it may be there.
            file.set_len(0)?;
        }
        self.is_held = filled.is_ok();
        filled
    }
}

/// For file systems that take room only with content.
fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = [0; 64 * 1024];
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    while left > 0 {
        let part = left.min(zeros.len());
        file.write_all(&zeros[..part])?;
        left -= part;
    }
    file.sync_all()
}
