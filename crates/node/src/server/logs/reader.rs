//! A log file, read to its end or followed beyond it.

use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use plimsoll_runtime::beneath::{self, Opened};
use plimsoll_runtime::wire::ContainerState;
use plimsoll_runtime::{Error, Runtime};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::time::Instant;

use super::options::LogOptions;
use super::printer::{Next, Printer};
use super::tail::start_of_last;
use crate::folder::{Changes, Watch};

/// How much is read, and handed on, at a time.
const PIECE: usize = 32 * 1024;

/// Longer lines are no lines: runtimes cut at 16 KiB.
const MAX_LINE: usize = 1 << 20;

/// How often a silent log is looked at, and whether its container still runs.
const PERIOD: Duration = Duration::from_secs(1);

/// Why a log cannot be read, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("unable to retrieve container logs for {id}")]
    NoContainer { id: String },
    #[error("failed to try resolving symlinks in path {path:?}: {source}")]
    Resolve { path: PathBuf, source: io::Error },
    #[error("failed to open log file {path:?}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("failed to read log file {path:?}: {source}")]
    Read { path: PathBuf, source: io::Error },
}

/// A log under way to a client.
#[derive(Debug)]
pub(super) struct LogReader {
    runtime: Arc<dyn Runtime>,
    container: String,
    path: PathBuf,
    file: File,
    /// Read and not yet printed: the beginning of a line.
    rest: BytesMut,
    /// A line that is too long is being passed over.
    is_skipping: bool,
    printer: Printer,
    /// Nothing more is to be shown.
    is_over: bool,
    follow: Option<Follow>,
}

#[derive(Debug)]
struct Follow {
    watch: Option<Watch>,
    /// When it was last asked whether the container runs.
    asked: Option<Instant>,
    is_running: bool,
    /// There is another file under the path; this one is read to its end first.
    is_renamed: bool,
}

/// What came of reading on.
enum Step {
    Piece(Bytes),
    End,
}

impl LogReader {
    /// Opens the log of a container of the status (`containerd://…`) where it is to be read from.
    pub(super) async fn open(
        runtime: Arc<dyn Runtime>,
        id: &str,
        options: LogOptions,
    ) -> Result<LogReader, ReadError> {
        let container = id.split_once("://").map_or(id, |(_, id)| id);
        let status = runtime.container_status(container).await;
        let status = status.map_err(|error| {
            tracing::debug!(
                id,
                error = error.chain(),
                "container of followed log not found"
            );
            ReadError::NoContainer { id: id.to_owned() }
        })?;
        let path = PathBuf::from(status.log_path);
        let mut file = open(&path).await?;
        if let Some(lines) = options.tail_lines {
            let start = start_of_last(&mut file, lines).await;
            let start = start.map_err(|source| read_error(&path, source))?;
            let sought = file.seek(SeekFrom::Start(start)).await;
            sought.map_err(|source| read_error(&path, source))?;
        }
        Ok(LogReader {
            runtime,
            container: container.to_owned(),
            path,
            file,
            rest: BytesMut::new(),
            is_skipping: false,
            printer: Printer::new(options),
            is_over: false,
            follow: options.follow.then_some(Follow {
                watch: None,
                asked: None,
                is_running: true,
                is_renamed: false,
            }),
        })
    }

