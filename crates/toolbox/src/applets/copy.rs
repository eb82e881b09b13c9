//! `cp`, `mv` and `ln`: one thing in two places, or in another one.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, warn};

/// Sources, and the target of each: inside of the last operand if that is a directory.
fn targets(options: &Options) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let Some((target, sources)) = options.operands.split_last().filter(|(_, s)| !s.is_empty())
    else {
        return Err(Failure::usage("name a source and a target"));
    };
    let target = path(target);
    if !target.is_dir() {
        if sources.len() > 1 {
            return Err(Failure::on(target.display(), "not a directory"));
        }
        return Ok(sources
            .iter()
            .map(|source| (path(source).to_owned(), target.to_owned()))
            .collect());
    }
    let inside = |source: &Vec<u8>| {
        let source = path(source);
        let place = match source.file_name() {
            Some(name) => target.join(name),
            None => target.to_owned(),
        };
        (source.to_owned(), place)
    };
    Ok(sources.iter().map(inside).collect())
}

fn each(
    applet: &str,
    pairs: Vec<(PathBuf, PathBuf)>,
    mut action: impl FnMut(&Path, &Path) -> io::Result<()>,
) -> Outcome {
    let mut status = 0;
    for (source, target) in pairs {
        if let Err(error) = action(&source, &target) {
            warn(
                applet,
                format_args!("{} to {}: {error}", source.display(), target.display()),
            );
            status = 1;
        }
    }
    Ok(status)
}

#[derive(Debug, Clone, Copy)]
struct How {
    is_recursive: bool,
    keeps_links: bool,
    keeps_attributes: bool,
    is_forced: bool,
}

pub(crate) fn cp(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "rRafp",
            ..Accepted::default()
        },
    )?;
    let is_recursive = ['r', 'R', 'a']
        .into_iter()
        .any(|letter| options.has(letter));
    let how = How {
        is_recursive,
        keeps_links: is_recursive,
        keeps_attributes: options.has('p') || options.has('a'),
        is_forced: options.has('f'),
    };
    each("cp", targets(&options)?, |source, target| {
        copy(source, target, how)
    })
}

fn copy(source: &Path, target: &Path, how: How) -> io::Result<()> {
    // Looked at once: what is copied into the source itself would be copied again without end.
    if how.is_recursive && source.is_dir() {
        let source = fs::canonicalize(source)?;
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if fs::canonicalize(parent)?.starts_with(&source) {
            return Err(io::Error::other("the target is inside of the source"));
        }
    }
    let mut left = vec![(source.to_owned(), target.to_owned())];
    // Directories get their attributes when they are full.
    let mut directories = Vec::new();
    while let Some((source, target)) = left.pop() {
        let found = if how.keeps_links {
            fs::symlink_metadata(&source)?
        } else {
            fs::metadata(&source)?
        };
        if found.is_dir() {
            if !how.is_recursive {
                return Err(io::Error::other("a directory, which needs -r"));
            }
            match fs::create_dir(&target) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            for entry in fs::read_dir(&source)? {
                let name = entry?.file_name();
                left.push((source.join(&name), target.join(&name)));
            }
            directories.push((target, found));
            continue;
        }
        copy_one(&source, &target, &found, how)?;
    }
    for (directory, found) in directories.into_iter().rev() {
        attributes(&directory, &found, how)?;
    }
    Ok(())
}

fn copy_one(source: &Path, target: &Path, found: &fs::Metadata, how: How) -> io::Result<()> {
    if found.is_symlink() {
        if fs::symlink_metadata(target).is_ok() {
            fs::remove_file(target)?;
        }
        return symlink(fs::read_link(source)?, target);
    }
    let kind = found.file_type();
    if kind.is_fifo()
        || kind.is_socket()
        || how.is_recursive && (kind.is_char_device() || kind.is_block_device())
    {
        return Err(io::Error::other("neither a file nor a directory"));
    }
    if let Ok(existing) = fs::metadata(target)
        && (existing.dev(), existing.ino()) == (found.dev(), found.ino())
    {
        return Err(io::Error::other("source and target are the same file"));
    }
    match fs::copy(source, target) {
        Err(error) if how.is_forced && error.kind() != ErrorKind::NotFound => {
            fs::remove_file(target)?;
            fs::copy(source, target)?;
        }
        result => drop(result?),
    }
    attributes(target, found, how)
}

fn attributes(target: &Path, found: &fs::Metadata, how: How) -> io::Result<()> {
    if !how.keeps_attributes {
        if found.is_dir() {
            fs::set_permissions(target, found.permissions())?;
        }
        return Ok(());
    }
    // Only root may give files away; for others the copy is theirs.
    let _ = std::os::unix::fs::lchown(target, Some(found.uid()), Some(found.gid()));
    fs::set_permissions(target, found.permissions())?;
    let times = fs::FileTimes::new()
        .set_accessed(found.accessed()?)
        .set_modified(found.modified()?);
    fs::File::open(target)?.set_times(times)
}

pub(crate) fn mv(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "f",
            ..Accepted::default()
        },
    )?;
    let how = How {
        is_recursive: true,
        keeps_links: true,
        keeps_attributes: true,
        is_forced: true,
    };
    each(
        "mv",
        targets(&options)?,
        |source, target| match fs::rename(source, target) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                copy(source, target, how)?;
                if fs::symlink_metadata(source)?.is_dir() {
                    fs::remove_dir_all(source)
                } else {
                    fs::remove_file(source)
                }
            }
            result => result,
        },
    )
}

pub(crate) fn ln(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let mut options = Options::parse(
        args,
        Accepted {
            flags: "sfn",
            ..Accepted::default()
        },
    )?;
    if options.operands.len() == 1 {
        options.operands.push(b".".to_vec());
    }
    let pairs = match options.operands.as_slice() {
        // With -n, a link to a directory is replaced, not entered.
        [source, target] if options.has('n') && path(target).is_symlink() => {
            vec![(path(source).to_owned(), path(target).to_owned())]
        }
        _ => targets(&options)?,
    };
    each("ln", pairs, |source, target| {
        if options.has('f') && fs::symlink_metadata(target).is_ok() {
            fs::remove_file(target)?;
        }
        if options.has('s') {
            symlink(source, target)
        } else {
            fs::hard_link(source, target)
        }
    })
}
