//! The positions of the parts of an archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::FileExt;

use super::super::file::read_bounded;
use super::super::tarball::{Entries, Kind};
use super::Error;

/// Parts of archives lie no deeper than `blobs/sha256/HEX`.
const DEEPEST: usize = 3;

/// No archive of images has so many parts.
const MOST: usize = 100_000;

/// Layers that several images share may be links to each other.
const LONGEST_CHAIN_OF_LINKS: usize = 8;

/// The files of an archive that might be parts of images.
#[derive(Debug)]
pub(super) struct Parts {
    tar: File,
    found: BTreeMap<String, Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Content { offset: u64, size: u64 },
    Link(String),
}

impl Parts {
    /// Reads through a plain tar.
    pub(super) fn find(mut tar: File) -> Result<Parts, Error> {
        let mut entries = Entries::new(Counted {
            inner: BufReader::with_capacity(128 << 10, &mut tar),
            count: 0,
        });
        let mut found = BTreeMap::new();
        while let Some(entry) = entries.next_entry()? {
            let Some(path) = normalise(&entry.path) else {
                continue;
            };
            if path.split('/').count() > DEEPEST || found.len() >= MOST {
                continue;
            }
            let part = match &entry.kind {
                Kind::File => Part::Content {
                    offset: entries.get_ref().count,
                    size: entry.size,
                },
                Kind::Symlink(target) => match resolve(&path, target) {
                    Some(target) => Part::Link(target),
                    None => continue,
                },
                Kind::HardLink(target) => match normalise(target) {
                    Some(target) => Part::Link(target),
                    None => continue,
                },
                _ => continue,
            };
            found.insert(path, part);
        }
        tar.rewind().map_err(|source| Error::Part {
            path: String::new(),
            source,
        })?;
        Ok(Parts { tar, found })
    }

    /// The archive itself, at its beginning.
    pub(super) fn into_tar(self) -> File {
        self.tar
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.found.contains_key(path)
    }

    /// Reads a part from its beginning.
    pub(super) fn open(&self, path: &str) -> Result<impl Read + '_, Error> {
        let mut name = path;
        for _ in 0..LONGEST_CHAIN_OF_LINKS {
            match self.found.get(name) {
                Some(Part::Content { offset, size }) => {
                    let content = Slice {
                        file: &self.tar,
                        offset: *offset,
                        left: *size,
                    };
                    return Ok(BufReader::with_capacity(128 << 10, content));
                }
                Some(Part::Link(target)) => name = target,
                None => break,
            }
        }
        let path = path.to_owned();
        Err(Error::NoPart { path })
    }

    /// The whole of a small part.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let content = self.open(path)?;
        read_bounded(content).map_err(|source| Error::Part {
            path: path.to_owned(),
            source,
        })
    }
}

/// A path as documents in archives write it.
fn normalise(path: &[u8]) -> Option<String> {
    resolve("", path)
}

/// A link's target, seen from the directory of the link.
fn resolve(link: &str, target: &[u8]) -> Option<String> {
    let target = std::str::from_utf8(target).ok()?;
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Counts the bytes read.
struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// A stretch of a file, read without moving the file's own position.
struct Slice<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for Slice<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
