//! Packs files.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::header::{self, Entry};
use crate::options::{Options, bytes, path};
use crate::outcome::{Failure, Outcome, shown, warn};

pub(super) fn run(options: &Options, file: Option<File>, output: &mut dyn Write) -> Outcome {
    let names = options.some_operands("path")?;
    let archive = match &file {
        Some(file) => file.metadata().ok().map(|found| (found.dev(), found.ino())),
        None => None,
    };
    let is_to_output = file.is_none();
    let mut writer: Box<dyn Write> = match file {
        Some(file) => Box::new(io::BufWriter::new(file)),
        None => Box::new(&mut *output),
    };
    let mut packer = Packer {
        archive,
        links: BTreeMap::new(),
        is_verbose: options.has('v'),
        is_to_output,
        status: 0,
    };
    for name in names {
        packer.pack(path(name).to_owned(), &mut writer)?;
    }
    writer.write_all(&[0; 2 * header::BLOCK])?;
    writer.flush()?;
    Ok(packer.status)
}

struct Packer {
    /// The archive itself, which is left out.
    archive: Option<(u64, u64)>,
    /// Files with several names that are in the archive, and the name there.
    links: BTreeMap<(u64, u64), Vec<u8>>,
    is_verbose: bool,
    is_to_output: bool,
    status: u8,
}

impl Packer {
    fn pack(&mut self, top: PathBuf, writer: &mut dyn Write) -> Result<(), Failure> {
        let mut left = vec![top];
        while let Some(file) = left.pop() {
            let found = match fs::symlink_metadata(&file) {
                Ok(found) => found,
                Err(error) => {
                    self.complain(&file, &error);
                    continue;
                }
            };
            if self.archive == Some((found.dev(), found.ino())) {
                continue;
            }
            self.pack_one(&file, &found, writer)?;
            if !found.is_dir() {
                continue;
            }
            match fs::read_dir(&file) {
                Ok(listing) => {
                    let mut entries: Vec<PathBuf> =
                        listing.flatten().map(|entry| entry.path()).collect();
                    // The last one is packed first.
                    entries.sort_by(|a, b| b.cmp(a));
                    left.extend(entries);
                }
                Err(error) => self.complain(&file, &error),
            }
        }
        Ok(())
    }

    fn complain(&mut self, file: &Path, error: &dyn std::fmt::Display) {
        warn("tar", format_args!("{}: {error}", file.display()));
        self.status = 1;
    }

    fn pack_one(
        &mut self,
        file: &Path,
        found: &Metadata,
        writer: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut entry = Entry {
            name: member(bytes(file)),
            mode: found.mode() & 0o7777,
            user: found.uid(),
            group: found.gid(),
            modified: found.mtime(),
            ..Entry::default()
        };
        let place = (found.dev(), found.ino());
        let known = self.links.get(&place).filter(|_| !found.is_dir());
        let mut data = None;
        if let Some(first) = known {
            entry.kind = header::HARD_LINK;
            entry.target.clone_from(first);
        } else if found.is_dir() {
            entry.kind = header::DIRECTORY;
            if !entry.name.ends_with(b"/") {
                entry.name.push(b'/');
            }
        } else if found.is_symlink() {
            entry.kind = header::SYMLINK;
            match fs::read_link(file) {
                Ok(target) => entry.target = bytes(&target).to_vec(),
                Err(error) => {
                    self.complain(file, &error);
                    return Ok(());
                }
            }
        } else if found.is_file() {
            entry.kind = header::FILE;
            entry.size = found.len();
            match File::open(file) {
                Ok(open) => data = Some(open),
                Err(error) => {
                    self.complain(file, &error);
                    return Ok(());
                }
            }
        } else {
            warn(
                "tar",
                format_args!(
                    "{}: neither a file nor a directory nor a link, left out",
                    file.display()
                ),
            );
            return Ok(());
        }
        if found.nlink() > 1 && found.is_file() {
            self.links
                .entry(place)
                .or_insert_with(|| entry.name.clone());
        }
        if self.is_verbose {
            let name = shown(&entry.name);
            // The archive itself may be on standard output.
            if self.is_to_output {
                writeln!(io::stderr().lock(), "{name}")?;
            } else {
                writeln!(io::stdout().lock(), "{name}")?;
            }
        }
        writer.write_all(&header::encode(&entry))?;
        if let Some(data) = data {
            self.data(file, data, entry.size, writer)?;
        }
        Ok(())
    }

    /// Exactly as many bytes as in the header, even if the file changes meanwhile.
    fn data(
        &mut self,
        file: &Path,
        data: File,
        size: u64,
        writer: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut data = data.take(size);
        let mut buffer = vec![0; 1 << 16];
        let mut left = size;
        while left > 0 {
            let count = match data.read(&mut buffer) {
                Ok(0) => {
                    self.complain(
                        file,
                        &"the file has become shorter, zeros stand for the rest",
                    );
                    break;
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.complain(file, &error);
                    break;
                }
            };
            writer.write_all(buffer.get(..count).unwrap_or_default())?;
            left = left.saturating_sub(u64::try_from(count).unwrap_or(left));
        }
        io::copy(
            &mut io::repeat(0).take(left + header::padding(size)),
            writer,
        )?;
        Ok(())
    }
}

/// The name in the archive: relative, and without what leads up to it by `..`.
fn member(name: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
    let start = parts
        .iter()
        .rposition(|part| *part == b"..")
        .map_or(0, |place| place + 1);
    let kept = parts.get(start..).unwrap_or_default();
    let kept: Vec<&[u8]> = kept
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    if kept.is_empty() {
        return b"./".to_vec();
    }
    kept.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_relative() {
        for (name, expected) in [
            ("/a//b/", "a/b"),
            ("../../a", "a"),
            ("./a", "./a"),
            ("a/../b", "b"),
            ("/", "./"),
            ("..", "./"),
            (".", "."),
        ] {
            assert_eq!(member(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }
}
