//! Unpacks the tar of a layer into a directory, in the format of overlayfs.
//!
//! Layers are untrusted. Whatever a tar holds, nothing outside the directory is touched
//! (`place`): paths and links are resolved as if the directory were the root of all files. No
//! device nodes are made, and of extended attributes only those that programs rely on
//! (`attributes`).
//!
//! A layer hides files of the layers below by names (whiteouts). Overlayfs does the
//! same with a character device 0/0 in place of a hidden file and an attribute on a directory that
//! hides all below it.

mod attributes;
mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::tarball::{self, Entries, Entry, Kind};
use attributes::Owners;
pub use attributes::{OPAQUE, copy_attributes, is_opaque, is_whiteout};
use place::{Place, Root};

const WHITEOUT: &[u8] = b".wh.";
/// Names that aufs kept for itself.
const AUFS: &[u8] = b".wh..wh.";
const OPAQUE_MARK: &[u8] = b".wh..wh..opq";

/// Bounds against layers that are small to send and endless to unpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the tar, once decompressed.
    pub bytes: u64,
    /// Of the tar.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 256 << 30,
            entries: 4_000_000,
        }
    }
}

/// Why a layer could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] tarball::Error),
    /// A path leads out of the directory.
    #[error("entry {path:?} escapes the root file system")]
    Escape {
        /// As in the tar.
        path: String,
    },
    /// A whiteout hides nothing that could exist.
    #[error("whiteout {path:?} names no file")]
    Whiteout {
        /// As in the tar.
        path: String,
    },
    /// Too many entries.
    #[error("the layer has more than {limit} entries")]
    TooManyEntries {
        /// The bound.
        limit: u64,
    },
    /// Too many bytes.
    #[error("the layer has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: u64,
    },
    /// The file system does not take an entry.
    #[error("cannot unpack {path:?}")]
    Write {
        /// As in the tar.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Unpacks a tar that is not compressed into an empty directory. `below` are the layers it will
/// lie on, the uppermost first: a directory that the tar does not mention looks as it does there.
/// Returns how long the tar was.
pub fn unpack(
    tar: impl Read,
    into: &Path,
    below: &[PathBuf],
    limits: Limits,
) -> Result<u64, Error> {
    let reader = Bounded {
        inner: tar,
        left: limits.bytes,
    };
    let mut entries = Entries::new(reader);
    let mut unpacking = Unpacking {
        root: Root::at(into).map_err(|source| failed(b"/", source))?,
        below,
        owners: Owners::for_this_process(),
        directories: BTreeMap::new(),
    };
    let result = unpacking.run(&mut entries, limits.entries);
    let mut reader = entries.into_inner();
    let too_large = Error::TooLarge {
        limit: limits.bytes,
    };
    if let Err(error) = result {
        return Err(if reader.left == 0 { too_large } else { error });
    }
    // The digest of a layer covers what follows the last entry too.
    match io::copy(&mut reader, &mut io::sink()) {
        Ok(_) => Ok(limits.bytes - reader.left),
        Err(_) if reader.left == 0 => Err(too_large),
        Err(error) => Err(tarball::Error::Read(error).into()),
    }
}

/// Fails once more than a number of bytes were read.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) if left > 0 || count == 0 => self.left = left,
            _ => {
                self.left = 0;
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(count)
    }
}

struct Unpacking<'a> {
    root: Root,
    below: &'a [PathBuf],
    owners: Owners,
    /// What directories shall look like in the end. Set last, because making files in a directory
    /// changes its time and may need more permissions than it will have.
    directories: BTreeMap<PathBuf, tarball::Attributes>,
}

