//! `df` and `du`: how much space there is, and what takes it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};
use crate::sys;

/// A size in the largest unit that leaves a number of at least one: `1.5G`.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "";
    for next in UNITS {
        if tenths < 10_240 {
            break;
        }
        tenths = tenths.div_ceil(1024);
        unit = next;
    }
    if unit.is_empty() || tenths >= 100 {
        return format!("{}{unit}", tenths.div_ceil(10));
    }
    format!("{}.{}{unit}", tenths / 10, tenths % 10)
}

struct Mount {
    source: String,
    place: String,
}

/// What is mounted, later mounts last.
fn mounts() -> Result<Vec<Mount>, Failure> {
    const FILE: &str = "/proc/self/mounts";
    let text = fs::read_to_string(FILE).map_err(|error| Failure::on(FILE, error))?;
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        // Blanks in names are written as octal numbers.
        let mut name = || fields.next().map(|field| field.replace("\\040", " "));
        Some(Mount {
            source: name()?,
            place: name()?,
        })
    };
    Ok(text.lines().filter_map(mount).collect())
}

pub(crate) fn df(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "hiPkT",
            ..Accepted::default()
        },
    )?;
    let mounts = mounts()?;
    let mut status = 0;
    let mut rows = Vec::new();
    if options.operands.is_empty() {
        let mut seen = BTreeSet::new();
        for mount in mounts.iter().rev() {
            if seen.insert(&mount.place)
                && let Ok(row) = row(&mount.source, &mount.place, &options)
            {
                rows.extend(row);
            }
        }
        rows.reverse();
    }
    for name in &options.operands {
        let found = fs::canonicalize(path(name)).map_err(|error| Failure::on(shown(name), error));
        let result = found.and_then(|file| {
            let holding = mounts.iter().filter(|mount| file.starts_with(&mount.place));
            let mount = holding.rev().max_by_key(|mount| mount.place.len());
            let source = mount.map_or("-", |mount| mount.source.as_str());
            let place = mount.map_or("-", |mount| mount.place.as_str());
            let file = file.to_string_lossy().into_owned();
            figures(source, &file, place, &options)
        });
        match result {
            Ok((row, _)) => rows.push(row),
            Err(failure) => {
                warn("df", failure.parts().1);
                status = 1;
            }
        }
    }
    let unit = match (options.has('i'), options.has('h')) {
        (true, _) => "Inodes",
        (false, true) => "Size",
        (false, false) => "1K-blocks",
    };
    writeln!(
        output,
        "{:<20} {unit:>12} {:>12} {:>12} {:>5} Mounted on",
        "Filesystem", "Used", "Available", "Use%"
    )?;
    for row in rows {
        writeln!(output, "{row}")?;
    }
    Ok(status)
}

/// The row of a mount; none for file systems that hold nothing, such as /proc.
fn row(source: &str, place: &str, options: &Options) -> Result<Option<String>, Failure> {
    let (row, blocks) = figures(source, place, place, options)?;
    Ok((blocks > 0).then_some(row))
}

fn figures(
    source: &str,
    file: &str,
    place: &str,
    options: &Options,
) -> Result<(String, u64), Failure> {
    let name = CString::new(file).map_err(|error| Failure::on(file, error))?;
    let found = sys::file_system(&name).map_err(|error| Failure::on(file, error))?;
    let (all, free, available) = if options.has('i') {
        (found.files, found.files_free, found.files_free)
    } else {
        (found.blocks, found.blocks_free, found.blocks_available)
    };
    let used = all.saturating_sub(free);
    // Of what ordinary users may fill, rounded up.
    let most = u128::from(used) + u128::from(available);
    let share = match most {
        0 => "-".to_owned(),
        most => format!("{}%", (u128::from(used) * 100).div_ceil(most)),
    };
    let show = |count: u64| match (options.has('i'), options.has('h')) {
        (true, _) => count.to_string(),
        (false, true) => human(count.saturating_mul(found.block_size)),
        (false, false) => (u128::from(count) * u128::from(found.block_size) / 1024).to_string(),
    };
    let (all_text, used, available) = (show(all), show(used), show(available));
    let row = format!("{source:<20} {all_text:>12} {used:>12} {available:>12} {share:>5} {place}");
    Ok((row, found.blocks))
}

pub(crate) fn du(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "shka",
            ..Accepted::default()
        },
    )?;
    let here = [b".".to_vec()];
    let names = if options.operands.is_empty() {
        &here
    } else {
        options.operands.as_slice()
    };
    let mut walk = Walk {
        options: &options,
        seen: BTreeSet::new(),
        status: 0,
    };
    for name in names {
        walk.measure(path(name).to_owned(), output)?;
    }
    Ok(walk.status)
}

struct Walk<'a> {
    options: &'a Options,
    /// Files with several names, which are counted once.
    seen: BTreeSet<(u64, u64)>,
    status: u8,
}

/// A directory whose entries are being counted.
struct Open {
    place: PathBuf,
    entries: Vec<PathBuf>,
    blocks: u64,
}

impl Walk<'_> {
    fn measure(&mut self, top: PathBuf, output: &mut dyn Write) -> Result<(), Failure> {
        let mut stack: Vec<Open> = Vec::new();
        let mut next = Some(top);
        loop {
            if let Some(place) = next.take() {
                let (blocks, entries) = self.look(&place);
                if let Some(entries) = entries {
                    stack.push(Open {
                        place,
                        entries,
                        blocks,
                    });
                } else {
                    if self.options.has('a') || stack.is_empty() {
                        self.print(blocks, &place, output)?;
                    }
                    if let Some(parent) = stack.last_mut() {
                        parent.blocks += blocks;
                    }
                }
            }
            let Some(open) = stack.last_mut() else {
                return Ok(());
            };
            next = open.entries.pop();
            if next.is_none()
                && let Some(done) = stack.pop()
            {
                if !self.options.has('s') || stack.is_empty() {
                    self.print(done.blocks, &done.place, output)?;
                }
                if let Some(parent) = stack.last_mut() {
                    parent.blocks += done.blocks;
                }
            }
        }
    }

    /// The blocks of 512 bytes of one file, and the entries of a directory.
    fn look(&mut self, place: &Path) -> (u64, Option<Vec<PathBuf>>) {
        let result = fs::symlink_metadata(place).and_then(|found| {
            if !found.is_dir() {
                return Ok((found, None));
            }
            let mut entries = Vec::new();
            for entry in fs::read_dir(place)? {
                entries.push(entry?.path());
            }
            entries.sort_by(|a, b| b.cmp(a));
            Ok((found, Some(entries)))
        });
        match result {
            Ok((found, entries)) => {
                let is_counted = !found.is_dir()
                    && found.nlink() > 1
                    && !self.seen.insert((found.dev(), found.ino()));
                (if is_counted { 0 } else { found.blocks() }, entries)
            }
            Err(error) => {
                warn("du", format_args!("{}: {error}", place.display()));
                self.status = 1;
                (0, None)
            }
        }
    }

    fn print(&self, blocks: u64, place: &Path, output: &mut dyn Write) -> Result<(), Failure> {
        let size = if self.options.has('h') {
            human(blocks.saturating_mul(512))
        } else {
            blocks.div_ceil(2).to_string()
        };
        write!(output, "{size}\t")?;
        output.write_all(crate::options::bytes(place))?;
        output.write_all(b"\n")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_two_places() {
        for (bytes, expected) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (10 << 20, "10M"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(human(bytes), expected);
        }
    }
}
