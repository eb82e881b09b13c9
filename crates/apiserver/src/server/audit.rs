//! Who asked for what, as lines of JSON.
//!
//! The lines are `audit.k8s.io/v1` Events of level Metadata, so that tools which read upstream's
//! log read this one. They are written by a thread of their own: a slow disk slows nobody down, and
//! when it falls far behind, lines are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;

/// Lines that may wait to be written.
const QUEUE: usize = 4096;

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    lines: SyncSender<String>,
}

impl Log {
    /// Opens the file, readable by its owner only, and writes at its end.
    pub(crate) fn open(path: &Path) -> std::io::Result<Log> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let (lines, queue) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || write(file, &queue))?;
        Ok(Log { lines })
    }

    /// Notes down one request.
    pub(crate) fn note(&self, event: &Value) {
        if self.lines.try_send(event.to_string()).is_err() {
            tracing::warn!("the audit log does not keep up; an event was dropped");
        }
    }
}

fn write(file: File, queue: &Receiver<String>) {
    let mut file = BufWriter::new(file);
    while let Ok(first) = queue.recv() {
        let mut next = Some(first);
        while let Some(line) = next {
            if let Err(error) = writeln!(file, "{line}") {
                tracing::error!(%error, "the audit log cannot be written");
            }
            next = queue.try_recv().ok();
        }
        if let Err(error) = file.flush() {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }
}