    /// What the client gets, in pieces. An error is written into the last one.
    pub(super) fn pieces(self) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            match reader.step().await {
                Ok(Step::Piece(piece)) => Some((piece, Some(reader))),
                Ok(Step::End) => None,
                Err(error) => Some((error.to_string().into(), None)),
            }
        })
    }

    async fn step(&mut self) -> Result<Step, ReadError> {
        loop {
            let mut out = Vec::new();
            self.print_lines(&mut out);
            if !out.is_empty() {
                return Ok(Step::Piece(out.into()));
            }
            if self.is_over {
                return Ok(Step::End);
            }
            self.rest.reserve(PIECE);
            let read = self.file.read_buf(&mut self.rest).await;
            if read.map_err(|source| read_error(&self.path, source))? > 0 {
                continue;
            }
            if self.follow.is_some() {
                self.is_over = !self.wait().await?;
                continue;
            }
            // What is left has no end of line and is still shown.
            let last = self.rest.split();
            if !last.is_empty() && !self.is_skipping {
                self.print(&last, &mut out);
            }
            self.is_over = true;
            if !out.is_empty() {
                return Ok(Step::Piece(out.into()));
            }
        }
    }

    /// Prints whole lines until there is enough for a piece.
    fn print_lines(&mut self, out: &mut Vec<u8>) {
        self.is_over |= self.printer.is_done();
        while !self.is_over && out.len() < PIECE {
            let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') else {
                if self.rest.len() > MAX_LINE {
                    self.rest.clear();
                    self.is_skipping = true;
                }
                return;
            };
            let line = self.rest.split_to(end + 1);
            if !std::mem::take(&mut self.is_skipping) {
                self.print(&line, out);
            }
        }
    }

    fn print(&mut self, line: &[u8], out: &mut Vec<u8>) {
        match self.printer.print(line, out) {
            Next::More => {}
            Next::Done => self.is_over = true,
            Next::Failed(why) => {
                out.extend_from_slice(why.as_bytes());
                self.is_over = true;
            }
        }
    }

    /// At the end of the file: waits until there may be more. `false` if there will not be.
    async fn wait(&mut self) -> Result<bool, ReadError> {
        if self.reopen().await? {
            return Ok(true);
        }
        let Some(follow) = &mut self.follow else {
            return Ok(false);
        };
        if !follow.is_running {
            return Ok(false);
        }
        let Some(watch) = &mut follow.watch else {
            let folder = self.path.parent().unwrap_or(Path::new("/"));
            follow.watch = Some(Watch::new(folder, Changes::All));
            // What came before the watch was there is read now.
            return Ok(true);
        };
        let now = Instant::now();
        if follow.asked.is_none_or(|asked| now >= asked + PERIOD) {
            follow.asked = Some(now);
            follow.is_running = is_running(&*self.runtime, &self.container).await;
        }
        // What a container wrote just before it ended is read in one more pass.
        if follow.is_running {
            watch.changed(PERIOD).await;
        }
        Ok(true)
    }

    /// Whether there is something else to read under the path: a new file, or the same one
    /// emptied.
    async fn reopen(&mut self) -> Result<bool, ReadError> {
        let error = |source| read_error(&self.path, source);
        let there = match tokio::fs::metadata(&self.path).await {
            Ok(there) => there,
            // Renamed, and the next one is not there yet.
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(error(source)),
        };
        let own = self.file.metadata().await.map_err(error)?;
        if (there.dev(), there.ino()) != (own.dev(), own.ino()) {
            let is_renamed = self.follow.as_mut().map(|follow| &mut follow.is_renamed);
            if let Some(is_renamed @ false) = is_renamed {
                // What was written just before it was renamed is read first.
                *is_renamed = true;
                return Ok(true);
            }
            self.file = open(&self.path).await?;
            self.rest.clear();
            self.follow.iter_mut().for_each(|f| f.is_renamed = false);
            return Ok(true);
        }
        let position = self.file.stream_position().await.map_err(error)?;
        if there.len() < position {
            self.file.rewind().await.map_err(error)?;
            self.rest.clear();
            return Ok(true);
        }
        Ok(false)
    }
}

/// Opens a log (`POD/CONTAINER/0.log`). A pod that may write into the directories of logs could have
/// put a link there: none is followed out of the pod's directory.
async fn open(path: &Path) -> Result<File, ReadError> {
    let place = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let (pod, below) = beneath::in_pod(&place)?;
        match beneath::open(pod, below)? {
            Opened::File(file, _) => Ok(File::from_std(file)),
            Opened::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    })
    .await;
    let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
    let path = path.to_owned();
    opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ReadError::Resolve { path, source },
        _ => ReadError::Open { path, source },
    })
}

fn read_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Read {
        path: path.to_owned(),
        source,
    }
}

/// A runtime that is away for a moment may well have its containers running.
async fn is_running(runtime: &dyn Runtime, container: &str) -> bool {
    match runtime.container_status(container).await {
        Ok(status) => status.state == i32::from(ContainerState::ContainerRunning),
        Err(Error::Unreachable { .. } | Error::TimedOut { .. }) => true,
        Err(_) => false,
    }
}
