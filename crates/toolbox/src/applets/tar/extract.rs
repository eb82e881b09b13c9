//! Unpacks and lists archives, which may be made by an enemy: nothing is written outside of the
//! directory, by absolute names, by `..`, or through links that came with the archive.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Kept;
use super::header::{self, Entry};
use crate::applets::{date, ls};
use crate::options::{Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};
use crate::sys;

fn damaged(error: &io::Error) -> Failure {
    Failure::on("the archive", error)
}

/// Whether an operand names the entry or a directory around it; without operands, always.
fn is_wanted(options: &Options, name: &[u8]) -> bool {
    let plain = |name: &[u8]| -> Vec<Vec<u8>> {
        let parts = name.split(|byte| *byte == b'/');
        parts
            .filter(|part| !part.is_empty() && *part != b".")
            .map(<[u8]>::to_vec)
            .collect()
    };
    let own = plain(name);
    options.operands.is_empty()
        || options
            .operands
            .iter()
            .any(|wanted| own.starts_with(&plain(wanted)))
}

fn skip(input: &mut impl Read, count: u64) -> Result<(), Failure> {
    let skipped = io::copy(&mut input.take(count), &mut io::sink()).map_err(|e| damaged(&e))?;
    if skipped < count {
        return Err(damaged(&ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}

/// Reads what follows the end, so that the program that writes the archive is not stopped by a
/// closed pipe.
fn drain(input: &mut impl Read) {
    // The archive is complete; what fails now does not matter.
    let _ = io::copy(input, &mut io::sink());
}

pub(super) fn list(options: &Options, mut input: impl BufRead, output: &mut dyn Write) -> Outcome {
    while let Some(entry) = header::read(&mut input).map_err(|e| damaged(&e))? {
        if is_wanted(options, &entry.name) {
            print(options, &entry, output)?;
        }
        skip(&mut input, entry.size + header::padding(entry.size))?;
    }
    drain(&mut input);
    Ok(0)
}

fn print(options: &Options, entry: &Entry, output: &mut dyn Write) -> Result<(), Failure> {
    if options.has('v') {
        let kind = match entry.kind {
            header::DIRECTORY => 0o040_000,
            header::SYMLINK => 0o120_000,
            _ => 0o100_000,
        };
        let mode = ls::mode_text(entry.mode & 0o7777 | kind);
        let owner = format!("{}/{}", entry.user, entry.group);
        write!(
            output,
            "{mode} {owner:<11} {:>9} {} ",
            entry.size,
            date::minutes(entry.modified)
        )?;
    }
    output.write_all(&entry.name)?;
    if options.has('v') {
        let arrow: &[u8] = match entry.kind {
            header::SYMLINK => b" -> ",
            header::HARD_LINK => b" link to ",
            _ => b"",
        };
        if !arrow.is_empty() {
            output.write_all(&[arrow, &entry.target].concat())?;
        }
    }
    output.write_all(b"\n")?;
    Ok(())
}

pub(super) fn run(options: &Options, mut input: impl BufRead, output: &mut dyn Write) -> Outcome {
    let strip = usize::try_from(options.number('S')?.unwrap_or(0)).unwrap_or(usize::MAX);
    let mask = sys::set_umask(0);
    sys::set_umask(mask);
    let mut unpacker = Unpacker {
        kept: Kept::new(options),
        mask,
        strip,
        links: BTreeSet::new(),
        directories: Vec::new(),
    };
    let mut status = 0;
    while let Some(entry) = header::read(&mut input).map_err(|e| damaged(&e))? {
        let mut data = input.by_ref().take(entry.size);
        if is_wanted(options, &entry.name) {
            if options.has('v') {
                output.write_all(&[entry.name.as_slice(), b"\n"].concat())?;
            }
            if let Err(error) = unpacker.unpack(&entry, &mut data) {
                if error.kind() == ErrorKind::UnexpectedEof {
                    return Err(damaged(&error));
                }
                warn("tar", format_args!("{}: {error}", shown(&entry.name)));
                status = 1;
            }
        }
        let rest = data.limit() + header::padding(entry.size);
        skip(&mut input, rest)?;
    }
    drain(&mut input);
    for (directory, entry) in std::mem::take(&mut unpacker.directories).iter().rev() {
        if let Err(error) = unpacker.finish_directory(directory, entry) {
            warn("tar", format_args!("{}: {error}", directory.display()));
            status = 1;
        }
    }
    Ok(status)
}

struct Unpacker {
    kept: Kept,
    mask: u32,
    strip: usize,
    /// Symbolic links that this archive has created, by device and inode, under any name.
    links: BTreeSet<(u64, u64)>,
    /// They get their attributes at the end: one that may not be written to still has to be filled.
    directories: Vec<(PathBuf, Entry)>,
}

impl Unpacker {
    /// The path below the current directory, or `None` for one that `--strip-components` leaves
    /// nothing of.
    fn place(&self, name: &[u8]) -> io::Result<Option<PathBuf>> {
        if name.starts_with(b"/") {
            return Err(io::Error::other("an absolute name is not unpacked"));
        }
        let parts = name.split(|byte| *byte == b'/');
        let parts: Vec<&[u8]> = parts
            .filter(|part| !part.is_empty() && *part != b".")
            .collect();
        if parts.contains(&b"..".as_slice()) {
            return Err(io::Error::other("a name with \"..\" is not unpacked"));
        }
        let kept = parts.get(self.strip..).unwrap_or_default();
        if kept.is_empty() {
            // The directory itself, as in archives of `.`, needs nothing done.
            return Ok(None);
        }
        Ok(Some(path(&kept.join(&b'/')).to_owned()))
    }

    fn is_own_link(&self, file: &Path) -> bool {
        fs::symlink_metadata(file).is_ok_and(|found| {
            found.is_symlink() && self.links.contains(&(found.dev(), found.ino()))
        })
    }

    /// Makes the directories above, and refuses to go through links of the archive.
    fn prepare(&self, file: &Path) -> io::Result<()> {
        let parents: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .filter(|part| *part != Path::new(""))
            .collect();
        for parent in parents.into_iter().rev() {
            if self.is_own_link(parent) {
                let link = parent.display();
                return Err(io::Error::other(format!(
                    "{link} is a link of this archive, which is not followed"
                )));
            }
            match DirBuilder::new().mode(0o755).create(parent) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes room for something that is no directory.
    fn clear(&mut self, file: &Path) -> io::Result<()> {
        if let Ok(found) = fs::symlink_metadata(file) {
            fs::remove_file(file)?;
            // Its inode may be given to another file.
            self.links.remove(&(found.dev(), found.ino()));
        }
        Ok(())
    }

    fn unpack(&mut self, entry: &Entry, data: &mut impl Read) -> io::Result<()> {
        let Some(file) = self.place(&entry.name)? else {
            return Ok(());
        };
        self.prepare(&file)?;
        match entry.kind {
            header::FILE => {
                self.clear(&file)?;
                self.unpack_file(&file, entry, data)
            }
            header::DIRECTORY => self.unpack_directory(file, entry),
            header::SYMLINK => {
                self.clear(&file)?;
                symlink(path(&entry.target), &file)?;
                let made = fs::symlink_metadata(&file)?;
                self.links.insert((made.dev(), made.ino()));
                if self.kept.owners {
                    lchown(&file, Some(entry.user), Some(entry.group))?;
                }
                Ok(())
            }
            header::HARD_LINK => {
                let Some(target) = self.place(&entry.target)? else {
                    return Err(io::Error::other(
                        "a link to a stripped name is not unpacked",
                    ));
                };
                self.prepare(&target)?;
                self.clear(&file)?;
                fs::hard_link(target, file)
            }
            b'3' | b'4' | b'6' => Err(io::Error::other("devices and pipes are not unpacked")),
            kind => {
                let kind = char::from(kind).escape_default();
                Err(io::Error::other(format!(
                    "entries of type {kind} are not supported"
                )))
            }
        }
    }

    /// Permissions as they are, or as new files get them. Without the owner, the bits that lend its
    /// rights are dropped.
    fn mode(&self, entry: &Entry) -> u32 {
        let mode = if self.kept.permissions {
            entry.mode & 0o7777
        } else {
            entry.mode & 0o777 & !self.mask
        };
        if self.kept.owners {
            mode
        } else {
            mode & 0o1777
        }
    }

    fn unpack_file(&self, file: &Path, entry: &Entry, data: &mut impl Read) -> io::Result<()> {
        // Nothing is there, and nothing that comes to be there is followed.
        let mut open = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        if io::copy(data, &mut open)? < entry.size {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if self.kept.owners {
            fchown(&open, Some(entry.user), Some(entry.group))?;
        }
        open.set_permissions(Permissions::from_mode(self.mode(entry)))?;
        self.set_time(&open, entry)
    }

    fn set_time(&self, open: &File, entry: &Entry) -> io::Result<()> {
        if !self.kept.times {
            return Ok(());
        }
        let distance = Duration::from_secs(entry.modified.unsigned_abs());
        let time = if entry.modified < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        };
        open.set_modified(time.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    fn unpack_directory(&mut self, file: PathBuf, entry: &Entry) -> io::Result<()> {
        if self.is_own_link(&file) {
            return Err(io::Error::other(
                "the name is a link of this archive, which is not followed",
            ));
        }
        match DirBuilder::new().mode(0o700).create(&file) {
            // One that is there, or a link to one that was there before, is used.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && file.is_dir() => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.clear(&file)?;
                DirBuilder::new().mode(0o700).create(&file)?;
            }
            result => result?,
        }
        self.directories.push((file, entry.clone()));
        Ok(())
    }

    fn finish_directory(&self, directory: &Path, entry: &Entry) -> io::Result<()> {
        let open = File::open(directory)?;
        if self.kept.owners {
            fchown(&open, Some(entry.user), Some(entry.group))?;
        }
        open.set_permissions(Permissions::from_mode(self.mode(entry)))?;
        self.set_time(&open, entry)
    }
}
