//! Files that are read again and again.
//!
//! The kernel makes the text of a cgroup file when it is read at its start, so that one descriptor
//! serves for as long as the cgroup lives. How many are kept open is bounded: the files beyond are
//! opened for each reading.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many more files may be kept open.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// The right to keep one file open, given back when dropped.
#[derive(Debug)]
struct Permit(Budget);

/// A file that is read again and again.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    kept: Option<(File, Permit)>,
}

/// Room for the text of one file, used for one after the other.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

/// As large as most files; it grows for others.
const USUAL_SIZE: usize = 8192;

impl Budget {
    pub(crate) fn new(files: usize) -> Budget {
        Budget(Arc::new(AtomicUsize::new(files)))
    }

    fn take(&self) -> Option<Permit> {
        let take_one = |left: usize| left.checked_sub(1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one);
        taken.ok().map(|_| Permit(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer(vec![0; USUAL_SIZE])
    }
}

impl Buffer {
    /// The whole text of a file that is opened for this reading only.
    pub(crate) fn read_once(&mut self, path: &Path) -> io::Result<&str> {
        self.fill(&File::open(path)?, Records::Many)
    }

    fn fill(&mut self, file: &File, records: Records) -> io::Result<&str> {
        let mut filled = 0;
        loop {
            if filled == self.0.len() {
                self.0.resize(2 * filled, 0);
            }
            let read = match file.read_at(&mut self.0[filled..], filled as u64) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            filled += read;
            // One record comes in one piece if there is room for it.
            let is_whole = records == Records::One && filled < self.0.len();
            if read == 0 || is_whole {
                break;
            }
        }
        std::str::from_utf8(&self.0[..filled])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// How the kernel hands out a file: lists come a page at a time.
#[derive(Clone, Copy, PartialEq)]
enum Records {
    One,
    Many,
}

impl KeptFile {
    pub(crate) fn new(path: PathBuf) -> KeptFile {
        KeptFile { path, kept: None }
    }

    /// The text of a file that the kernel makes in one piece; `None` if there is no such file.
    pub(crate) fn read<'a>(&mut self, buffer: &'a mut Buffer, budget: &Budget) -> Option<&'a str> {
        if let Some((file, _)) = &self.kept {
            // A removed cgroup fails forever; one that was made again has new files.
            return buffer.fill(file, Records::One).ok();
        }
        let file = File::open(&self.path).ok()?;
        if let Some(permit) = budget.take() {
            let (file, _) = self.kept.insert((file, permit));
            return buffer.fill(file, Records::One).ok();
        }
        buffer.fill(&file, Records::One).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_file_is_read_again_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "1\n").unwrap();
        let (mut buffer, budget) = (Buffer::default(), Budget::new(1));
        let mut file = KeptFile::new(path.clone());
        assert_eq!(file.read(&mut buffer, &budget), Some("1\n"));
        std::fs::write(&path, "22\n").unwrap();
        assert_eq!(file.read(&mut buffer, &budget), Some("22\n"));
        let long = "x".repeat(3 * USUAL_SIZE);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(buffer.read_once(&path).ok(), Some(long.as_str()));
    }

    #[test]
    fn files_beyond_the_budget_are_opened_for_each_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "1").unwrap();
        let (mut buffer, budget) = (Buffer::default(), Budget::new(1));
        let mut first = KeptFile::new(path.clone());
        let mut second = KeptFile::new(path);
        assert!(first.read(&mut buffer, &budget).is_some());
        assert_eq!(second.read(&mut buffer, &budget), Some("1"));
        assert!(second.kept.is_none());
        drop(first);
        assert!(second.read(&mut buffer, &budget).is_some());
        assert!(second.kept.is_some());
        let mut missing = KeptFile::new(dir.path().join("none"));
        assert_eq!(missing.read(&mut buffer, &budget), None);
    }
}
