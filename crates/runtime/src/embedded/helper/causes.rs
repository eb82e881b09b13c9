//! The cause of a failed container creation.
//!
//! libcontainer sends only the outermost error from a container's first process to its parent
//! ("failed to prepare rootfs"); the cause goes to its log. This subscriber keeps what is logged as
//! an error in a file that all forked processes share.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write};

use rustix::fs::{MemfdFlags, memfd_create};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The errors logged by this process and those forked from it.
#[derive(Debug)]
pub(super) struct Causes {
    file: File,
}

struct Keeper {
    file: File,
}

impl Causes {
    /// Begins to keep errors. To be called once per process.
    pub(super) fn keep() -> io::Result<Causes> {
        let file = File::from(memfd_create("causes", MemfdFlags::CLOEXEC)?);
        let keeper = Keeper {
            file: file.try_clone()?,
        };
        // A second subscriber is refused; the first one then keeps the errors.
        let _ = tracing::subscriber::set_global_default(keeper);
        Ok(Causes { file })
    }

    /// The message, with the first error that was logged if it says more.
    pub(super) fn explain(mut self, message: String) -> String {
        let mut text = String::new();
        let read = self
            .file
            .rewind()
            .and_then(|()| self.file.read_to_string(&mut text));
        match (read, text.lines().next()) {
            (Ok(_), Some(first)) if !first.is_empty() && !message.contains(first) => {
                format!("{message}: {first}")
            }
            _ => message,
        }
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let _ = (&self.file).write_all(line.finish().as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// An event as `message (field=value, ...)`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            let comma = if self.fields.is_empty() { "" } else { ", " };
            write!(self.fields, "{comma}{}={value:?}", field.name())
        };
        debug_assert!(written.is_ok(), "memory takes all");
    }
}

impl Line {
    fn finish(self) -> String {
        let text = match self.fields.as_str() {
            "" => self.message,
            fields => format!("{} ({fields})", self.message),
        };
        format!("{}\n", text.replace('\n', " "))
    }
}