impl Unpacking<'_> {
    fn run<R: Read>(&mut self, entries: &mut Entries<R>, limit: u64) -> Result<(), Error> {
        let mut count = 0;
        while let Some(entry) = entries.next_entry()? {
            count += 1;
            if count > limit {
                return Err(Error::TooManyEntries { limit });
            }
            self.entry(&entry, entries)?;
        }
        self.finish_directories()
    }

    fn entry(&mut self, entry: &Entry, content: &mut impl Read) -> Result<(), Error> {
        let path = place::normalise(&entry.path).ok_or_else(|| escape(&entry.path))?;
        // Anything but a file may change what other paths mean.
        if entry.kind != Kind::File {
            self.root.forget();
        }
        let Some((parent, name)) = place::split(&path) else {
            if entry.kind == Kind::Directory {
                self.directories.insert(path, entry.attributes.clone());
            }
            return Ok(());
        };
        let place = self
            .place(parent, name)
            .map_err(|source| failed(&entry.path, source))?;
        if name == OPAQUE_MARK {
            return attributes::make_opaque(place.parent.as_fd())
                .map_err(|source| failed(&entry.path, source));
        }
        if name.starts_with(AUFS) {
            return Ok(());
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            if matches!(hidden, b"" | b"." | b"..") {
                let path = lossy(&entry.path);
                return Err(Error::Whiteout { path });
            }
            return hide(place.parent.as_fd(), hidden)
                .map_err(|source| failed(&entry.path, source));
        }
        if let Kind::HardLink(target) = &entry.kind {
            let target = place::normalise(target).ok_or_else(|| escape(target))?;
            return self
                .hard_link(&place, &path, &target)
                .map_err(|source| failed(&entry.path, source));
        }
        self.make(&place, &path, entry, content)
            .map_err(|source| failed(&entry.path, source))
    }

    /// The directory that an entry lies in, made if it is not there.
    fn place<'n>(&mut self, parent: &Path, name: &'n [u8]) -> io::Result<Place<'n>> {
        let below = self.below;
        let directories = &mut self.directories;
        let parent = self.root.open_or_make(parent, |made| {
            directories.insert(made.to_owned(), attributes::of_directory(made, below));
        })?;
        Ok(Place { parent, name })
    }

    fn make(
        &mut self,
        place: &Place<'_>,
        path: &Path,
        entry: &Entry,
        content: &mut impl Read,
    ) -> io::Result<()> {
        match &entry.kind {
            Kind::Directory => {
                self.directory(place)?;
                self.directories
                    .insert(path.to_owned(), entry.attributes.clone());
            }
            Kind::File => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let private = Mode::RUSR | Mode::WUSR;
                let file =
                    place.replacing(|at, name| rustix::fs::openat(at, name, flags, private))?;
                let mut file = std::fs::File::from(file);
                io::copy(content, &mut file)?;
                self.owners.apply_to_file(&file, &entry.attributes)?;
            }
            Kind::Symlink(target) => {
                place.replacing(|at, name| rustix::fs::symlinkat(target.as_slice(), at, name))?;
                self.owners.apply_to_name(place, &entry.attributes)?;
            }
            Kind::Fifo => {
                let mode = Mode::from(entry.attributes.mode & 0o777);
                place.replacing(|at, name| rustix::fs::mkfifoat(at, name, mode))?;
                // The process' mask took part in making it.
                rustix::fs::chmodat(&place.parent, place.name, mode, AtFlags::empty())?;
                self.owners.apply_to_name(place, &entry.attributes)?;
            }
            // Containers get the devices they may use from the runtime.
            Kind::Device | Kind::Other | Kind::HardLink(_) => {}
        }
        Ok(())
    }

    /// A directory that is there already is kept: a tar may mention it twice. One that replaces
    /// a whiteout hides what lies below, as the whiteout did.
    fn directory(&self, place: &Place<'_>) -> io::Result<()> {
        let (parent, name) = (place.parent.as_fd(), place.name);
        let made = rustix::fs::mkdirat(parent, name, Mode::RWXU);
        if made != Err(Errno::EXIST) {
            return Ok(made?);
        }
        let existing = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if place::is_directory(&existing) {
            return Ok(());
        }
        super::tree::remove_at(parent, name)?;
        rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
        if is_whiteout(&existing) {
            attributes::make_opaque(super::tree::open_directory(parent, name)?.as_fd())?;
        }
        Ok(())
    }

    fn hard_link(&mut self, place: &Place<'_>, path: &Path, target: &Path) -> io::Result<()> {
        let Some((parent, name)) = place::split(target) else {
            return Err(Errno::PERM.into());
        };
        if path == target {
            return Ok(());
        }
        let parent = self.root.open(parent)?;
        place.replacing(|at, new| rustix::fs::linkat(&parent, name, at, new, AtFlags::empty()))
    }

    fn finish_directories(&mut self) -> Result<(), Error> {
        // The uppermost directory of a layer is never visible but must look as others do.
        let top = PathBuf::new();
        if !self.directories.contains_key(&top) {
            let attributes = attributes::of_directory(&top, self.below);
            self.directories.insert(top, attributes);
        }
        // Deepest first, so that a directory is not locked before those in it are done.
        for (path, attributes) in self.directories.iter().rev() {
            // A later entry may have put something else there.
            let Ok(directory) = self.root.open_exactly(path) else {
                continue;
            };
            self.owners
                .apply_to_directory(&directory, attributes)
                .map_err(|source| failed(path.as_os_str().as_encoded_bytes(), source))?;
        }
        Ok(())
    }
}

/// Hides a name of the layers below. What this layer itself has under that name stays, but a
/// directory no longer shows what the layers below have in it.
fn hide(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let device = rustix::fs::makedev(0, 0);
    let kind = rustix::fs::FileType::CharacterDevice;
    match rustix::fs::mknodat(parent, name, kind, Mode::empty(), device) {
        Err(Errno::EXIST) => match super::tree::open_directory(parent, name) {
            Ok(directory) => attributes::make_opaque(directory.as_fd()),
            Err(_) => Ok(()),
        },
        other => Ok(other?),
    }
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn escape(path: &[u8]) -> Error {
    Error::Escape { path: lossy(path) }
}

fn failed(path: &[u8], source: io::Error) -> Error {
    Error::Write {
        path: lossy(path),
        source,
    }
}
