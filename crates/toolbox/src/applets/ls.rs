//! `ls`: one name per line; the width of the terminal is not queried.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{date, space, users};
use crate::options::{Accepted, Options, bytes, path};
use crate::outcome::{Outcome, shown, warn};

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "laA1hdnF",
            ..Accepted::default()
        },
    )?;
    let here = [b".".to_vec()];
    let names = if options.operands.is_empty() {
        &here
    } else {
        options.operands.as_slice()
    };
    let mut status = 0;
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for name in names {
        // A link to a directory is followed, unless the link itself is listed.
        let found = fs::symlink_metadata(path(name)).map(|found| {
            let is_shown_itself = options.has('d') || options.has('l') && !name.ends_with(b"/");
            if found.is_symlink() && !is_shown_itself {
                return fs::metadata(path(name)).unwrap_or(found);
            }
            found
        });
        match found {
            Ok(found) if found.is_dir() && !options.has('d') => directories.push(name),
            Ok(found) => files.push((name.clone(), path(name).to_owned(), found)),
            Err(error) => {
                warn("ls", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
        }
    }
    let mut lister = Lister {
        options: &options,
        names: BTreeMap::new(),
    };
    lister.list(&files, output)?;
    for (place, name) in directories.iter().enumerate() {
        if names.len() > 1 {
            let gap = if place > 0 || !files.is_empty() {
                "\n"
            } else {
                ""
            };
            writeln!(output, "{gap}{}:", shown(name))?;
        }
        match entries(path(name), &options) {
            Ok(entries) => {
                if options.has('l') {
                    let blocks: u64 = entries.iter().map(|(_, _, found)| found.blocks()).sum();
                    writeln!(output, "total {}", blocks / 2)?;
                }
                lister.list(&entries, output)?;
            }
            Err(error) => {
                warn("ls", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
        }
    }
    Ok(status)
}

type Entry = (Vec<u8>, PathBuf, Metadata);

fn entries(directory: &Path, options: &Options) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    if options.has('a') {
        for name in [".", ".."] {
            let file = directory.join(name);
            let found = fs::symlink_metadata(&file)?;
            entries.push((name.into(), file, found));
        }
    }
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        let name = file
            .file_name()
            .map(|name| bytes(Path::new(name)).to_vec())
            .unwrap_or_default();
        if name.starts_with(b".") && !options.has('a') && !options.has('A') {
            continue;
        }
        // What has been removed in the meantime is not there.
        if let Ok(found) = fs::symlink_metadata(&file) {
            entries.push((name, file, found));
        }
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

struct Lister<'a> {
    options: &'a Options,
    /// Names of users and groups that have been looked up.
    names: BTreeMap<(bool, u32), String>,
}

impl Lister<'_> {
    fn list(&mut self, entries: &[Entry], output: &mut dyn Write) -> io::Result<()> {
        if !self.options.has('l') {
            for (name, _, found) in entries {
                output.write_all(name)?;
                output.write_all(self.sign(found))?;
                output.write_all(b"\n")?;
            }
            return Ok(());
        }
        let rows: Vec<_> = entries
            .iter()
            .map(|(_, _, found)| {
                let size = if is_device(found) {
                    format!("{}, {}", found.rdev() >> 8 & 0xfff, found.rdev() & 0xff)
                } else if self.options.has('h') {
                    space::human(found.len())
                } else {
                    found.len().to_string()
                };
                let user = self.name(false, found.uid());
                (
                    user,
                    self.name(true, found.gid()),
                    size,
                    found.nlink().to_string(),
                )
            })
            .collect();
        let widest = |pick: fn(&(String, String, String, String)) -> &String| {
            rows.iter().map(|row| pick(row).len()).max().unwrap_or(0)
        };
        let (users, groups) = (widest(|row| &row.0), widest(|row| &row.1));
        let (sizes, links) = (widest(|row| &row.2), widest(|row| &row.3));
        for ((name, file, found), (user, group, size, link)) in entries.iter().zip(&rows) {
            let (mode, time) = (mode_text(found.mode()), date::minutes(found.mtime()));
            write!(
                output,
                "{mode} {link:>links$} {user:<users$} {group:<groups$} {size:>sizes$} {time} "
            )?;
            output.write_all(name)?;
            output.write_all(self.sign(found))?;
            if found.is_symlink()
                && let Ok(target) = fs::read_link(file)
            {
                output.write_all(&[b" -> ", bytes(&target)].concat())?;
            }
            output.write_all(b"\n")?;
        }
        Ok(())
    }

    fn sign(&self, found: &Metadata) -> &'static [u8] {
        if !self.options.has('F') {
            return b"";
        }
        let kind = found.file_type();
        if kind.is_dir() {
            b"/"
        } else if kind.is_symlink() {
            b"@"
        } else if kind.is_fifo() {
            b"|"
        } else if kind.is_socket() {
            b"="
        } else if found.mode() & 0o111 != 0 {
            b"*"
        } else {
            b""
        }
    }

    fn name(&mut self, is_group: bool, number: u32) -> String {
        let is_numeric = self.options.has('n');
        let name = self.names.entry((is_group, number)).or_insert_with(|| {
            if is_numeric {
                number.to_string()
            } else if is_group {
                users::group(number)
            } else {
                users::user(number)
            }
        });
        name.clone()
    }
}

fn is_device(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_block_device() || kind.is_char_device()
}

/// `drwxr-xr-x` of a mode with its type.
pub(super) fn mode_text(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let mut text = String::from(kind);
    for (shift, special, letters) in [
        (6, 0o4000, ('s', 'S')),
        (3, 0o2000, ('s', 'S')),
        (0, 0o1000, ('t', 'T')),
    ] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, true) => letters.0,
            (true, false) => letters.1,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_shown_as_letters() {
        for (mode, expected) in [
            (0o040_755, "drwxr-xr-x"),
            (0o100_640, "-rw-r-----"),
            (0o104_755, "-rwsr-xr-x"),
            (0o041_777, "drwxrwxrwt"),
            (0o101_644, "-rw-r--r-T"),
            (0o120_777, "lrwxrwxrwx"),
        ] {
            assert_eq!(mode_text(mode), expected);
        }
    }
}
