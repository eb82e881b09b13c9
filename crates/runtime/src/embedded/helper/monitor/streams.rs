//! The ends of a container's streams that the monitor holds.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;
use time::OffsetDateTime;

use super::super::container::Running;
use super::super::log::{Framer, LogFile, Stream};
use super::super::terminal;
use super::clients::Clients;

/// Most that is read at once.
const CHUNK: usize = 32 * 1024;
/// Most input that waits for the container to take it.
const MAX_INPUT: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Streams {
    outputs: Vec<Output>,
    input: Option<Input>,
    terminal: Option<OwnedFd>,
    log: Option<LogFile>,
    /// Whether input ends when the first client leaves.
    stdin_once: bool,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Output {
    stream: Stream,
    file: File,
    framer: Framer,
}

#[derive(Debug)]
struct Input {
    file: File,
    pending: VecDeque<u8>,
    /// Whether it is closed once all is written.
    is_ending: bool,
}

impl Streams {
    pub(super) fn new(
        running: Running,
        log: Option<LogFile>,
        stdin_once: bool,
    ) -> io::Result<Streams> {
        let outputs = running.outputs.into_iter().map(|(stream, fd)| {
            ioctl_fionbio(&fd, true)?;
            Ok(Output {
                stream,
                file: File::from(fd),
                framer: Framer::new(stream),
            })
        });
        let outputs = outputs.collect::<io::Result<Vec<Output>>>()?;
        let input = running.stdin.map(|fd| {
            ioctl_fionbio(&fd, true)?;
            io::Result::Ok(Input {
                file: File::from(fd),
                pending: VecDeque::new(),
                is_ending: false,
            })
        });
        Ok(Streams {
            outputs,
            input: input.transpose()?,
            terminal: running.terminal,
            log,
            stdin_once,
            buffer: vec![0; CHUNK],
        })
    }

    /// What to wait for; as many as [`Self::handle`] is given events of.
    pub(super) fn polled(&self, may_read: bool) -> Vec<PollFd<'_>> {
        let reading = if may_read {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let outputs = self
            .outputs
            .iter()
            .map(|output| PollFd::new(&output.file, reading));
        let input = self.input.iter().map(|input| {
            let is_waiting = !input.pending.is_empty() || input.is_ending;
            let writing = if is_waiting {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            PollFd::new(&input.file, writing)
        });
        outputs.chain(input).collect()
    }

    pub(super) fn handle(&mut self, events: &[PollFlags], clients: &mut Clients) {
        let mut events = events.iter();
        let mut open = Vec::with_capacity(self.outputs.len());
        for mut output in std::mem::take(&mut self.outputs) {
            let is_ready = events.next().is_some_and(|events| !events.is_empty());
            if !is_ready || self.pass_on(&mut output, clients) {
                open.push(output);
            } else {
                self.end(output);
            }
        }
        self.outputs = open;
        if events.next().is_some_and(|events| !events.is_empty()) {
            self.write_input();
        }
    }

    /// Reads once; false at the end of the stream.
    fn pass_on(&mut self, output: &mut Output, clients: &mut Clients) -> bool {
        match output.file.read(&mut self.buffer) {
            Ok(0) => false,
            Ok(length) => {
                let bytes = &self.buffer[..length];
                if let Some(log) = &mut self.log {
                    let mut lines = Vec::with_capacity(length + 64);
                    output
                        .framer
                        .push(bytes, OffsetDateTime::now_utc(), &mut lines);
                    log.append(&lines);
                }
                clients.output(output.stream, bytes);
                true
            }
            // A terminal fails with EIO, not end of file, once its other side is closed.
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn end(&mut self, mut output: Output) {
        if let Some(log) = &mut self.log {
            let mut lines = Vec::new();
            output.framer.finish(OffsetDateTime::now_utc(), &mut lines);
            log.append(&lines);
        }
    }

    pub(super) fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Ends streams that others still hold open.
    pub(super) fn finish(&mut self) {
        for output in std::mem::take(&mut self.outputs) {
            self.end(output);
        }
    }

    pub(super) fn reopen_log(&mut self) -> io::Result<()> {
        self.log.as_mut().map_or(Ok(()), LogFile::reopen)
    }

    pub(super) fn resize(&self, width: u16, height: u16) {
        if let Some(terminal) = &self.terminal {
            terminal::resize(terminal, width, height);
        }
    }

    /// Whether there is room for more input.
    pub(super) fn takes_input(&self) -> bool {
        let input = self.input.as_ref();
        input.is_none_or(|input| input.pending.len() < MAX_INPUT)
    }

    pub(super) fn push_input(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.input
            && !input.is_ending
        {
            input.pending.extend(bytes);
            self.write_input();
        }
    }

    /// A client that could write has disconnected, or has closed its input.
    pub(super) fn end_input(&mut self) {
        if let Some(input) = &mut self.input
            && self.stdin_once
            && self.terminal.is_none()
        {
            input.is_ending = true;
            self.write_input();
        }
    }

    fn write_input(&mut self) {
        let Some(input) = &mut self.input else {
            return;
        };
        while !input.pending.is_empty() {
            match input.file.write(input.pending.as_slices().0) {
                Ok(written) => drop(input.pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.input = None;
                    return;
                }
            }
        }
        if input.is_ending {
            self.input = None;
        }
    }
}
